"""The lazy logger: structlog is imported when the first supervisor starts, never configured here."""

from __future__ import annotations

import contextlib
from typing import Any


class SafeLogger:
    """Structlog's logger. A line that cannot be written, to a closed stdout for one, must not fail what it tells of."""

    __slots__ = ("_logger",)

    def __init__(self, logger: Any) -> None:
        """`logger`: structlog's."""
        self._logger = logger

    def info(self, event: str, **values: object) -> None:
        """Log at that level."""
        self._log("info", event, values)

    def warning(self, event: str, **values: object) -> None:
        """Log at that level."""
        self._log("warning", event, values)

    def error(self, event: str, **values: object) -> None:
        """Log at that level."""
        self._log("error", event, values)

    def _log(self, level: str, event: str, values: dict[str, object]) -> None:
        with contextlib.suppress(Exception):
            getattr(self._logger, level)(event, **values)


def logger() -> SafeLogger:
    """Return structlog's logger; what goes in are ids, types and places, never content."""
    import structlog

    return SafeLogger(structlog.get_logger("session_actor.supervisors"))
