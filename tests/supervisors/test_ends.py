"""No server can hang a caller: every end resolves every call, with an error of its own and without content."""

import asyncio
from typing import Any

import msgspec
import pytest

from session_actor.supervisors import (
    NO_REPLY,
    Call,
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    InitFailed,
    Intensity,
    PendingReply,
    ServerCrashed,
    ServerError,
    ServerKilled,
    ServerStopped,
    Supervisor,
    UnknownMessage,
    handles,
    statistics,
)
from session_actor.supervisors.reply import CASTING

from .support import (
    AT_ONCE,
    Boom,
    Crash,
    CrashLater,
    Defer,
    Get,
    Hold,
    Life,
    Note,
    Run,
    RunAsync,
    Server,
    Stubborn,
    idle,
    turns,
    until,
)


class Secret(msgspec.Struct, Call[None]):
    """A message that nobody handles."""

    text: str


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ("crash", ServerCrashed),
        ("kill", ServerKilled),
        ("stop", ServerStopped),
        ("terminate", ServerStopped),
        ("close", ServerStopped),
    ],
)
async def test_every_end_resolves_a_deferred_call(life: Life, end: str, error: type[Exception]) -> None:
    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = await idle(root.spawn(life.spec()))
        caller = asyncio.create_task(ref.call(Defer(), timeout_s=None))
        await turns()
        if end == "crash":
            ref.cast(Crash())
        elif end == "kill":
            ref.kill()
        elif end == "stop":
            await ref.stop()
        elif end == "terminate":
            await root.terminate_child("server")
        else:
            await root.stop()
        with pytest.raises(error):
            await caller


async def test_a_crash_resolves_its_caller_within_two_turns(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        caller = asyncio.create_task(ref.call(CrashLater(), timeout_s=None))
        await turns(3)
        await turns(2)
        assert caller.done()
        with pytest.raises(ServerCrashed):
            await caller


async def test_a_failed_first_init_fails_everything_that_waits_for_it() -> None:
    class Broken(GenServer):
        async def init(self) -> None:
            await asyncio.sleep(0)
            raise Boom

    async with DynamicSupervisor() as root:
        ref = root.spawn(ChildSpec("broken", start=Broken))
        calls = [asyncio.create_task(ref.call(Get(), timeout_s=None)) for _ in range(3)]
        ref.cast(Note())
        with pytest.raises(InitFailed) as caught:
            await ref.started()
        assert isinstance(caught.value.__cause__, Boom)
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in errors] == [InitFailed] * 3
        assert len(set(map(id, errors))) == 3
        with pytest.raises(InitFailed):
            ref.cast(Note())
        assert root.which_children() == []


@pytest.mark.parametrize("how", ["raise", "cancel"])
async def test_a_handler_that_raises_cancelled_error_by_itself_has_crashed(life: Life, how: str) -> None:
    async def wait_for_the_cancelled(_: Any) -> None:
        other = asyncio.create_task(asyncio.sleep(100))
        other.cancel()
        await other

    def raise_it(_: Any) -> None:
        raise asyncio.CancelledError

    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        message = RunAsync(wait_for_the_cancelled) if how == "cancel" else Run(raise_it)
        with pytest.raises(ServerCrashed):
            await ref.call(message)
        assert await ref.call(Get()) == 0
        assert statistics(ref).crashes == 1


async def test_a_server_cancelled_from_outside_ends_as_cancelled_and_is_no_crash(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        task = ref.slot.task
        assert task is not None
        caller = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        task.cancel()
        with pytest.raises(ServerKilled):
            await caller
        await turns()
        assert task.cancelled()
        assert statistics(ref).crashes == 0
        assert [reason.kind for reason in life.ends] == ["killed"]
        assert ref.phase == "ended"


async def test_a_task_cancelled_before_its_first_step_resolves_its_callers(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = root.spawn(life.spec())
        pending = ref.dispatch(Get())
        assert ref.slot.task is not None
        ref.slot.task.cancel()
        with pytest.raises(ServerKilled):
            await pending.wait()
        assert (life.starts, life.ends) == (0, [])


class Interrupting(GenServer):
    @handles(Run)
    def run(self, message: Run) -> Any:
        return message.function(self)

    @handles(Get)
    async def get(self, message: Get) -> int:
        await asyncio.sleep(3600)
        return 0


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("queued", [False, True])
def test_an_interrupt_in_a_handler_leaves_the_loop_and_resolves_every_waiter(
    kind: type[BaseException], queued: bool
) -> None:
    waiting: list[PendingReply[Any]] = []

    def interrupt(_: Any) -> None:
        raise kind

    async def main() -> None:
        root = DynamicSupervisor()
        await root.start()
        ref = await idle(root.spawn(ChildSpec(1, start=Interrupting)))
        waiting.append(ref.dispatch(Run(lambda server: server.defer() and NO_REPLY), None))
        if queued:
            ref.cast(Run(interrupt))
            waiting.append(ref.dispatch(Get(), None))
            await waiting[1].wait()
        else:
            ref.dispatch(Run(interrupt))

    with pytest.raises(kind):
        asyncio.run(main())
    assert len(waiting) == 1 + queued
    assert all(isinstance(pending.future.exception(), ServerError) for pending in waiting)


class Generating(Interrupting):
    @handles(Get)
    async def get(self, message: Get) -> int:
        raise GeneratorExit


async def test_a_generator_exit_of_a_handler_is_a_crash_as_any_other() -> None:
    def leave(_: Any) -> None:
        raise GeneratorExit

    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = await idle(root.spawn(ChildSpec(1, start=Generating)))
        for message in (Run(leave), Get()):
            with pytest.raises(ServerCrashed, match="GeneratorExit"):
                await ref.call(message)
            await idle(ref)
        assert statistics(ref).restarts == 2


class Odd(BaseException):
    """Neither an error nor one of the two that ask the process to end."""


class OddTerminate(Server):
    async def terminate(self, reason: Any) -> None:
        await super().terminate(reason)
        raise Odd


def raise_odd(_: Any) -> Any:
    raise Odd


async def raise_odd_later(_: Any) -> Any:
    await asyncio.sleep(0)
    raise Odd


@pytest.mark.parametrize("how", ["inline", "queued", "async", "continue", "terminate", "init"])
async def test_an_exception_of_no_known_kind_is_a_crash_and_a_restart_wherever_it_comes_from(
    life: Life, how: str
) -> None:
    class Fails(Server):
        async def init(self) -> None:
            await super().init()
            if how == "init" and life.starts == 2:
                raise Odd

        async def handle_continue(self, argument: Any) -> None:
            raise Odd

    kind = OddTerminate if how == "terminate" else Fails
    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = await idle(root.spawn(ChildSpec(1, start=lambda: kind(life))))
        if how in ("inline", "async"):
            with pytest.raises(ServerCrashed, match="Odd"):
                await ref.call(Run(raise_odd) if how == "inline" else RunAsync(raise_odd_later))
        elif how == "queued":
            ref.cast(Run(raise_odd))
        elif how == "continue":
            await ref.call(Run(lambda server: server.continue_with(None)))
        else:
            ref.cast(Crash() if how == "init" else Run(lambda server: server.stop_self()))
        starts = 3 if how == "init" else 2
        await until(lambda: life.starts == starts)
        assert await ref.call(Get()) == 0
        assert statistics(ref).crashes == starts - 1


async def test_fresh_errors_for_each_caller_and_no_growing_traceback(life: Life) -> None:
    async with DynamicSupervisor(intensity=Intensity(max_restarts=0), on_exhausted="quarantine") as root:
        ref = await idle(root.spawn(life.spec()))
        with pytest.raises(ServerCrashed):
            await ref.call(Crash())
        await turns()
        errors = []
        for _ in range(3):
            with pytest.raises(ServerError) as caught:
                await ref.call(Get())
            errors.append(caught.value)
        assert len({id(error) for error in errors}) == 3


async def test_the_content_of_a_message_and_of_a_crash_stays_out_of_the_errors(life: Life) -> None:
    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = root.child("server")
        with pytest.raises(ServerCrashed) as caught:
            await ref.call(Crash())
        told = f"{caught.value} {caught.value!r} {caught.value.__cause__} {caught.value.__cause__!r}"
        assert "secret" not in told
        assert "Boom" in told
        assert "support.py" in told


async def test_a_pending_reply_shows_the_server_and_the_type_of_the_message_and_no_content(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        pending = root.child("server").dispatch(Secret("the user's secret"), None)
        assert repr(pending) == "<PendingReply 'server' Secret queued>"
        with pytest.raises(UnknownMessage) as caught:
            await pending.wait()
        assert repr(pending) == "<PendingReply 'server' Secret done>"
        assert "the user" not in repr(caught.value)
        assert repr(CASTING) == "<PendingReply of nobody>"


async def test_a_wedged_handler_that_swallows_cancellation_is_reported_and_its_reply_ignored(life: Life) -> None:
    events: list[Any] = []
    async with DynamicSupervisor(on_event=events.append) as root:
        ref = root.spawn(life.spec(shutdown_s=3600))
        caller = asyncio.create_task(ref.call(Stubborn(), timeout_s=None))
        await life.held.wait()
        await ref.stop(timeout_s=0.01)
        with pytest.raises(ServerKilled):
            await caller
        assert "leaked" in [event.kind for event in events]
        assert ref.phase == "ended"
        assert "swallowed" in life.log
        life.gate.set()
        await turns(10)
