"""OpenTelemetry: `otel.instrument()` turns the library's events into spans and metrics (extra `otel`)."""

from __future__ import annotations

try:
    from .bridge import instrument
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "session_actor.otel needs opentelemetry-api, which comes with the extra `otel`; exporters: opentelemetry-sdk"
    ) from error

__all__ = ["instrument"]
