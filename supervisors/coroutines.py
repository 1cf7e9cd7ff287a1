"""Handlers that are not `async def` and return a coroutine all the same: decorators make such."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from .errors import Refusal
from .messages import NO_REPLY
from .reply import CASTING
from .serving import answer, run_next

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from .gen_server import GenServer
    from .slot import Handler, Slot


def is_async(method: Handler) -> bool:
    """Whether a handler is an async function, or says that it wraps one (`functools.wraps`)."""
    return inspect.iscoroutinefunction(inspect.unwrap(method))


def watched(handlers: dict[type, Handler], kind: type, method: Handler) -> Handler:
    """A handler that may run inline, looked at until it has answered once; afterwards it costs nothing more.

    When a coroutine comes back, messages of this kind run in the server's task from then on, as those of async
    handlers, and this one is finished there.
    """

    def first(server: GenServer, message: object) -> object:
        reply = method(server, message)
        if inspect.iscoroutine(reply):
            handlers.pop(kind, None)
            return _finish_later(server.ref.slot, reply)
        handlers[kind] = method
        return reply

    return first


def _finish_later(slot: Slot, work: Coroutine[Any, Any, object]) -> object:
    """Let the server's task await the rest of the running handler, before any other message."""
    caller = slot.defer()

    async def finish() -> None:
        slot.current = CASTING if caller is None else caller
        if caller is not None and slot.deferred is not None:
            slot.deferred.discard(caller)
        try:
            reply = await work
            if caller is not None:
                answer(slot, caller, reply)
        except Refusal as refusal:
            if caller is None:
                slot.mailbox.dropped += 1
            else:
                caller.fail(refusal.with_traceback(None))

    run_next(slot, finish, work.close)
    return NO_REPLY if caller is not None else None
