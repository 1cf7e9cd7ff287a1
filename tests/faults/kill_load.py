"""Run as a process of its own: kills a process that works with sessions at random moments, again and again.

    python kill_load.py FOLDER KILLS SEED

It has imported everything and forks each worker, so that a kill costs some 40 ms. A worker tells through a pipe which
operation of which session was acknowledged. The next worker opens the store after the kill, compares every session with
what was acknowledged (the one operation that was under way may have happened or not), goes on from there, and is killed
in turn. Prints what was counted as JSON; a difference ends it with exit code 1 and says what it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import shutil
import signal
import struct
import sys
import time
import traceback
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from conversations import Conversation, has_gone_on, perform

from session_actor import FileStore, SessionService
from session_actor.persistence.checking.verify import check
from session_actor.persistence.cutting import cutter
from session_actor.server import snapshots

SESSIONS = 5
KILLS_A_STORE = 25
"""Then another store is made, so that its making is killed, too."""
EARLY = 0.25
"""Of all kills so many come while the store is opened."""
OPENING_S = 0.03
"""So long that takes at most, more or less."""
WORKING_S = 0.01
"""So long a worker works at most before it is killed: it does some ten operations."""
WARM_LIVES = 12
"""Python specializes a function when it was called eight times."""
ACK = struct.Struct("<BI")
READY = ACK.pack(255, 0)
"""Told when every session was compared."""


async def work(folder: Path, conversations: list[Conversation], pipe: int, *, for_s: float) -> None:
    """Compare, then do operations of all sessions at the same time, and tell each one that is acknowledged."""

    async def keep_on(index: int, conversation: Conversation) -> None:
        name = f"session {index}"
        if await has_gone_on(service, name, conversation):
            conversation.apply()
            os.write(pipe, ACK.pack(index, conversation.done))
        await ready.wait()
        while time.monotonic() < until_s:
            await perform(service, name, conversation.next())
            conversation.apply()
            os.write(pipe, ACK.pack(index, conversation.done))

    ready = asyncio.Barrier(len(conversations) + 1)
    until_s = time.monotonic() + for_s
    store = FileStore(folder, segment_bytes=4_000, journal_bytes=6_000, sync_interval_s=0.005)
    async with SessionService.open(store, durability="written", max_live=3, idle_timeout_s=None) as service:
        working = asyncio.gather(*(keep_on(index, conversation) for index, conversation in enumerate(conversations)))
        await asyncio.wait([asyncio.ensure_future(ready.wait()), working], return_when=asyncio.FIRST_COMPLETED)
        os.write(pipe, READY)
        await working


class Parent:
    """Forks, kills, and keeps account of what was acknowledged."""

    def __init__(self, folder: Path, seed: str) -> None:
        self.folder = folder
        self.chance = Random(seed)
        self.seed = seed
        self.stores = self.kills = self.acknowledged = 0
        self.conversations: list[Conversation] = []

    def warm_up(self) -> None:
        """Do everything some times, so that no worker need make what is made at first use, nor Python's fast code."""
        conversations = [Conversation(f"warm {index}") for index in range(SESSIONS)]
        with TemporaryDirectory() as folder, Path(os.devnull).open("wb") as nowhere:
            for _ in range(WARM_LIVES):
                asyncio.run(work(Path(folder), conversations, nowhere.fileno(), for_s=0.05))
        gc.collect()
        gc.freeze()

    def kill_many(self, kills: int) -> None:
        while self.kills < kills:
            if self.kills % KILLS_A_STORE == 0:
                self.end_store()
            early = self.chance.random() < EARLY
            self.run_worker(lives_s=self.chance.uniform(0, OPENING_S if early else WORKING_S), early=early)
        self.end_store()

    def end_store(self) -> None:
        """Compare once more, look for damage, and begin another store."""
        if self.conversations:
            self.run_worker(lives_s=None)
            findings = [str(finding) for finding in check(self.folder).list if finding.severity != "note"]
            assert findings == []
        shutil.rmtree(self.folder, ignore_errors=True)
        self.stores += 1
        self.conversations = [Conversation(f"{self.seed}/{self.stores}/{index}") for index in range(SESSIONS)]

    def run_worker(self, *, lives_s: float | None, early: bool = False) -> None:
        """Let a worker work; kill it `lives_s` after it was ready, or `early`, after its birth; None: not at all."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            be_worker(self.folder, self.conversations, writer, for_s=0 if lives_s is None else 3600)
        os.close(writer)
        told = b""
        while not (early or lives_s is None or READY in told):
            piece = os.read(reader, 1 << 16)
            told += piece
            if not piece:
                break
        if lives_s is not None:
            time.sleep(lives_s)
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.note(reader, told)
        if status not in {0, -signal.SIGKILL}:
            raise SystemExit(1)
        self.kills += status == -signal.SIGKILL

    def note(self, reader: int, data: bytes) -> None:
        """Take down what was acknowledged."""
        while piece := os.read(reader, 1 << 16):
            data += piece
        os.close(reader)
        for index, done in ACK.iter_unpack(data):
            if index < SESSIONS:
                self.conversations[index].apply()
                assert self.conversations[index].done == done, "acknowledgements out of order"
                self.acknowledged += 1


def be_worker(folder: Path, conversations: list[Conversation], pipe: int, *, for_s: float) -> None:
    """In a forked child; never returns."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    gc.disable()  # it does not live long enough to be worth it
    code = 1
    try:
        asyncio.run(work(folder, conversations, pipe, for_s=for_s))
        code = 0
    except BaseException as error:  # noqa: BLE001 - all of it is told by the exit code
        traceback.print_exception(error)
    finally:
        os._exit(code)


if __name__ == "__main__":
    snapshots.EVERY_RECORDS, snapshots.RESTING_RECORDS = 40, 10  # type: ignore[misc]
    cutter.CALM_S = 0.0  # type: ignore[misc]
    parent = Parent(Path(sys.argv[1]), sys.argv[3])
    with contextlib.redirect_stdout(None):  # where the store's log lines go
        parent.warm_up()
    parent.kill_many(int(sys.argv[2]))
    print(json.dumps({"kills": parent.kills, "acknowledged": parent.acknowledged, "stores": parent.stores}))  # noqa: T201
