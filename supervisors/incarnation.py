"""One life of a child: start, run, end. The body of every task of this floor."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from .checks import awaited
from .errors import (
    CrashSummary,
    InitFailed,
    Refusal,
    ServerCrashed,
    ServerDown,
    ServerError,
    ServerKilled,
    ServerStopped,
    StartIgnored,
    SupervisorError,
    shown,
)
from .events import emit
from .exits import KILLED, NORMAL, Ending, ExitReason
from .gen_server import GenServer, run_continues
from .messages import Ignore
from .server_task import ServerTask
from .serving import active, heed, idle, in_context, serve
from .slot import NO_HANDLERS, NOBODY, SHUT, Slot
from .supervisor_base import SupervisorBase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    from .messages import Continue

KILL_GRACE_S = 0.25
TASK_NAME: Final = "server"


def launch(slot: Slot) -> None:
    """Start the next incarnation in a task of its own; the slot takes messages already."""
    slot.phase = "starting"
    slot.killing, slot.suspended = False, NOBODY
    slot.crash = slot.ending = slot.refuse = slot.reason = slot.current = None
    slot.lived_from_s = None
    slot.opens_in = copy_context()
    floor = slot.floor
    # A server outlives who had it started by far, and must not keep that one's context: only its `init` runs there.
    # Not by a task factory, which might be eager; one name for all: 64 bytes a task for a number tell nothing.
    slot.task = ServerTask(incarnation(slot), loop=floor.loop, name=TASK_NAME, context=floor.context.copy())
    floor.tasks[slot.task] = slot
    if floor.task_done is None:
        floor.task_done = partial(_task_done, floor.tasks)
    slot.task.add_done_callback(floor.task_done, context=floor.context)


async def incarnation(slot: Slot) -> None:
    """Live once, then tell the parent why it ended."""
    task = slot.task
    if task is None:
        return
    try:
        reason = await _begin(slot) or await _work(slot)
        while reason is None:  # an idle server waits here, where it takes no second coroutine
            await idle(slot)
            reason = await serve(slot)
    except asyncio.CancelledError as error:
        reason = _cancelled(slot, task, error)
    except (KeyboardInterrupt, SystemExit) as error:
        reason = ExitReason("crashed", error)
        slot.ending = Ending(reason, final=True)
        end(slot, task, reason)
        raise
    except BaseException as error:
        if isinstance(error, GeneratorExit) and not runs(task):  # the loop is gone, and nobody can wait any more
            raise
        reason = KILLED if heed(slot, task) else ExitReason("crashed", error)  # this is where a crash ends
    cancelled = reason is KILLED
    end(slot, task, await _close(slot, reason))
    if cancelled:
        raise asyncio.CancelledError


def runs(task: asyncio.Task[None]) -> bool:
    """Whether this is a step of the task, and not its end when its loop is gone."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False


async def _begin(slot: Slot) -> ExitReason | None:
    """Start the child; a reason when it does not want to run."""
    budget, now_s = slot.floor.budget, perf_counter()
    if now_s >= budget.check_at and not budget.admits(now_s):  # many that start, or crash and start again, at once
        await budget.park()
    context, slot.opens_in = slot.opens_in or slot.floor.context.copy(), None
    following = await active(slot, in_context(context, _open(slot)))
    if isinstance(following, Ignore):
        reason = ExitReason("normal", StartIgnored(f"child {shown(slot.id)} does not run: its init returned IGNORE"))
        slot.ending = Ending(reason, final=True)
        return reason
    if slot.ending is not None and slot.ending.reason is KILLED:
        return KILLED
    slot.first = False
    slot.lived_from_s = slot.floor.clock.monotonic()
    if slot.behaviour is not None and slot.ending is not None:  # asked to end before all its children were up
        return slot.ending.reason
    if slot.phase == "starting":
        slot.phase = "running"
    slot.resolve_start_waiters(None)
    emit(slot.parent, "started", slot)
    if following is not None and slot.server is not None:
        await active(slot, in_context(context, run_continues(slot.server, following)))
    return None


def _work(slot: Slot) -> Coroutine[Any, Any, ExitReason | None]:
    """Return what the child does after its start, until it ends; a server: or until it is idle."""
    if slot.server is not None:
        slot.interrupt = True
        return serve(slot)
    if slot.behaviour is not None:
        return slot.behaviour.live(slot)
    return _run_task(slot)


async def _run_task(slot: Slot) -> ExitReason:
    if slot.spec.task is not None:
        await slot.spec.task()
    return KILLED if slot.task is not None and heed(slot, slot.task) else NORMAL


async def _open(slot: Slot) -> Continue | Ignore | None:
    """Make the child and prepare it; nothing for a bare task."""
    if slot.spec.start is None:
        return None
    made: Any = slot.spec.start()
    if isinstance(made, SupervisorBase):
        slot.behaviour = made
        slot.kind = "supervisor"
        slot.mailbox.fail_all(slot.no_server_error)  # sent before it was known what comes
        await made.open(slot)
        return None
    if not isinstance(made, GenServer):
        message = (
            f"child {shown(slot.id)}: start= must return a GenServer or a supervisor, not {type(made).__qualname__}"
        )
        raise TypeError(message)
    slot.kind = "worker"
    made.attach(slot)
    slot.opening = made
    try:
        following = await _within(slot, awaited(made, "init", made.init()))
    finally:
        slot.opening = None
    if not isinstance(following, Ignore):
        slot.server = made
        slot.sync_handlers = made.sync_handlers()
        slot.leaf = made.leaf
    return following


async def _within(slot: Slot, init: Awaitable[Continue | Ignore | None]) -> Continue | Ignore | None:
    """Give `init` its time and no more."""
    limit_s, task = slot.spec.init_timeout_s, slot.task
    if limit_s is None or task is None:
        return await init
    late: list[bool] = []

    def cut() -> None:
        late.append(task.cancel())

    timer = slot.floor.clock.call_later(limit_s, cut)
    try:
        following = await init
    except asyncio.CancelledError:
        if not late or task.uncancel():
            raise
    else:
        if not late:
            return following
        task.uncancel()
    finally:
        timer.cancel()
    raise TimeoutError(f"init of child {shown(slot.id)} took longer than {limit_s} s")


def _cancelled(slot: Slot, task: asyncio.Task[None], error: asyncio.CancelledError) -> ExitReason:
    """Tell a kill, a stop of a bare task, a foreign cancellation and a CancelledError of the handler's own apart."""
    if slot.killing:
        return KILLED
    if heed(slot, task):
        return KILLED
    if task.cancelling() and slot.ending is not None:
        return slot.ending.reason
    return ExitReason("crashed", error)


async def _close(slot: Slot, reason: ExitReason) -> ExitReason:
    """Let the child clean up; what it raises is the reason then."""
    slot.door = SHUT
    if reason.error is not None and reason.kind == "crashed" and not _refused(slot, reason):
        slot.note_crash(reason.error)
    slot.fail_running(partial(running_error, slot, reason))
    if slot.ending is not None and slot.ending.final:
        slot.fail_everything(partial(ended_error, slot, reason))
    try:
        if slot.behaviour is not None:
            await slot.behaviour.close(slot)
        elif slot.server is not None and type(slot.server).terminate is not GenServer.terminate:
            await _terminate(slot, slot.server, reason)
    except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
        raise
    except BaseException as error:  # as in OTP, a crash in terminate is the reason
        if isinstance(error, GeneratorExit) and not (slot.task and runs(slot.task)):
            raise
        return reason if reason.kind == "crashed" else ExitReason("crashed", error)
    return reason


async def _terminate(slot: Slot, server: GenServer, reason: ExitReason) -> None:
    """Run `terminate` where a cancellation of the server's task does not reach it, only the deadline does."""
    floor = slot.floor
    begun: list[bool] = []

    async def body() -> None:
        begun.append(True)
        await awaited(server, "terminate", server.terminate(reason))

    def cut() -> None:  # not before the first step: a task cancelled then never runs at all
        if begun:
            task.cancel()
        else:
            floor.loop.call_soon(cut)

    task = asyncio.Task(body(), loop=floor.loop)
    floor.tasks[task] = slot
    floor.active[task] = slot
    grace = floor.clock.call_later(KILL_GRACE_S, cut) if slot.killing else None
    try:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                if slot.killing:
                    cut()
    finally:
        floor.tasks.pop(task, None)
        floor.active.pop(task, None)
        if grace is not None:
            grace.cancel()
    if not task.cancelled():
        task.result()


def end(slot: Slot, task: asyncio.Task[None], reason: ExitReason) -> None:
    """Clear the incarnation away and let the parent decide what follows; once for each task."""
    if slot.task is not task:
        return
    slot.task = slot.server = slot.behaviour = slot.waker = slot.opens_in = None
    slot.sync_handlers = NO_HANDLERS
    slot.door = SHUT
    slot.fail_running(partial(running_error, slot, reason))
    slot.cancel_owned()
    if reason.kind == "crashed" and reason.error is not None and not _refused(slot, reason):
        slot.note_crash(reason.error)
        emit(slot.parent, "crashed", slot, reason)
    if slot.parent is not None:
        slot.parent.child_ended(slot, reason)  # which tells who watches, when it is the last end
    else:
        finish(slot, reason)
        slot.tell_end(reason, restarting=False)
    if slot.phase != "ended":
        slot.tell_end(reason, restarting=True)
    waiters, slot.exit_waiters = slot.exit_waiters, None
    for waiter in waiters or ():
        if not waiter.done():
            waiter.set_result(None)


def _refused(slot: Slot, reason: ExitReason) -> bool:
    """Whether the first start was refused, which is no crash."""
    return slot.first and isinstance(reason.error, Refusal)


def finish(slot: Slot, reason: ExitReason) -> None:
    """End the slot for good; what stays of an exception is its summary, so that no frames are kept alive."""
    error = reason.error
    if error is not None and not slot.first and not isinstance(error, SupervisorError):
        reason = ExitReason(reason.kind, CrashSummary.of(error))
    slot.finish(reason, partial(ended_error, slot, reason))


def running_error(slot: Slot, reason: ExitReason) -> ServerError:
    """Make the error for a call that was running when its server ended."""
    if slot.killing or reason.kind == "killed":
        return slot.killed_error()
    if reason.error is None:
        return slot.stopped_error()
    return crashed_error(slot, reason.error)


def crashed_error(slot: Slot, error: BaseException) -> ServerCrashed:
    """Make the error for the call whose handler raised `error`."""
    crashed = ServerCrashed(
        f"server {shown(slot.id)} crashed with {type(error).__qualname__}; the message is not run again"
    )
    crashed.__cause__ = CrashSummary.of(error)
    return crashed


def ended_error(slot: Slot, reason: ExitReason) -> ServerError:
    """Make the error for a message to a server that has ended."""
    if reason.kind == "killed":
        return ServerKilled(f"server {shown(slot.id)} was killed")
    if reason.kind != "crashed":
        if isinstance(reason.error, StartIgnored):
            return StartIgnored(str(reason.error))
        return ServerStopped(f"server {shown(slot.id)} has ended ({reason.kind})")
    down: ServerError
    if isinstance(reason.error, InitFailed):
        down = InitFailed(str(reason.error))
        down.__cause__ = reason.error.__cause__
    elif slot.first:
        down = InitFailed(f"child {shown(slot.id)} could not start: {type(reason.error).__qualname__} in its init")
        down.__cause__ = reason.error
    else:
        down = ServerDown(f"server {shown(slot.id)} crashed and is not coming back by itself")
        down.__cause__ = None if reason.error is None else CrashSummary.of(reason.error)
    return down


async def stop_slot(slot: Slot, ending: Ending, timeout_s: float | str | None) -> None:
    """End the current incarnation: ask, wait `timeout_s` seconds, kill, and report what does not even die then."""
    if slot.phase == "ended":
        return
    if slot.task is None:
        if ending.final and slot.parent is not None:
            slot.ending = ending
            slot.parent.child_ended(slot, ending.reason)
        return
    slot.ask_end(ending)
    if isinstance(timeout_s, str) or not await exit_within(slot, timeout_s):
        slot.kill()
        if not await exit_within(slot, KILL_GRACE_S):
            leak(slot)


async def exit_within(slot: Slot, timeout_s: float | None) -> bool:
    """Wait for the end of the incarnation, at most `timeout_s` seconds (None: no limit); say whether it came."""
    if slot.task is None:
        return True
    waiter: asyncio.Future[None] = slot.floor.loop.create_future()
    if slot.exit_waiters is None:
        slot.exit_waiters = []
    slot.exit_waiters.append(waiter)
    return await slot.floor.wait_done(waiter, timeout_s)


def leak(slot: Slot) -> None:
    """Give up on a task that swallows cancellation: its slot ends, its replies are ignored, it is reported."""
    task = slot.task
    if task is None:
        return
    emit(slot.parent, "leaked", slot, KILLED)
    slot.ending = Ending(KILLED, final=True)
    end(slot, task, KILLED)


def _task_done(tasks: dict[asyncio.Task[None], Slot], task: asyncio.Task[None]) -> None:
    """Let go of a task, and catch the one that was cancelled before its first step: its body never ran."""
    slot = tasks.pop(task, None)
    if not task.cancelled():
        task.exception()  # seen: an interrupt that left the loop needs no second report
    if slot is not None and slot.task is task:
        reason = KILLED
        if not slot.killing:
            if slot.ending is not None and slot.spec.task is not None:  # that is how a bare task is asked to end
                reason = slot.ending.reason
            else:
                slot.ending = Ending(KILLED, final=True)
        end(slot, task, reason)
