"""Ids and exceptions of the embedder's classes may raise when they are shown: no end, and no caller, hangs on that."""

import asyncio
import linecache
from typing import Any

import pytest

from session_actor.supervisors import (
    CallTimeout,
    DeadlockError,
    DynamicSupervisor,
    Intensity,
    MailboxFull,
    MailboxSpec,
    ServerCrashed,
    ServerKilled,
    ServerQuarantined,
    ServerStopped,
    Supervisor,
    SystemCallFailed,
    UnknownMessage,
    monitor,
    replace_state,
)

from .support import AT_ONCE, Add, Crash, CrashLater, Get, Hold, Life, Note, Run, RunAsync, Server, idle, turns, until


class Detached:
    """An id that can be shown only for a while, as the row of a database."""

    shows = True

    def __repr__(self) -> str:
        if not self.shows:
            raise RuntimeError
        return "<Detached>"


class Unreadable(Exception):
    """Cannot be asked for anything but its class."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__

    def __getattribute__(self, name: str) -> Any:
        if name != "__class__":
            raise RuntimeError
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    ("end", "error"),
    [("cancel", ServerKilled), ("kill", ServerKilled), ("stop", ServerStopped), ("crash", ServerCrashed)],
)
async def test_every_end_of_a_server_whose_id_cannot_be_shown_answers_its_callers(
    life: Life, end: str, error: type[Exception]
) -> None:
    name = Detached()
    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = await idle(root.spawn(life.spec(name)))
        watched = monitor(ref)
        name.shows = False
        running = asyncio.create_task(ref.call(CrashLater() if end == "crash" else Hold(), timeout_s=None))
        queued = asyncio.create_task(ref.call(Get(), timeout_s=None))
        await turns(2)
        if end == "cancel" and ref.slot.task is not None:
            ref.slot.task.cancel()
        elif end == "kill":
            ref.kill()
        elif end == "stop":
            stopping = asyncio.create_task(ref.stop(timeout_s=0.01))
        results = await asyncio.gather(running, queued, return_exceptions=True)
        if end == "stop":
            await stopping
            assert isinstance(results[0], (ServerStopped, ServerKilled))
        else:
            assert isinstance(results[0], error)
        assert isinstance(results[1], (int, ServerStopped, ServerKilled))
        assert (await watched).ref is ref
        assert "Detached" in repr(ref)


async def circle(server: Server) -> tuple[str, ...]:
    with pytest.raises(DeadlockError, match="<Detached> -> <Detached>") as caught:
        await server.ref.call(Get())
    return tuple(f"<{type(link).__name__}>" for link in caught.value.chain)


async def test_every_refusal_of_a_server_whose_id_cannot_be_shown_says_what_it_should(life: Life) -> None:
    name = Detached()
    limits: Any = {"intensity": Intensity(0), "mailbox": MailboxSpec(1, "reject")}
    async with DynamicSupervisor(on_exhausted="quarantine") as root:
        ref = await idle(root.spawn(life.spec(name, **limits)))
        name.shows = False
        with pytest.raises(UnknownMessage):
            await ref.call(object())
        with pytest.raises(SystemCallFailed):
            await replace_state(ref, lambda state: state["nothing"])
        assert await ref.call(RunAsync(circle)) == ("<Detached>", "<Detached>")
        held = asyncio.create_task(ref.call(Hold()))
        await life.held.wait()
        with pytest.raises(CallTimeout):
            await ref.call(Get(), timeout_s=0.001)
        ref.cast(Note())
        with pytest.raises(MailboxFull):
            ref.cast(Note())
        life.gate.set()
        assert await held == 1
        with pytest.raises(ServerCrashed):
            await ref.call(Crash())
        await until(lambda: ref.phase == "quarantined")
        with pytest.raises(ServerQuarantined):
            await ref.call(Get())


@pytest.mark.parametrize("how", [Run, RunAsync])
async def test_an_exception_that_cannot_be_asked_for_anything_is_a_crash_as_any_other(life: Life, how: Any) -> None:
    def fail(_: Any) -> None:
        raise Unreadable

    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        with pytest.raises(ServerCrashed) as caught:
            await ref.call(how(fail))
        assert str(caught.value.__cause__).startswith("Unreadable raised in fail at ")
        assert await ref.call(Add()) == 1
        assert life.starts == 2


async def test_a_crash_looks_at_no_file(life: Life) -> None:
    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        linecache.clearcache()
        for crash in (Crash(), CrashLater()):
            with pytest.raises(ServerCrashed):
                await ref.call(crash)
        assert __file__ not in linecache.cache
        assert not [name for name in linecache.cache if name.endswith("support.py")]


async def test_monitors_end_without_being_compared_with_one_another(life: Life) -> None:
    compared: list[None] = []

    class Hear:
        def __call__(self, reason: object, restarting: bool) -> None:
            compared.append(None)

        def __eq__(self, other: object) -> bool:
            compared.append(None)
            return self is other

        __hash__ = object.__hash__

    async with Supervisor([life.spec()]) as root:
        slot = root.child("server").slot
        watching = [Hear() for _ in range(500)]
        for hear in watching:
            slot.watch(hear)
        for hear in reversed(watching):
            slot.unwatch(hear)
        slot.unwatch(watching[0])
        assert not compared


async def test_who_gives_up_waiting_for_a_monitor_is_forgotten(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        watched = monitor(root.child("server"))
        for _ in range(10):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(watched._next(), 0.001)
        assert not watched._waiters
