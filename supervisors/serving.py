"""The actor loop: what a server's task does between `init` and `terminate`."""

from __future__ import annotations

import inspect
import types
from contextvars import copy_context
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .deadlock import mark_inside
from .errors import Refusal, UnknownMessage, shown
from .exits import KILLED, Ending, ExitReason
from .messages import NO_REPLY
from .reply import ASKED, AWAITED, CASTING, QUEUED, STARTED, PendingReply
from .slot import NO_HANDLERS, OPEN, Slot

if TYPE_CHECKING:
    import asyncio
    from collections import deque
    from collections.abc import Callable, Coroutine, Generator
    from contextvars import Context

    from .mailbox import CastItem

    Item = CastItem | PendingReply[Any]


class TraceEvent(NamedTuple):
    """One step of one message, as `trace` shows it."""

    kind: Literal["received", "handled", "refused", "crashed"]
    id: object
    message_type: type


async def serve(slot: Slot) -> ExitReason | None:
    """Run messages until the server ends, or until none waits (None); an exception is its crash."""
    budget = slot.floor.budget
    mailbox = slot.mailbox
    while True:
        if slot.interrupt:
            reason = await attend(slot)
            if reason is not None:
                return reason
        elif mailbox.user and not slot.suspended:
            item = drain(slot, mailbox.user)
            if item is not None:
                await run_one(slot, item)
                if perf_counter() >= budget.check_at:
                    budget.admits(perf_counter())
            if budget.check_at < 0 and mailbox.user:
                await budget.park()
        elif slot.ending is not None:
            return slot.ending.reason
        else:
            return None


def idle(slot: Slot) -> asyncio.Future[None]:
    """Open the door for inline calls, and return what is done when `serve` is needed again."""
    slot.waker = waker = slot.floor.loop.create_future()
    if not slot.suspended and slot.trace is None:
        slot.door = OPEN
    return waker


async def attend(slot: Slot) -> ExitReason | None:
    """See to what comes before user messages: ends first, then the control lane, one action at a time."""
    slot.interrupt = False
    if slot.crash is not None:
        return ExitReason("crashed", slot.crash)
    if slot.killing:
        return KILLED
    control = slot.mailbox.control
    if slot.ending is not None and not (slot.ending.drain and (control or slot.mailbox.user)):
        return slot.ending.reason
    if control:
        slot.interrupt = True
        action = control.popleft()
        if not control:
            slot.mailbox.control = None
        await run_control(slot, action)
    return None


def drain(slot: Slot, user: deque[Item]) -> Item | None:  # noqa: C901, PLR0912 - the hot loop, a call costs
    """Run waiting messages with sync handlers; stop at one for `run_one` (returned), at an interrupt or spent."""
    budget = slot.floor.budget
    stack = slot.floor.stack
    server = slot.server
    handlers = slot.sync_handlers if slot.trace is None else NO_HANDLERS
    begun_s = now_s = slot.used_s = perf_counter()
    stack.append(slot)
    try:
        while user and not slot.interrupt:
            item = user.popleft()
            if isinstance(item, tuple):
                message, context = item
                handler = handlers.get(type(message))
                if handler is None:
                    return item
                slot.current = CASTING
                try:
                    context.run(handler, server, message)
                except Refusal:
                    slot.mailbox.dropped += 1
            elif (state := item.state) == QUEUED or (state == AWAITED and not item.future.cancelled()):
                handler = handlers.get(type(item.message))
                if handler is None:
                    return item
                item.state = STARTED
                slot.current = item
                try:
                    reply = item.context.run(handler, server, item.message)
                except Refusal as refusal:
                    item.fail(refusal.with_traceback(None))
                else:
                    if reply is NO_REPLY or slot.deferred or item.future.done():
                        answer(slot, item, reply)
                    else:
                        item.future.set_result(reply)
                        slot.floor.deadlines.fresh.discard(item)
            else:
                if not item.forget():  # else it was cancelled in this turn, and is not counted yet
                    slot.mailbox.abandoned -= 1
                continue
            slot.handled += 1
            now_s = perf_counter()
            if now_s >= budget.check_at and not budget.admits(now_s):  # after a message: each wake-up is owed one
                break
    finally:
        stack.pop()
        slot.handler_time_s += now_s - begun_s
    slot.current = None
    return None


def answer(slot: Slot, pending: PendingReply[Any], reply: object) -> None:
    """Give the caller its reply, unless the handler deferred it."""
    if reply is NO_REPLY:
        if not slot.is_deferred(pending) and not pending.done():
            message = (
                f"server {shown(slot.id)}: a handler returned NO_REPLY without defer(); its caller would wait for ever"
            )
            raise TypeError(message)
        pending.context = slot.floor.context  # who holds it for long must not keep the context of the call
        return
    if slot.deferred:
        slot.deferred.discard(pending)
    pending.succeed(reply)


async def run_one(slot: Slot, item: Item) -> None:
    """Run one message whose handler is async, found by a base class, missing, or traced."""
    if isinstance(item, PendingReply):
        message, context, pending = item.message, item.context, item
        item.state = STARTED
    else:
        (message, context), pending = item, None
    kind: Any = type(slot.server)
    handler = kind.find_handler(type(message))
    if handler is None:
        if pending is not None:
            name = type(message).__qualname__
            why = f"server {shown(slot.id)} has no handler for {name}: mark a method of its class @handles({name})"
            pending.fail(UnknownMessage(why))
            return
        handler = kind.handle_info
    slot.current = CASTING if pending is None else pending
    traced(slot, "received", message)
    started_s = perf_counter()
    try:
        reply = await run_handler(slot, handler, message, context)
        if pending is not None:
            answer(slot, pending, reply)
    except Refusal as refusal:
        traced(slot, "refused", message)
        if pending is None:
            slot.mailbox.dropped += 1
        else:
            pending.fail(refusal.with_traceback(None))
    except BaseException:
        traced(slot, "crashed", message)
        raise
    else:
        traced(slot, "handled", message)
    slot.handled += 1
    slot.handler_time_s += perf_counter() - started_s
    slot.current = None


async def run_handler(slot: Slot, handler: Any, message: object, context: Context) -> object:
    """Call a sync or async handler in the caller's context."""
    slot.floor.stack.append(slot)
    try:
        reply = context.run(handler, slot.server, message)
    finally:
        slot.floor.stack.pop()
    if not inspect.iscoroutine(reply):
        return reply
    context.run(mark_inside)
    return await active(slot, in_context(context, reply))


async def run_control(slot: Slot, pending: PendingReply[Any]) -> None:
    """Run an action of the control lane."""
    action: Any = pending.message
    if not pending.forget() or pending.future.cancelled():
        slot.interrupt = bool(slot.mailbox.control)
        return
    pending.state = STARTED
    slot.current = pending
    try:
        result = pending.context.run(action, slot)
        if inspect.iscoroutine(result):
            result = await active(slot, in_context(pending.context, result))
        pending.succeed(result)
    except Refusal as refusal:
        pending.fail(refusal.with_traceback(None))
    slot.current = None


def run_next(slot: Slot, action: Callable[[], Any], drop: Callable[[], None] | None = None) -> None:
    """Run an action of the server's own, in its task, before its next user message.

    `drop` is called instead when this incarnation ends before, or has ended.
    """

    def forget() -> None:
        pending.forget()
        if drop is not None:
            drop()

    def run(_: Slot) -> Any:
        slot.disown(forget)
        return action()

    pending: PendingReply[Any] = PendingReply(slot, run, copy_context(), slot.floor.loop.create_future(), None, ASKED)
    slot.own(forget)
    slot.mailbox.put_control(pending)
    slot.interrupt = True
    slot.wake()


async def active(slot: Slot, work: Any) -> Any:
    """Await `work` as something that may wait for other servers, so that circles are found."""
    task = slot.task
    if task is None:  # leaked and ended: nobody waits for it
        return await work
    slot.floor.active[task] = slot
    try:
        return await work
    finally:
        slot.floor.active.pop(task, None)
        if task.cancelling():
            heed(slot, task)


def heed(slot: Slot, task: asyncio.Task[None]) -> bool:
    """End as cancelled when a stranger cancelled the task of a child, whatever the child made of it; tell whether so.

    Not counted: what was cancelled by `kill`, and a bare task by its end.
    """
    asked = slot.spec.task is not None and slot.ending is not None
    if slot.killing or asked or slot.task is not task or not task.cancelling():
        return False
    slot.ending = Ending(KILLED, final=True)
    slot.interrupt = True
    return True


@types.coroutine
def in_context(context: Context, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Step a coroutine in `context`, within the running task."""
    step: Any = work.send
    value: Any = None
    while True:
        try:
            yielded = context.run(step, value)
        except StopIteration as stop:
            return stop.value
        try:
            value = yield yielded
        except BaseException as error:  # noqa: BLE001 - goes into the coroutine, as `await` would do
            step, value = work.throw, error
        else:
            step = work.send


def traced(slot: Slot, kind: Any, message: object) -> None:
    """Tell the trace function, if any; one that raises is detached."""
    if slot.trace is None:
        return
    try:
        slot.trace(TraceEvent(kind, slot.id, type(message)))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - the watcher's fault, also a CancelledError, must not become the server's
        slot.trace = None
