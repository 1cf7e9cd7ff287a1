"""OpenTelemetry: `otel.instrument()` turns the library's events into spans and metrics (extra `otel`)."""

from __future__ import annotations

try:
    from .bridge import instrument
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('session_actor.otel needs OpenTelemetry: pip install "session-actor[otel]"') from error

__all__ = ["instrument"]
