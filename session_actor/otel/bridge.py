"""From events to spans and metrics, by the conventions of `conventions`."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, cast

from opentelemetry import metrics, trace
from opentelemetry.trace import StatusCode

from session_actor import telemetry
from session_actor.errors import InvalidArgument

from . import conventions as names
from .chats import Chats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider
    from opentelemetry.util.types import AttributeValue

    from session_actor.telemetry import Name

MOST_OPEN: Final = 10_000
"""So many spans are open at most: the oldest is given up for another."""
_PHASES: Final = frozenset({"start", "stop", "exception"})
_OPERATION: Final = ("session_actor", "operation")
_BEGUN: Final = (*_OPERATION, "start")
_ENDED: Final = (*_OPERATION, "stop")
_FAILED: Final = (*_OPERATION, "exception")
_LAG: Final = (*telemetry.STORE, "lag")
_S: Final = 1e9
_PLAIN: Final = frozenset({str, bool, int, float})
_TOLD_BY_THE_SPAN: Final = ("content", "span", "parent", "operation", "duration_ns", "monotonic_ns")
"""What a span has in its name, its times and its parent, or only when it was asked for."""
_MOST_LABELS: Final = 1_000


def instrument(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    content: bool = False,
) -> Callable[[], None]:
    """Make spans and metrics of what the library does, from now on; returns a function that stops it again.

    Args:
        tracer_provider: whose tracer makes the spans; None: the global one.
        meter_provider: whose meter takes the metrics; None: the global one.
        content: also tell what is said, as the conventions' `gen_ai.input.messages` and `gen_ai.output.messages` of
            spans. It is private: only for a backend that keeps it as safe as the conversations themselves are kept.

    An operation's span is a child of the span that its caller is in, also when it had to wait in the mailbox. The
    session's id is `gen_ai.conversation.id` of spans, and never an attribute of a metric. Raises InvalidArgument.
    """
    if type(content) is not bool:
        raise InvalidArgument("content", "must be True or False")
    version = names.SCHEMA_URL
    tracer = trace.get_tracer("session_actor", tracer_provider=tracer_provider, schema_url=version)
    meter = metrics.get_meter("session_actor", meter_provider=meter_provider, schema_url=version)
    return telemetry.attach(("session_actor",), Bridge(tracer, meter), content=content, but=[_BEGUN])


class Bridge:
    """A handler of all events of the library but the starts of operations.

    An operation's span is made when it is through, in one step, with the time when it began and in the context of its
    caller: half as much work as to open it first. Spans that others may be inside of are opened.
    """

    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter) -> None:
        """Nothing is open."""
        self._tracer = tracer
        self._open: OrderedDict[object, Span] = OrderedDict()
        self._labels: dict[tuple[object, object], dict[str, str]] = {}
        """Of metrics of operations, by operation and error: few, and made once."""
        self._chats = Chats(tracer, meter)
        self._took = meter.create_histogram(names.OWN_DURATION, "s", "How long operations on sessions take.")
        self._lag = meter.create_histogram(names.OWN_LAG, "s", "How long records take to reach a level.")
        self._events = meter.create_counter(names.OWN_EVENTS, "{event}", "Events of the library, by name.")

    def __call__(self, name: Name, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """One event."""
        phase = name[-1]
        if name in (_ENDED, _FAILED):
            self._operated(measurements, metadata)
        elif name == _LAG:
            self._lag.record(measurements["lag_ns"] / _S, {names.OWN_LEVEL: str(metadata["level"])})
        elif phase not in _PHASES:
            self._happened(name, measurements, metadata)
        elif "span" not in metadata:
            if phase != "start":
                self._whole(name, measurements, metadata)
        elif phase == "start":
            self._start(name, metadata)
        else:
            self._end(name, measurements, metadata)

    def _operated(self, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        operation, error = metadata["operation"], metadata.get("error")
        end_ns, took_ns = time.time_ns(), cast("int", measurements["duration_ns"])
        span = self._tracer.start_span(
            f"session_actor.{operation}",
            attributes=_attributes(metadata, measurements),
            start_time=end_ns - took_ns,
        )
        if error is not None:
            _fail(span, error)
        if "content" in metadata:
            self._chats.say(span, metadata["content"])
        span.end(end_ns)
        self._took.record(took_ns / _S, self._labels.get((operation, error)) or self._label(operation, error))
        if error is None:
            self._chats.operated(measurements, metadata)

    def _label(self, operation: object, error: object) -> dict[str, str]:
        labels = {names.OWN_OPERATION: str(operation)}
        if error is not None:
            labels[names.ERROR_TYPE] = str(error)
        if len(self._labels) < _MOST_LABELS:
            self._labels[operation, error] = labels
        return labels

    def _happened(self, name: Name, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """What takes no time: counted, and noted at the span in which it happens."""
        event = ".".join(name)
        self._events.add(1, {names.OWN_EVENT: event})
        current = trace.get_current_span()
        if current.is_recording():
            current.add_event(event, _attributes(metadata, measurements))

    def _start(self, name: Name, metadata: Mapping[str, object]) -> None:
        """A span that others may be inside of."""
        outer = self._open.get(metadata.get("parent"))
        inside = None if outer is None else trace.set_span_in_context(outer)
        self._open[metadata["span"]] = self._tracer.start_span(
            ".".join(name[:-1]), inside, attributes=_attributes(metadata)
        )
        if len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)[1].end()

    def _end(self, name: Name, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        span = self._open.pop(metadata["span"], None)
        if span is not None:
            if span.is_recording():
                span.set_attributes(_attributes(metadata, measurements))
            _fail(span, metadata.get("error"))
            span.end()
        self._events.add(1, {names.OWN_EVENT: ".".join(name)})

    def _whole(self, name: Name, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """A span that is told when it is through."""
        took_ns = measurements.get("duration_ns", measurements.get("duration_ms", 0) * 1e6)
        end_ns = time.time_ns()
        attributes = _attributes(metadata, measurements)
        span = self._tracer.start_span(".".join(name[:-1]), attributes=attributes, start_time=end_ns - int(took_ns))
        _fail(span, metadata.get("error"))
        span.end(end_ns)
        self._events.add(1, {names.OWN_EVENT: ".".join(name)})


def _fail(span: Span, error: object) -> None:
    if error is not None:
        span.set_status(StatusCode.ERROR)
        span.set_attribute(names.ERROR_TYPE, str(error))


_own: Final[dict[str, str | None]] = {"session": names.CONVERSATION_ID, **dict.fromkeys(_TOLD_BY_THE_SPAN)}
"""What attributes are called, by the names in events; None: it is none."""


def _attributes(
    metadata: Mapping[str, object], measurements: Mapping[str, float] | None = None
) -> dict[str, AttributeValue]:
    """Plain values, under the library's own names but for the session's; what was said is not among them."""
    found: dict[str, Any] = {}
    for name, value in (metadata if measurements is None else {**metadata, **measurements}).items():
        called = _own[name] if name in _own else _call(name)
        if called is not None and (type(value) in _PLAIN or isinstance(value, str | int | float) or _words(value)):
            found[called] = value
    return found


def _call(name: str) -> str:
    called = f"{names.OWN}.{name}"
    if len(_own) < _MOST_LABELS:
        _own[name] = called
    return called


def _words(value: object) -> bool:
    return isinstance(value, tuple) and all(type(item) is str for item in cast("tuple[object, ...]", value))
