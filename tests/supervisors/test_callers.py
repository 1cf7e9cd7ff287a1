"""No caller can hurt a server, and no server can hang a caller."""

import asyncio
import gc
import time
from typing import Any

import pytest

from session_actor.supervisors import (
    NO_REPLY,
    CallTimeout,
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
    get_state,
    handles,
    statistics,
)

from .support import (
    AT_ONCE,
    Add,
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
    Stubborn,
    idle,
    turns,
)


async def test_a_callers_timeout_neither_ends_nor_restarts_nor_wipes_the_server(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        await ref.call(Add(5))
        held = asyncio.create_task(ref.call(Hold(), timeout_s=1.0))
        await life.held.wait()
        clock.advance(1.0)
        with pytest.raises(CallTimeout):
            await held
        life.gate.set()
        assert await ref.call(Get()) == 6
        assert life.starts == 1


async def test_a_cancelled_caller_does_not_cut_a_handler_half_way(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold()))
        await life.held.wait()
        held.cancel()
        await turns()
        assert held.cancelled()
        life.gate.set()
        assert await ref.call(Get()) == 1
        assert life.log == ["held"]


@pytest.mark.parametrize("give_up", ["cancel", "timeout"])
async def test_a_call_given_up_before_it_starts_is_never_run(life: Life, clock: Any, give_up: str) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        waiting = asyncio.create_task(ref.call(Add(10), timeout_s=1.0))
        await turns()
        if give_up == "cancel":
            waiting.cancel()
        else:
            clock.advance(1.0)
        await asyncio.wait([waiting])
        life.gate.set()
        await held
        assert await ref.call(Get()) == 1
        assert life.log == ["held"]


async def test_a_kept_call_runs_although_its_caller_was_cancelled(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold()))
        await life.held.wait()
        pending = ref.dispatch(Add(10))
        waiting = asyncio.create_task(pending.wait_keeping())
        await turns()
        waiting.cancel()
        await turns()
        assert waiting.cancelled()
        life.gate.set()
        await held
        assert await ref.call(Get()) == 11


async def test_a_kept_call_that_times_out_before_it_starts_is_never_run(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        waiting = asyncio.create_task(ref.dispatch(Add(10), 1.0).wait_keeping())
        await turns()
        clock.advance(1.0)
        with pytest.raises(CallTimeout, match="not run"):
            await waiting
        life.gate.set()
        assert (await held, await ref.call(Get())) == (1, 1)


async def test_a_dispatched_call_that_nobody_awaits_runs_and_fails_without_noise(life: Life) -> None:
    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        ref.cast(Note())
        ref.dispatch(Add(2))
        ref.dispatch(Crash())
        await turns(10)
        assert life.log == [1, 2, "crash"]
    gc.collect()
    await turns()
    assert problems == []


async def test_late_replies_are_dropped_and_counted(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=1.0))
        await life.held.wait()
        clock.advance(2.0)
        with pytest.raises(CallTimeout, match="outcome is unknown"):
            await held
        life.gate.set()
        await ref.call(Get())
        assert statistics(ref).dropped == 1


async def test_a_timeout_covers_the_wait_in_the_queue(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        late = asyncio.create_task(ref.call(Get(), timeout_s=0.01))
        await turns()
        clock.advance(0.009)
        await turns()
        assert not late.done()
        clock.advance(0.001)
        await turns(2)
        assert late.done()
        with pytest.raises(CallTimeout):
            await late
        life.gate.set()
        await held


async def test_a_short_timeout_works_on_the_loops_own_clock(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        with pytest.raises(CallTimeout):
            await ref.call(Get(), timeout_s=0.01)
        pending = ref.dispatch(Get(), 0.11)
        with pytest.raises(TimeoutError):
            await pending.wait()
        life.gate.set()
        assert await held == 1


async def test_a_call_leaves_the_other_messages_in_the_mailbox_alone(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        for n in range(10):
            ref.cast(Note(n))
        assert await ref.call(Get()) == 45
        assert life.log == list(range(10))


@pytest.mark.parametrize("timeout_s", [-1.0, float("nan"), "soon"])
async def test_an_impossible_timeout_is_refused_and_nothing_is_sent(life: Life, timeout_s: Any) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        ref.cast(Note())
        with pytest.raises((ValueError, TypeError)):
            await ref.call(Add(10), timeout_s=timeout_s)
        assert await ref.call(Get()) == 1


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


async def test_control_calls_of_a_wedged_server_time_out(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        asked = asyncio.create_task(get_state(ref, timeout_s=1.0))
        await turns()
        clock.advance(1.0)
        with pytest.raises(CallTimeout):
            await asked
        life.gate.set()
        assert await held == 1


async def test_many_given_up_calls_do_not_fill_the_mailbox_of_a_wedged_server(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        for _ in range(500):
            given_up = asyncio.create_task(ref.call(Add()))
            await turns(1)
            given_up.cancel()
            await turns(2)
        lane = ref.slot.mailbox.user
        assert lane is not None
        assert len(lane) < 200
        assert statistics(ref).mailbox_length == 0
        life.gate.set()
        await held


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


async def test_a_wedged_handler_that_swallows_cancellation_is_reported_and_its_reply_ignored(life: Life) -> None:
    events: list[Any] = []
    async with DynamicSupervisor(on_event=events.append) as root:
        ref = root.spawn(life.spec())
        caller = asyncio.create_task(ref.call(Stubborn(), timeout_s=None))
        await life.held.wait()
        begun_s = time.monotonic()
        await ref.stop(timeout_s=0.01)
        assert time.monotonic() - begun_s < 5
        with pytest.raises(ServerKilled):
            await caller
        assert "leaked" in [event.kind for event in events]
        assert ref.phase == "ended"
        assert "swallowed" in life.log
        life.gate.set()
        await turns(10)
