"""Lives of services in which everything happens of which an event tells."""

from __future__ import annotations

import asyncio
import errno
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from session_actor import (
    FileStore,
    Hook,
    MemoryStore,
    ModelProfile,
    SessionActorError,
    SessionService,
    ToolCall,
    Usage,
    telemetry,
)
from session_actor.commands import AddUser
from session_actor.hooks.breaker import REST_S
from session_actor.observing import worker_event
from session_actor.persistence import PersistenceError
from session_actor.persistence.lock import StoreLock
from session_actor.supervisors import (
    Backoff,
    ChildSpec,
    InitFailed,
    Intensity,
    Supervisor,
    SupervisorError,
    resume,
    suspend,
)
from session_actor.supervisors.clock import ManualClock

from ..persistence.disks import TroubledDisk
from ..persistence.stores import SMALL
from ..persistence.test_salvage_interrupted import RefusingDisk, break_line, killed, refusing
from .compaction.summarising import Scripted, good_summary, settled, to_red
from .compaction.summarising import opened as summing_up
from .conftest import Poison
from .hooks.conftest import opened, pass_time, until

CALLS = ("write", "sync", "sync_dir", "create", "rename", "unlink", "make_dir", "list", "truncate", "preallocate")


class Careless(MemoryStore):
    """Does not give a session's records as often as it is told."""

    fails = 0
    hangs = False

    async def load(self, lease, **options):
        if self.fails:
            self.fails -= 1
            raise ValueError("not today")
        while self.hangs:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        return await super().load(lease, **options)


async def ordinary(folder: Path) -> None:
    """What every session does; loading, unloading, pruning, ending, deleting."""
    async with SessionService.open(
        folder, models={"m": ModelProfile(name="m", window=20_000, max_output=1_000, family="o200k")}
    ) as service:
        session = await service.session("user-42", create=True)
        await session.configure(system="s", model="m")
        await session.add_user("hello", durability="synced")
        await session.push("a", "b", key="k")
        await session.push("a", "b", key="k")
        request = await session.build_request("anthropic")
        await session.request_failed(request, "overloaded")
        await session.add_assistant("x", usage=Usage(3, 4), tool_calls=[ToolCall("c", "t")], dialect="anthropic")
        await session.add_tool_result("c", "y" * 60_000)
        await session.build_request("anthropic")
        await session.checkpoint("here")
        await session.get(1)
        await session.stack()
        with suppress(SessionActorError):
            await session.goto("nowhere")
        await session.pop()
        await session.fork(2, user_input="again")
        await session.prune()
        await session.flush()
        await service._store._engine.cutter.cut()
        await service._lifetime.population.rest("user-42")
        await session.add_user("back")
        with suppress(SessionActorError):
            await service.session("nobody")
        async with SessionService.take(await service.handover()) as heir:
            await heir.end("user-42")
            await heir.delete("user-42")
            handover = await heir.handover()
        with suppress(SessionActorError):
            await SessionService.take(handover).start()
    for refused in (1, 0):
        async with SessionService.open(folder) as service:
            session = await service.session("other", create=True)
            with suppress(SessionActorError):
                await refused_handover(service) if refused else await service.handover("process")


async def refused_handover(service: SessionService) -> None:
    def refuse(version, value):
        raise ValueError

    await SessionService.take(await service.handover(), code_change=refuse).start()


async def imported(folder: Path) -> None:
    """An export is taken in."""
    from session_actor import import_transcript

    folder.mkdir()
    lines = '{"role": "user", "content": "hello"}\n{"role": "assistant", "content": "hi"}\n'
    (folder / "chat.jsonl").write_text(lines)
    async with SessionService.open(folder / "store") as service:
        await import_transcript(service, folder / "chat.jsonl", "openai-chat", "taken-in")


async def compacted() -> None:
    """Compactions that are made, refused, and have nothing to gain."""
    async with summing_up(Scripted("No.", "No.", good_summary())) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        plan = await session.prepare_compaction()
        with suppress(SessionActorError):
            await session.commit_compaction(plan, "No.")
        await session.build_request("anthropic")
        await settled(session)
        other = await service.session("other", create=True)
        await other.configure(system="rule " * 11_500, model="small")
        await other.add_user("Hi")
        for _ in range(3):
            await other.build_request("anthropic")
            await settled(other)


async def crashing() -> None:
    """Crashes up to quarantine, a full mailbox, records that cannot be read, a server that does not end."""
    store = Careless()
    async with SessionService.open(store, max_restarts=1, mailbox_limit=2) as service:
        session = await service.session("user-42", create=True)
        for _ in range(3):
            with suppress(SessionActorError):
                await session.send(Poison("x"))
            with suppress(SessionActorError):
                await session.head()
        service.release("user-42")
        await session.add_user("again")
        await suspend(session.ref)
        waiting = [asyncio.ensure_future(session.add_user(str(number))) for number in range(4)]
        await asyncio.sleep(0)
        with suppress(SupervisorError, SessionActorError):
            session.ref.cast(AddUser("no room"))
        await resume(session.ref)
        await asyncio.gather(*waiting)
        await service._lifetime.population.rest("user-42")
        store.fails = 1
        with suppress(SessionActorError):
            await service.session("user-42")
    await asyncio.sleep(0)
    service = SessionService.open(store, close_timeout_s=0.3)
    await service.start()
    store.hangs = True
    loading = asyncio.ensure_future(service.session("user-42", timeout_s=None))
    await asyncio.sleep(0.01)
    with suppress(SessionActorError):
        await service.close()
    store.hangs = False
    with suppress(SessionActorError):
        await loading
    await asyncio.sleep(0.1)


async def working() -> None:
    """What keeps a service running crashes until it gives up, or does not end."""
    stay = True

    async def crash() -> None:
        raise ValueError

    async def hang() -> None:
        while stay:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    child = ChildSpec("writer", task=crash, intensity=Intensity(max_restarts=1, max_seconds=60))
    root = Supervisor([child], backoff=Backoff(initial_s=0.0), on_event=worker_event)
    with suppress(InitFailed):  # it may be over before all have started
        await root.start()
    await until(lambda: not root.alive)
    async with Supervisor([ChildSpec("sweeper", task=hang, shutdown_s=0.01)], on_event=worker_event) as root:
        await root.terminate_child("sweeper")
    stay = False
    await asyncio.sleep(0.05)


async def hooked() -> None:
    """Hooks that work, fail, are left alone and given up."""
    clock, fails = ManualClock(), [3]

    async def fine(ctx) -> None:
        pass

    async def poor(ctx) -> None:
        if fails[0]:
            fails[0] -= 1
            raise ValueError("private")

    hooks = Hook("fine", fine, "created"), Hook("poor", poor, "ended", mandatory=True)
    async with opened(MemoryStore(), *hooks, clock=clock) as service:
        for number in range(3):
            await service.session(str(number), create=True)
            await service.end(str(number))
        await until(lambda: fails == [0])
        clock.advance(REST_S)
        await pass_time(clock, lambda: not service.hooks.pending())
        fails[0] = 1_000
        await service.session("lost", create=True)
        await service.end("lost")
        await pass_time(clock, service.hooks.dead_letters)


async def on_bad_disks(folder: Path) -> None:
    """Each kind of call of the system fails for a while."""
    for call in CALLS:
        disk = TroubledDisk()
        options = {"segment_bytes": 20_000, "journal_bytes": 2_000, "sync_interval_s": 0.01}
        store = FileStore(folder / call, disk=disk, backlog_bytes=100_000, **options)
        async with AsyncExitStack() as stack:
            with suppress(SessionActorError, PersistenceError, OSError):
                service = await stack.enter_async_context(SessionService.open(store))
                sessions = [await service.session(str(number), create=True) for number in range(3)]
                for session in sessions:
                    for _ in range(12):
                        await session.add_user("x" * 1_000)
                    await session.flush()
                disk.errors[call] = errno.EIO
                for step in steps(service, sessions):
                    with suppress(SessionActorError, PersistenceError, OSError, TimeoutError):
                        async with asyncio.timeout(0.2):
                            await step
                disk.errors.clear()
                with suppress(SessionActorError):
                    await sessions[0].flush()


def steps(service, sessions):
    """What touches the disk in every way there is."""
    yield sessions[0].add_user("x" * 15_000, durability="synced")
    yield sessions[0].pop(10)
    yield sessions[0].prune(timeout_s=0.2)
    yield service._store._engine.cutter.cut()
    yield sessions[1].flush()
    yield sessions[1].add_user("y" * 15_000, durability="written")
    yield sessions[1].add_user("y" * 110_000)
    yield service.delete("2", timeout_s=0.2)
    yield service._store._engine.cutter.cut()


async def damaged(folder: Path) -> None:
    """A torn end, a damaged session that is salvaged, a store that is taken away."""
    async with SessionService.open(FileStore(folder, cut_at_close=0)) as service:
        session = await service.session("user-42", create=True)
        for number in range(5):
            await session.add_user(f"question {number}")
        await session.flush()
        path = service._store._engine.log.current.path
    with open(path, "ab") as file:  # noqa: PTH123
        file.write(b"torn")
    async with SessionService.open(folder):
        pass
    for path in folder.glob("journals/*/*.ndjson"):
        path.write_bytes(path.read_bytes().replace(b"question 3", b"question X"))
    async with SessionService.open(folder, recovery="readable") as service:
        await service.session("user-42")
    other = StoreLock(folder / "LOCK")
    with suppress(SessionActorError):
        async with SessionService.open(folder, close_timeout_s=0.3) as service:
            session = await service.session("user-42")
            (folder / "LOCK").unlink()
            assert other.try_acquire()
            with suppress(SessionActorError):
                await session.add_user("gone", durability="synced")
    other.release()


async def unsalvageable(folder: Path) -> None:
    """The log is damaged, and the disk refuses the files of a session that it concerns."""
    root = await killed(folder, "abcabc")
    break_line(root, b'"s":"b"')
    disk = refusing(RefusingDisk, "/b-", "write")
    async with SessionService.open(FileStore(root, disk=disk, recovery="readable", **SMALL)):
        pass


async def undeletable(folder: Path) -> None:
    """The files of a deleted session cannot be removed at once."""
    disk = TroubledDisk()
    async with SessionService.open(FileStore(folder, disk=disk)) as service:
        session = await service.session("user-42", create=True)
        await session.flush()
        await service._store._engine.cutter.cut()
        disk.errors["unlink"] = errno.EIO
        await service.delete("user-42")
        disk.errors.clear()


def handler_that_raises() -> None:
    def fail(*_):
        raise ValueError

    telemetry.attach(("life",), fail)
    telemetry.emit(("life",), {}, {})


async def everything(folder: Path) -> None:
    """All of it."""
    handler_that_raises()
    await ordinary(folder / "ordinary")
    await imported(folder / "imported")
    await compacted()
    await crashing()
    await working()
    await hooked()
    await on_bad_disks(folder / "bad")
    await damaged(folder / "damaged")
    await unsalvageable(folder / "unsalvageable")
    await undeletable(folder / "undeletable")
