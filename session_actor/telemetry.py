"""Events of the library, for whoever wants to measure or watch it.

An event has a name, which is a tuple of words from the general to the particular, such as ("session_actor", "store",
"degraded"); measurements, which are numbers; and metadata, which say of what. Handlers attach to a prefix of the name
(Erlang: telemetry, attach). Nothing is kept, and no event holds text of a conversation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, copy_context
from itertools import count
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from contextvars import Context
    from types import TracebackType
    from typing import Self

    from session_actor.persistence import StoreEvent

Name = tuple[str, ...]
Handler = Callable[[Name, Mapping[str, float], Mapping[str, object]], None]

STORE: Final = ("session_actor", "store")
DETACHED: Final = ("session_actor", "telemetry", "handler_detached")


class Attachment(NamedTuple):
    """A handler with what it wants to be told."""

    prefix: Name
    handler: Handler
    content: bool
    but: frozenset[Name] = frozenset()


attached: tuple[Attachment, ...] = ()
"""Who is attached. Code that has an event to tell looks here first, since mostly nobody is:

    if telemetry.attached:
        telemetry.emit(name, measurements, metadata)
"""
heard = False
"""Whether anybody hears of changes: a handler, or a reader of `Session.changes`. What every change looks at, alone."""
_readers: Final[set[object]] = set()
_changing: Final = threading.RLock()
"""Of one thread several times over: the collector may find a reader that is gone while a handler is attached."""
_numbers: Final = count(1)
_hearers: dict[Name, tuple[Attachment, ...]] = {}
"""Who hears of an event, by its name, of names that came before. A new one with every change of `attached`."""
_MOST_NAMES: Final = 1_000
_inside: Final = ContextVar("session_actor.telemetry.span", default=0)
"""The number of the span that this code is in; 0: none."""


def attach(
    prefix: Iterable[str], handler: Handler, *, content: bool = False, but: Iterable[Iterable[str]] = ()
) -> Callable[[], None]:
    """Have every event told whose name begins with `prefix`; returns a function that detaches again.

    `handler(name, measurements, metadata)` is called where the event happens, mostly on the event loop, so it must be
    quick; what it is given it must not change. One that raises is detached, and that is logged and told as an event
    ("session_actor", "telemetry", "handler_detached"). Detaching again has no effect. An empty prefix means all.

    `content`: what was said is told, too, as `metadata["content"]` of operations that add or show something: the frame,
    the list of frames, or the request. Only for handlers that keep it as safe as the conversations themselves are kept.

    `but`: whole names of events that it is not told of. One that nobody hears of costs nearly nothing.

    Raises InvalidArgument when `prefix` is no sequence of words or the handler cannot be called.
    """
    attachment = _checked(prefix, handler, content, but)
    with _changing:
        _attach((*attached, attachment))

    def detach() -> None:
        _detach(attachment)

    return detach


def _attach(attachments: tuple[Attachment, ...]) -> None:
    globals()["attached"] = attachments
    _listen()
    globals()["_hearers"] = {}  # last: whoever sees it sees who is attached


def _checked(prefix: object, handler: Handler, content: object, but: object) -> Attachment:
    from inspect import iscoroutinefunction

    from .errors import InvalidArgument

    words = _words(prefix, "prefix")
    is_several = isinstance(but, Iterable) and not isinstance(but, str)
    names = cast("Iterable[object]", but) if is_several else (None,)
    if not callable(handler):
        raise InvalidArgument("handler", "must be a function of name, measurements and metadata")
    if iscoroutinefunction(handler) or iscoroutinefunction(type(handler).__call__):
        raise InvalidArgument("handler", "must be a plain function: it is called, and nobody awaits it")
    if type(content) is not bool:
        raise InvalidArgument("content", "must be True or False")
    return Attachment(words, handler, content, frozenset(_words(name, "but") for name in names))


def _words(name: object, what: str) -> Name:
    from .errors import InvalidArgument

    given = tuple(cast("Iterable[object]", name)) if isinstance(name, Iterable) else (None,)
    words = tuple(word for word in given if isinstance(word, str))
    if isinstance(name, str) or len(words) != len(given):
        raise InvalidArgument(what, 'must be a tuple of words such as ("session_actor", "store")')
    return words


def _detach(attachment: Attachment) -> bool:
    with _changing:
        kept = tuple(other for other in attached if other is not attachment)
        changed = len(kept) != len(attached)
        _attach(kept)
    return changed


def reading() -> Callable[[], None]:
    """Another reader of changes is there; returns what tells that it is gone, which may be called anywhere."""
    reader = object()
    _readers.add(reader)
    _listen()

    def gone() -> None:
        _readers.discard(reader)
        _listen()

    return gone


def _listen() -> None:
    with _changing:
        globals()["heard"] = bool(attached or _readers)


def hearers(name: Name) -> tuple[Attachment, ...]:
    """Who is told of events of this name."""
    known = _hearers
    found = known.get(name)
    if found is None:
        found = tuple(each for each in attached if name[: len(each.prefix)] == each.prefix and name not in each.but)
        if len(known) < _MOST_NAMES:
            known[name] = found
    return found


def emit(
    name: Name,
    measurements: Mapping[str, float],
    metadata: Mapping[str, object],
    content: object = None,
    context: Context | None = None,
) -> None:
    """Tell an event to everybody who is attached to a prefix of its name, in the order of attaching.

    `content`: for those who asked for it; None: there is none. `context`: what handlers see; None: the current one.
    """
    for attachment in hearers(name):
        told = {**metadata, "content": content} if attachment.content and content is not None else metadata
        seen = copy_context() if context is None else context.copy()
        try:
            seen.run(attachment.handler, name, measurements, told)  # whose session it is must not see what it sets
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the watcher's fault, also a CancelledError, must not become ours
            _report(attachment, error)


def _report(attachment: Attachment, error: BaseException) -> None:
    if not _detach(attachment):
        return
    from .log import LOGGER

    metadata = {"prefix": attachment.prefix, "handler": _called(attachment.handler), "error": type(error).__name__}
    LOGGER.warning("telemetry_handler_detached", **metadata)
    emit(DETACHED, {}, metadata)


def _called(handler: Handler) -> str:
    return str(getattr(handler, "__qualname__", type(handler).__qualname__))


class Span:
    """Something that takes time, told when it starts, and when it stops or raises. See `span`.

    What is put into `measured` and `metadata` meanwhile is told at the end. Handlers see the context of its start.
    """

    __slots__ = ("_begun_ns", "_context", "_open", "_outer", "measured", "metadata", "name")

    def __init__(self, name: Name, metadata: dict[str, object]) -> None:
        """`name`: what the names of its events begin with. `metadata`: the span's own from here on."""
        self.name = name
        self.metadata = metadata
        self.measured: dict[str, float] = {}
        self._begun_ns = 0
        self._open = False
        self._outer = 0
        self._context: Context | None = None

    def start(self) -> Self:
        """It starts; when nobody is attached, nothing is told of it, now and later."""
        self._begun_ns = perf_counter_ns()
        if attached:
            self._open = True
            self._context = copy_context()
            self.metadata["span"] = next(_numbers)
            outer = self._outer = _inside.get()
            if outer:
                self.metadata["parent"] = outer
            name = (*self.name, "start")
            if hearers(name):
                emit(name, {"monotonic_ns": self._begun_ns}, dict(self.metadata))
        return self

    def stop(self, content: object = None) -> None:
        """It is through; `content`: see `attach`."""
        if self._open:
            self._open = False
            emit((*self.name, "stop"), self._took(), self.metadata, content, self._context)

    def fail(self, error: BaseException) -> None:
        """It raised: the type of the error is told, and no more of it."""
        if self._open:
            self._open = False
            self.metadata["error"] = type(error).__name__
            emit((*self.name, "exception"), self._took(), self.metadata, None, self._context)

    def _took(self) -> dict[str, float]:
        return {"duration_ns": perf_counter_ns() - self._begun_ns, **self.measured}

    def __enter__(self) -> Self:
        """Start; what starts before the end is inside of it."""
        self.start()
        if self._open:
            _inside.set(cast("int", self.metadata["span"]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop, or fail."""
        if self._open:
            _inside.set(self._outer)  # not by a token: an async generator may be closed in another context
        if error is None:
            self.stop()
        else:
            self.fail(error)


def span(name: Iterable[str], metadata: Mapping[str, object] | None = None) -> Span:
    """Tell how long something takes (Erlang: telemetry, span).

        with telemetry.span(("my_app", "lookup"), {"table": "users"}) as span:
            span.measured["rows"] = len(rows)

    `(*name, "start")` is told with `monotonic_ns`, the moment on the clock of `time.perf_counter_ns`; then
    `(*name, "stop")` with `duration_ns`, or `(*name, "exception")` with `duration_ns` and the type of the `error`.
    All three have the same number `span` in their metadata, which no other span of this process has; one that begins
    inside of another has that one's number as `parent`.
    """
    return Span(tuple(name), dict(metadata or {}))


def store_event(event: StoreEvent) -> None:
    """Tell an event of a store: what a service gives its store as `on_event`."""
    if attached:
        emit((*STORE, event.name), event.measurements, event.metadata)
