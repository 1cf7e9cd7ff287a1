"""Run as a process of its own: kills a process at every system call of one operation, by strace.

    python kill_points.py FOLDER EVERY FIRST OPERATION…

For the calls FIRST, FIRST + EVERY, FIRST + 2 * EVERY … of the operation: a copy of a prepared store is opened by a
forked process, which stops before the operation; strace attaches to it and has it killed at the n-th call; then the
store is opened anew, compared with what was acknowledged, worked with, checked, and opened once more, unless the kill
left what an earlier one had left. All jobs of the store's threads run in one thread here, so that the n-th call is the
same at every run, but in the operation whose name says so: there strace counts the calls of each thread. Prints what
was counted as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from conversations import shown
from forked import fork, freeze, wait
from tracing import PATIENCE_S, stop, trace

from session_actor import FileStore, ModelProfile, Session, SessionService
from session_actor.persistence.checking.verify import check
from session_actor.persistence.cutting import cutter
from session_actor.persistence.files.disk_thread import DiskThread
from session_actor.persistence.files.storage import OsDisk
from session_actor.persistence.repair.repair import repair
from session_actor.server import snapshots

CALLS = (
    "openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir,write,pwrite64,writev,"
    "pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,fdatasync,sync_file_range,chmod,fchmod,flock"
)
"""Those after which something is different; to be killed at a read is to be killed at the next of these."""
REPAIRS = {"repair": "prefix", "repair_readable": "readable"}
"""Operations on a store that is damaged and not open, with what they salvage."""
SALVAGES = {"salvage_at_load": "readable"}
"""Operations on a store that is opened with a damaged session, and that way of recovery."""
COMPACTS = ("compact", "uncompact", "retract")
"""Operations on a conversation that outgrows its window."""
SMALL = ModelProfile(name="small", window=12_000, max_output=1_000, family="o200k")
MODELS = {"small": SMALL}
GUESS = "The disk is large"
Act = Callable[[SessionService, Callable[[], None]], Awaitable[None]]


class InlineThread(DiskThread):
    """Runs each job at once, on the loop, and reports in its next turn."""

    def submit(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        result = error = None
        try:
            result = job()
        except BaseException as caught:  # noqa: BLE001 - as the real one
            error = caught
        self._loop.call_soon(done, result, error)


class InlineDisk(OsDisk):
    """The real disk, without threads."""

    def thread(self, name: str, loop: asyncio.AbstractEventLoop) -> DiskThread:
        return InlineThread(name, loop)


@contextlib.asynccontextmanager
async def opened(folder: Path, operation: str = "") -> AsyncIterator[SessionService]:
    disk = OsDisk() if operation.endswith("threads") else InlineDisk()
    recovery = SALVAGES.get(operation, "strict")
    store = FileStore(
        folder, segment_bytes=4_000, journal_bytes=3_000, sync_interval_s=1000, disk=disk, recovery=recovery
    )
    async with SessionService.open(store, durability="written", idle_timeout_s=None, models=MODELS) as service:
        yield service


# --- the operations ---------------------------------------------------------------------------------------------------
#
# Each is given the service, and `begin`, which it calls when it is ready for the first call that counts.


async def push(service: SessionService, begin: Callable[[], None]) -> None:
    session = await service.session("a")
    begin()
    await session.push("new", "answer")


async def push_synced(service: SessionService, begin: Callable[[], None]) -> None:
    session = await service.session("a")
    begin()
    await session.push("new", "answer", durability="synced")


async def rotate_and_cut(service: SessionService, begin: Callable[[], None]) -> None:
    """The next segment is begun, the full one is sealed and moved into journals."""
    session, other = await service.session("a"), await service.session("b")
    begin()
    await session.push("new", "x" * 4_000, durability="synced")
    for number in range(3):
        await other.push(f"{number}", "x" * 1_000, durability="synced")
    async with asyncio.timeout(PATIENCE_S):
        while service.health().store.live_segments > 1:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)


async def rotate_and_cut_in_threads(service: SessionService, begin: Callable[[], None]) -> None:
    """The same with the store's own threads: records are written while others are cut; no two runs are alike."""
    await rotate_and_cut(service, begin)


async def close_with_snapshots(service: SessionService, begin: Callable[[], None]) -> None:
    session = await service.session("a")
    begin()
    await session.push("new", "answer")
    await service.close()


async def prune(service: SessionService, begin: Callable[[], None]) -> None:
    session = await service.session("a")
    begin()
    await session.prune()
    await session.push("new", "answer")


async def delete(service: SessionService, begin: Callable[[], None]) -> None:
    begin()
    await service.delete("a")


async def salvage_at_load(service: SessionService, begin: Callable[[], None]) -> None:
    """What can be kept of the damaged session is copied, and takes its place."""
    begin()
    assert (await service.session("b")).recovery.gaps


async def compact(service: SessionService, begin: Callable[[], None]) -> None:
    """Plan what a summary stands for, judge one, and let it."""
    session = await service.session("a")
    await session.prepare_compaction()  # what is imported then
    begin()
    await commit(session)


async def commit(session: Session) -> int:
    plan = await session.prepare_compaction()
    assert plan is not None
    return (await session.commit_compaction(plan, plan.extractive(), durability="synced")).generation


async def uncompact(service: SessionService, begin: Callable[[], None]) -> None:
    session = await service.session("a")
    begin()
    await session.uncompact(2)


async def retract(service: SessionService, begin: Callable[[], None]) -> None:
    session = await service.session("a")
    begin()
    await session.retract(GUESS, "It is full.")


ACTS: dict[str, Act] = {
    act.__name__: act
    for act in (
        push, push_synced, rotate_and_cut, rotate_and_cut_in_threads, close_with_snapshots, prune, delete,
        salvage_at_load, compact, uncompact, retract,
    )
}  # fmt: skip


async def prepare(folder: Path, operation: str = "") -> None:
    """A store with two sessions, whose records are in journals, snapshots and the log."""
    async with opened(folder) as service:
        for name in "ab":
            session = await service.session(name, create=True)
            for number in range(30):
                await session.push(f"{name}{number}", "x" * (number * 37 % 400), durability="synced")
            await session.pop(25)
            await session.push("kept", "")
        if operation in COMPACTS:
            session = await service.session("a")
            await converse(session)
            if operation == "uncompact":
                for _ in range(2):
                    await commit(session)
                    await converse(session)


async def converse(session: Session) -> None:
    """A conversation that is long enough to be compacted, with a rule and an assumption."""
    await session.configure(model="small")
    for number in range(6):
        await session.add_user(f"Never touch table {number}. " + "why is that so " * 120)
        await session.add_assistant("because it is so " * 120, assumptions=[GUESS])


def damage(folder: Path, operation: str) -> None:
    """Tear a journal of session b; beside it lose the catalog, or the snapshots that would hide it."""
    if operation == "repair":
        (folder / "catalog.db").unlink()
    elif operation in SALVAGES:
        for snapshot in (folder / "snapshots").glob("*/b-*"):
            snapshot.unlink()
    journal = max((folder / "journals").glob("*/b-*"))
    data = journal.read_bytes()
    journal.write_bytes(data[: len(data) // 2] + b"#" + data[len(data) // 2 + 1 :])


def mend(folder: Path, operation: str) -> None:
    repair(folder, write=True, salvage=REPAIRS[operation])


# --- one kill ---------------------------------------------------------------------------------------------------------


def operate(folder: Path, operation: str, pipe: int) -> None:
    """In a worker: do the operation, and tell when it is acknowledged."""

    async def run() -> None:
        if operation == "create":
            stop()
        async with opened(folder, operation) as service:
            if operation == "create":
                await service.session("a", create=True)
            else:
                await ACTS[operation](service, stop)
            os.write(pipe, b"!")
            os._exit(0)

    if operation in REPAIRS:
        stop()
        mend(folder, operation)
        os.write(pipe, b"!")
        os._exit(0)
    asyncio.run(run())


def kill_at(folder: Path, operation: str, number: int) -> tuple[bool, bool]:
    """Run the operation and kill it at its n-th call; returns whether it was killed, and whether acknowledged."""
    pid, reader = fork(lambda pipe: operate(folder, operation, pipe))
    with trace(pid, CALLS, f"signal=KILL:when={number}") as strace:
        code, told = wait(pid, reader)
        strace.wait(PATIENCE_S)
    assert code in {0, -signal.SIGKILL}, f"{operation} failed"
    return code != 0, told == b"!"


# --- what must hold ---------------------------------------------------------------------------------------------------


async def texts(service: SessionService) -> dict[str, Any]:
    """The texts of each session; None for one that is not there."""
    found = {name: await shown(service, name) for name in "ab"}
    return {
        name: None if one is None else [*await notes(await service.session(name)), *one[1]]
        for name, one in found.items()
    }


async def notes(session: Session) -> list[str]:
    """What is known of a session beside its texts: compactions and retractions, if there are any."""
    state = session._cell.state
    compactions = [(one.generation, one.summary, one.undone > 0) for one in state.overlays] if state else []
    tainted = await session.contaminated()
    known = (compactions, {name: (one.frames[0], one.last_clean) for name, one in tainted.items()})
    return [repr(known)] if any(known) else []


async def look(folder: Path, operation: str) -> Any:
    """Open the store, see what is in it, and work with it."""
    async with opened(folder, operation if operation in SALVAGES else "") as service:
        found = await texts(service)
        for name in "ab":
            await (await service.session(name, create=True)).push("goes on", "", durability="synced")
    return found


async def look_again(folder: Path) -> Any:
    async with opened(folder) as service:
        return await texts(service)


class Expected:
    """What may be found after a kill: as before the operation, as after it, or on the way."""

    def __init__(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        self.before = before
        self.after = after

    def check(self, found: dict[str, Any], *, acknowledged: bool) -> None:
        if acknowledged:
            assert found == self.after, found
        for name, texts_found in found.items():
            if texts_found == self.before[name] or texts_found == self.after[name]:
                continue
            before, after = self.before[name] or [], self.after[name] or []
            grows = (
                texts_found is not None and texts_found == after[: len(texts_found)] and len(texts_found) >= len(before)
            )
            assert grows, (name, texts_found)


def kill_everywhere(folder: Path, operation: str, every: int, first: int) -> dict[str, Any]:
    """Kill at the calls `first`, `first` + `every` … until the operation ends by itself."""
    template, place = folder / "template", folder / "store"
    folder.mkdir()
    if operation != "create":
        asyncio.run(prepare(template, operation))
    if operation in {*REPAIRS, *SALVAGES}:
        damage(template, operation)
    expected = Expected(*expect(template, place, operation))
    points, number, ended = 0, first, False
    seen: set[tuple[bytes, bool]] = set()
    freeze()
    while not ended:
        copy(template, place)
        killed, acknowledged = kill_at(place, operation, number)
        ended = not killed
        left = what_is_in(place), acknowledged
        if ended or left not in seen:
            go_on(place, operation, expected, acknowledged=acknowledged)
        seen.add(left)
        points += killed
        number += every
    return {"operation": operation, "points": points, "last": number - every, "states": len(seen)}


def go_on(place: Path, operation: str, expected: Expected, *, acknowledged: bool) -> None:
    """What the kill left is as expected, can be worked with, and is sound."""
    if operation in REPAIRS:
        mend(place, operation)
    found = asyncio.run(look(place, operation))
    expected.check(found, acknowledged=acknowledged)
    goes_on = {name: [*(one or []), "goes on"] for name, one in found.items()}
    assert asyncio.run(look_again(place)) == goes_on
    findings = [str(finding) for finding in check(place).list if finding.severity != "note"]
    assert findings == [], findings


def what_is_in(place: Path) -> bytes:
    """A sum of all names, modes and bytes: many a call changes nothing of them, and what was left is as it was before.

    Of the lock only whether somebody wrote into it: it names the process that is dead.
    """
    content = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        data = b"" if path.is_dir() else path.read_bytes()
        told = bool(data) if path.name == "LOCK" else data
        content.update(repr((str(path), path.stat().st_mode, told)).encode())
    return content.digest()


def copy(template: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    if template.exists():
        shutil.copytree(template, place)


def expect(template: Path, place: Path, operation: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is in the store before and after an undisturbed operation."""
    before: dict[str, Any] = {"a": None, "b": None}
    damaged = operation in {*REPAIRS, *SALVAGES}
    if operation != "create" and not damaged:
        copy(template, place)
        before = asyncio.run(look_again(place))
    copy(template, place)
    pid, reader = fork(lambda pipe: operate(place, operation, pipe))
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
    os.kill(pid, signal.SIGCONT)
    code, told = wait(pid, reader)
    assert (code, told) == (0, b"!")
    after = asyncio.run(look_again(place))
    return (after if damaged else before), after


if __name__ == "__main__":
    snapshots.EVERY_RECORDS, snapshots.RESTING_RECORDS = 20, 1  # type: ignore[misc]
    cutter.CALM_S = 0.0  # type: ignore[misc]
    with contextlib.redirect_stdout(None):  # where the store's log lines go
        counted = [
            kill_everywhere(Path(sys.argv[1]) / operation, operation, int(sys.argv[2]), int(sys.argv[3]))
            for operation in sys.argv[4:]
        ]
    print(json.dumps(counted))  # noqa: T201
