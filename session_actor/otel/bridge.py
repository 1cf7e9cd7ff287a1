"""From events to spans and metrics, by the conventions of `conventions`."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, cast

from opentelemetry import context, metrics, trace
from opentelemetry.trace import SpanKind, StatusCode

from session_actor import telemetry
from session_actor.errors import InvalidArgument

from . import conventions as names
from .chats import Chats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider
    from opentelemetry.util.types import AttributeValue

    from session_actor.telemetry import Name

MOST_OPEN: Final = 10_000
"""So many spans are open at most: the oldest is given up for another."""
_PHASES: Final = frozenset({"start", "stop", "exception"})
_OPERATION: Final = ("session_actor", "operation")
_LAG: Final = (*telemetry.STORE, "lag")
_S: Final = 1e9


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
    return telemetry.attach(("session_actor",), Bridge(tracer, meter), content=content)


class Bridge:
    """A handler of all events of the library."""

    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter) -> None:
        """Nothing is open."""
        self._tracer = tracer
        self._open: OrderedDict[object, tuple[Span, Context]] = OrderedDict()
        self._chats = Chats(tracer, meter)
        self._took = meter.create_histogram(names.OWN_DURATION, "s", "How long operations on sessions take.")
        self._lag = meter.create_histogram(names.OWN_LAG, "s", "How long records take to reach a level.")
        self._events = meter.create_counter(names.OWN_EVENTS, "{event}", "Events of the library, by name.")

    def __call__(self, name: Name, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """One event."""
        phase = name[-1]
        if name == _LAG:
            self._lag.record(measurements["lag_ns"] / _S, {names.OWN_LEVEL: str(metadata["level"])})
        elif phase not in _PHASES:
            self._happened(name, measurements, metadata)
        elif "span" not in metadata:
            if phase == "start":
                return
            self._whole(name, measurements, metadata)
        elif phase == "start":
            self._start(name, metadata)
        else:
            self._end(name, measurements, metadata)

    def _happened(self, name: Name, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """What takes no time: counted, and noted at the span in which it happens."""
        event = ".".join(name)
        self._events.add(1, {names.OWN_EVENT: event})
        current = trace.get_current_span()
        if current.is_recording():
            current.add_event(event, _attributes(metadata, measurements))

    def _start(self, name: Name, metadata: Mapping[str, object]) -> None:
        span = self._tracer.start_span(_called(name, metadata), attributes=_attributes(metadata))
        self._open[metadata["span"]] = span, context.get_current()
        if len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)[1][0].end()

    def _end(self, name: Name, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        opened = self._open.pop(metadata["span"], None)
        if opened is not None:
            span, _ = opened
            span.set_attributes(_attributes(metadata, measurements))
            _fail(span, metadata)
            self._chats.say(span, metadata.get("content"))
            span.end()
        if name[:-1] == _OPERATION:
            self._operated(name, measurements, metadata, None if opened is None else opened[1])
        else:
            self._events.add(1, {names.OWN_EVENT: ".".join(name)})

    def _operated(
        self,
        name: Name,
        measurements: Mapping[str, float],
        metadata: Mapping[str, object],
        caller: Context | None,
    ) -> None:
        labels = {names.OWN_OPERATION: str(metadata["operation"])}
        if name[-1] == "exception":
            labels[names.ERROR_TYPE] = str(metadata["error"])
        self._took.record(measurements["duration_ns"] / _S, labels)
        if name[-1] == "stop":
            self._chats.operated(measurements, metadata, caller)

    def _whole(self, name: Name, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """A span that is told when it is through."""
        took_ns = measurements.get("duration_ns", measurements.get("duration_ms", 0) * 1e6)
        end_ns = time.time_ns()
        attributes = _attributes(metadata, measurements)
        span = self._tracer.start_span(
            _called(name, metadata), attributes=attributes, start_time=end_ns - int(took_ns), kind=SpanKind.INTERNAL
        )
        _fail(span, metadata)
        span.end(end_ns)
        self._events.add(1, {names.OWN_EVENT: ".".join(name)})


def _called(name: Name, metadata: Mapping[str, object]) -> str:
    operation = metadata.get("operation")
    return ".".join(name[:-1]) if operation is None else f"session_actor.{operation}"


def _fail(span: Span, metadata: Mapping[str, object]) -> None:
    error = metadata.get("error")
    if error is not None:
        span.set_status(StatusCode.ERROR)
        span.set_attribute(names.ERROR_TYPE, str(error))


def _attributes(
    metadata: Mapping[str, object], measurements: Mapping[str, float] | None = None
) -> dict[str, AttributeValue]:
    """Plain values, under the library's own names but for the session's; what was said is not among them."""
    found: dict[str, Any] = {}
    for name, value in metadata.items():
        if name == "session":
            found[names.CONVERSATION_ID] = value
        elif name not in ("content", "span") and (isinstance(value, str | bool | int | float) or _words(value)):
            found[f"{names.OWN}.{name}"] = value
    found |= {f"{names.OWN}.{name}": value for name, value in (measurements or {}).items()}
    return found


def _words(value: object) -> bool:
    return isinstance(value, tuple) and all(type(item) is str for item in cast("tuple[object, ...]", value))
