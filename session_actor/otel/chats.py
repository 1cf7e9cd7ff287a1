"""The calls of models, as far as a session knows of them: from a request that it gave out to the reply it was given."""

from __future__ import annotations

from collections import OrderedDict
from time import perf_counter
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import SpanKind, StatusCode

from session_actor.frames import Frame
from session_actor.requests.request import Request

from . import conventions as names
from .messages import of_request, of_turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span, Tracer

MOST_WAITING: Final = 1_000
"""So many requests wait for their replies: the oldest is given up for another, and has no span."""
_USED: Final = {
    "input_tokens": names.INPUT_TOKENS,
    "output_tokens": names.OUTPUT_TOKENS,
    "cache_read_tokens": names.CACHE_READ_TOKENS,
    "cache_write_tokens": names.CACHE_WRITE_TOKENS,
}


class Chats:
    """Spans and metrics of model calls."""

    def __init__(self, tracer: Tracer, meter: Meter) -> None:
        """No reply is waited for."""
        self._tracer = tracer
        self._waiting: OrderedDict[tuple[object, object], tuple[Span, dict[str, str], float]] = OrderedDict()
        self._tokens = meter.create_histogram(
            names.TOKEN_USAGE,
            "{token}",
            "Tokens that providers charged for.",
            explicit_bucket_boundaries_advisory=names.TOKEN_BOUNDS,
        )
        self._took = meter.create_histogram(
            names.OPERATION_DURATION,
            "s",
            "From a request that was given out to its reply.",
            explicit_bucket_boundaries_advisory=names.DURATION_BOUNDS,
        )

    def operated(self, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """An operation is through: it may have given out a request, or brought a reply."""
        kind = metadata.get("kind")
        if kind == "requested":
            self._asked(measurements, metadata)
        elif kind == "request_failed":
            self._over(metadata, {}, "refused")
        elif kind == "pushed" and ("output_tokens" in measurements or metadata.get("request") is not None):
            self._answered(measurements, metadata)

    def _asked(self, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        labels = _labels(metadata)
        name = f"{names.CHAT} {metadata.get('model')}"
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=labels)
        span.set_attribute(names.CONVERSATION_ID, str(metadata["session"]))
        span.set_attribute(names.REQUEST_MAX_TOKENS, int(measurements["max_output_tokens"]))
        self.say(span, metadata.get("content"))
        self._waiting[metadata["session"], metadata["request"]] = span, labels, perf_counter()
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)

    def _answered(self, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        labels = self._over(metadata, measurements, None) or _labels(metadata)
        if metadata.get("model") is not None:
            labels[names.RESPONSE_MODEL] = str(metadata["model"])
        for kind in ("input", "output"):
            count = measurements.get(f"{kind}_tokens")
            if count is not None:
                self._tokens.record(count, {**labels, names.TOKEN_TYPE: kind})

    def _over(
        self, metadata: Mapping[str, object], measurements: Mapping[str, float], error: str | None
    ) -> dict[str, str] | None:
        """End the span of the request; returns what a metric says of it, None when it is not known."""
        found = self._waiting.pop((metadata["session"], metadata.get("request")), None)
        if found is None:
            return None
        span, labels, begun_s = found
        for count, name in _USED.items():
            if count in measurements:
                span.set_attribute(name, int(measurements[count]))
        if metadata.get("model") is not None:
            span.set_attribute(names.RESPONSE_MODEL, str(metadata["model"]))
        if metadata.get("stop_reason") is not None:
            span.set_attribute(names.FINISH_REASONS, (str(metadata["stop_reason"]),))
        told = labels
        if error is not None:
            span.set_status(StatusCode.ERROR)
            span.set_attribute(names.ERROR_TYPE, error)
            told = {**labels, names.ERROR_TYPE: error}
        self.say(span, metadata.get("content"))
        span.end()
        self._took.record(perf_counter() - begun_s, told)
        return dict(labels)

    def say(self, span: Span, content: object) -> None:
        """Put what was said into a span, where that was asked for."""
        if isinstance(content, Request):
            system, messages = of_request(content)
            if system is not None:
                span.set_attribute(names.SYSTEM_INSTRUCTIONS, system)
            span.set_attribute(names.INPUT_MESSAGES, messages)
        elif isinstance(content, Frame):
            said, heard = of_turns(content.turns)
            if said:
                span.set_attribute(names.OUTPUT_MESSAGES, said)
            if heard:
                span.set_attribute(names.INPUT_MESSAGES, heard)


def _labels(metadata: Mapping[str, object]) -> dict[str, str]:
    """What a metric says of a call: never whose it was."""
    labels = {
        names.OPERATION_NAME: names.CHAT,
        names.PROVIDER_NAME: names.PROVIDERS.get(str(metadata.get("dialect")), names.UNKNOWN),
    }
    if metadata.get("model") is not None:
        labels[names.REQUEST_MODEL] = str(metadata["model"])
    return labels
