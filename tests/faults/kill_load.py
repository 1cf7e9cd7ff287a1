"""Run as a process of its own: kills a process that works with sessions at random moments, again and again.

    python kill_load.py FOLDER KILLS SEED

It has imported everything and forks each worker, so that a kill costs some 40 ms. What a worker does follows from the
seed alone: operation n of a session is the same whoever does it, so that the parent need only be told "session, n" for
each acknowledged one. The next worker opens the store after the kill, compares every session with what was acknowledged
(the one operation that was under way may have happened or not), goes on from there, and is killed in turn. Prints what
was counted as JSON; a difference ends it with exit code 1 and says what it is.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import struct
import sys
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "session_actor"))

from session_model import Model

from session_actor import FileStore, Session, SessionDeleted, SessionNotFound, SessionService, snapshots

SESSIONS = 5
KILLS_A_STORE = 25
"""Then another store is made, so that its making is killed, too."""
ACK = struct.Struct("<BI")


class Conversation:
    """One session as it must be: what is acknowledged, and which operation comes next."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.done = 0
        self.model: Model | None = None

    def next(self) -> tuple[Any, ...]:
        """The operation that comes next, as a name and arguments."""
        model, chance = self.model, Random(f"{self.seed}/{self.done}")
        if model is None:
            return ("create",)
        if not model.head or chance.random() < 0.6:  # noqa: PLR2004
            return ("push", f"{self.done}", "x" * chance.choice((0, 10, 200, 900)))
        kinds = ("pop", "pop", "checkpoint", "goto", "main", "fork", "delete" if chance.random() < 0.3 else "pop")  # noqa: PLR2004
        match chance.choice(kinds):
            case "pop":
                return ("pop", chance.randint(1, 3))
            case "checkpoint":
                return ("checkpoint", f"point {self.done}")
            case "goto" if model.checkpoints:
                return ("goto", chance.choice(sorted(model.checkpoints)))
            case "fork":
                return ("fork", chance.choice(sorted(model.ancestry(model.head))), f"fork {self.done}", f"{self.done}")
            case "delete" if self.done > 60:  # noqa: PLR2004
                return ("delete",)
            case _:
                return ("goto", "main")

    def apply(self) -> None:
        """The next operation happened."""
        operation, model = self.next(), self.model
        self.done += 1
        match operation:
            case ("create",):
                self.model = Model()
            case ("delete",):
                self.model = None
            case ("push", text, _) if model:
                grown = model.grow(model.head, text)
                model.attached = model.attached or f"b{grown}"
                model.move(grown)
            case ("pop", count) if model:
                model.move(model.below(model.head, count))
            case ("checkpoint", name) if model and model.head:
                model.checkpoints[name] = model.head
            case ("goto", "main") if model:
                model.goto(model.branches["main"], "main")
            case ("goto", name) if model:
                model.goto(model.checkpoints[name], None)
            case ("fork", at, name, text) if model:
                model.branches[name] = model.grow(at, text)
                model.goto(model.branches[name], name)

    def shown(self) -> tuple[Any, ...] | None:
        """What a session shows that is as this one."""
        model = self.model
        if model is None:
            return None
        return model.head, model.path(model.head), model.branches, model.checkpoints

    def following(self) -> Conversation:
        """The same with its next operation done."""
        other = Conversation(self.seed)
        other.done = self.done
        if self.model is not None:
            other.model = Model()
            for name, value in vars(self.model).items():
                setattr(other.model, name, value.copy() if isinstance(value, dict) else value)
        other.apply()
        return other


async def perform(service: SessionService, name: str, operation: tuple[Any, ...]) -> None:
    """Do an operation at level `written`, or a deletion, which is synced."""
    if operation == ("create",):
        await service.session(name, create=True)
    elif operation == ("delete",):
        await service.delete(name)
    else:
        await change(await service.session(name), *operation)


async def change(session: Session, kind: str, *arguments: Any) -> None:
    match kind, arguments:
        case "push", (text, answer):
            await session.push(text, answer)
        case "fork", (at, name, text):
            await session.fork(at, branch=name, user_input=text)
        case _:
            await getattr(session, kind)(*arguments)


async def shown(service: SessionService, name: str) -> tuple[Any, ...] | None:
    """What a session of the store shows; None when there is none."""
    try:
        session = await service.session(name)
    except (SessionNotFound, SessionDeleted):
        return None
    stack = await (await session.stack()).load()
    head = stack[-1].id if stack else None
    return head, tuple(frame.user_input for frame in stack), await session.branches(), await session.checkpoints()


async def compare(service: SessionService, name: str, conversation: Conversation) -> bool:
    """Whether the operation that was under way has happened. Raises AssertionError when neither can be."""
    found = await shown(service, name)
    if found == conversation.shown():
        return False
    following = conversation.following()
    if found == following.shown():
        return True
    raise AssertionError(
        f"{name} is neither as after operation {conversation.done} nor as after {following.done}, which is "
        f"{conversation.next()}\n found: {found}\nbefore: {conversation.shown()}\n after: {following.shown()}"
    )


async def work(folder: Path, conversations: list[Conversation], pipe: int, *, for_s: float) -> None:
    """Compare, then do operations of all sessions at the same time, and tell each one that is acknowledged."""

    async def keep_on(index: int, conversation: Conversation) -> None:
        name = f"session {index}"
        if await compare(service, name, conversation):
            conversation.apply()
            os.write(pipe, ACK.pack(index, conversation.done))
        while time.monotonic() < until_s:
            await perform(service, name, conversation.next())
            conversation.apply()
            os.write(pipe, ACK.pack(index, conversation.done))

    until_s = time.monotonic() + for_s
    store = FileStore(folder, segment_bytes=12_000, sync_interval_s=0.005)
    async with SessionService.open(store, durability="written", max_live=3, idle_timeout_s=None) as service:
        await asyncio.gather(*(keep_on(index, conversation) for index, conversation in enumerate(conversations)))


class Parent:
    """Forks, kills, and keeps account of what was acknowledged."""

    def __init__(self, folder: Path, seed: str) -> None:
        self.folder = folder
        self.chance = Random(seed)
        self.seed = seed
        self.stores = self.kills = self.acknowledged = 0
        self.warm_up()
        self.begin_store()

    def warm_up(self) -> None:
        """Do everything once, so that what is made at first use need not be made in every worker."""
        with TemporaryDirectory() as folder, open(os.devnull, "wb") as nowhere:  # noqa: PTH123
            asyncio.run(work(Path(folder), [Conversation("warm")], nowhere.fileno(), for_s=0.3))

    def begin_store(self) -> None:
        self.stores += 1
        shutil.rmtree(self.folder, ignore_errors=True)
        self.conversations = [Conversation(f"{self.seed}/{self.stores}/{index}") for index in range(SESSIONS)]

    def run_worker(self, *, lives_s: float | None) -> None:
        """Let one worker work, and kill it after `lives_s`; None: it ends by itself."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            be_worker(self.folder, self.conversations, writer, for_s=0 if lives_s is None else 3600)
        os.close(writer)
        if lives_s is not None:
            time.sleep(lives_s)
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.note(reader)
        if status not in {0, -signal.SIGKILL}:
            raise SystemExit(1)
        self.kills += status == -signal.SIGKILL

    def note(self, reader: int) -> None:
        """Take down what was acknowledged."""
        data = b""
        while piece := os.read(reader, 1 << 16):
            data += piece
        os.close(reader)
        for index, done in ACK.iter_unpack(data):
            self.conversations[index].apply()
            assert self.conversations[index].done == done, "acknowledgements out of order"
            self.acknowledged += 1

    def kill_many(self, kills: int) -> None:
        while self.kills < kills:
            early = self.chance.random() < 0.25  # noqa: PLR2004 - while it opens the store
            self.run_worker(lives_s=self.chance.uniform(0, 0.01) if early else self.chance.uniform(0.01, 0.05))
            if self.kills % KILLS_A_STORE == 0:
                self.run_worker(lives_s=None)
                self.begin_store()
        self.run_worker(lives_s=None)


def be_worker(folder: Path, conversations: list[Conversation], pipe: int, *, for_s: float) -> None:
    """In a forked child; never returns."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    snapshots.EVERY_RECORDS, snapshots.RESTING_RECORDS = 40, 10  # type: ignore[misc]
    code = 1
    try:
        asyncio.run(work(folder, conversations, pipe, for_s=for_s))
        code = 0
    except BaseException as error:  # noqa: BLE001 - all of it is told by the exit code
        import traceback

        traceback.print_exception(error)
    finally:
        os._exit(code)


if __name__ == "__main__":
    parent = Parent(Path(sys.argv[1]), sys.argv[3])
    parent.kill_many(int(sys.argv[2]))
    print(json.dumps({"kills": parent.kills, "acknowledged": parent.acknowledged, "stores": parent.stores}))
