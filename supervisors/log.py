"""The lazy logger: structlog is imported when the first supervisor starts, never configured here."""

from __future__ import annotations

from typing import Any


def logger() -> Any:
    """Return structlog's logger; what goes in are ids, types and places, never content."""
    import structlog

    return structlog.get_logger("session_actor.supervisors")
