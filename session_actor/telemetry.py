"""Events of the library, for whoever wants to measure or watch it.

An event has a name, which is a tuple of words from the general to the particular, such as ("session_actor", "store",
"degraded"); measurements, which are numbers; and metadata, which say of what. Handlers attach to a prefix of the name
(Erlang: telemetry, attach). Nothing is kept, and no event holds text of a conversation.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from session_actor.persistence import StoreEvent

Name = tuple[str, ...]
Handler = Callable[[Name, Mapping[str, float], Mapping[str, object]], None]
Attachment = tuple[Name, Handler]

STORE: Final = ("session_actor", "store")
DETACHED: Final = ("session_actor", "telemetry", "handler_detached")

attached: tuple[Attachment, ...] = ()
"""Who is attached. Code that has an event to tell looks here first, since mostly nobody is:

    if telemetry.attached:
        telemetry.emit(name, measurements, metadata)
"""
_changing = threading.Lock()


def attach(prefix: Iterable[str], handler: Handler) -> Callable[[], None]:
    """Have every event told whose name begins with `prefix`; returns a function that detaches again.

    `handler(name, measurements, metadata)` is called where the event happens, mostly on the event loop, so it must be
    quick; what it is given it must not change. One that raises is detached, and that is logged and told as an event
    ("session_actor", "telemetry", "handler_detached"). Detaching again has no effect. An empty prefix means all.

    Raises InvalidArgument when `prefix` is no sequence of words or the handler cannot be called.
    """
    attachment = _checked(prefix, handler)
    with _changing:
        globals()["attached"] = (*attached, attachment)

    def detach() -> None:
        _detach(attachment)

    return detach


def _checked(prefix: Iterable[object], handler: Handler) -> Attachment:
    from .errors import InvalidArgument

    given = tuple(prefix)
    words = tuple(word for word in given if isinstance(word, str))
    if isinstance(prefix, str) or len(words) != len(given):
        raise InvalidArgument("prefix", 'must be a tuple of words such as ("session_actor", "store")')
    if not callable(handler):
        raise InvalidArgument("handler", "must be a function of name, measurements and metadata")
    return words, handler


def _detach(attachment: Attachment) -> bool:
    with _changing:
        kept = tuple(other for other in attached if other is not attachment)
        changed = len(kept) != len(attached)
        globals()["attached"] = kept
    return changed


def emit(name: Name, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
    """Tell an event to everybody who is attached to a prefix of its name, in the order of attaching."""
    for attachment in attached:
        prefix, handler = attachment
        if name[: len(prefix)] != prefix:
            continue
        try:
            copy_context().run(handler, name, measurements, metadata)  # whose session it is must not see what it sets
        except Exception as error:  # noqa: BLE001 - the watcher's fault must not become the library's
            _report(attachment, error)


def _report(attachment: Attachment, error: Exception) -> None:
    if not _detach(attachment):
        return
    import structlog

    metadata = {"prefix": attachment[0], "handler": _called(attachment[1]), "error": type(error).__name__}
    with contextlib.suppress(Exception):  # nor must that of a log that cannot be written
        structlog.get_logger("session_actor").warning("telemetry_handler_detached", **metadata)
    emit(DETACHED, {}, metadata)


def _called(handler: Handler) -> str:
    return str(getattr(handler, "__qualname__", type(handler).__qualname__))


def store_event(event: StoreEvent) -> None:
    """Tell an event of a store: what a service gives its store as `on_event`."""
    if attached:
        emit((*STORE, event.name), event.measurements, event.metadata)
