"""The lazy logger: structlog is imported when the first supervisor starts, never configured here."""

from __future__ import annotations

import contextlib


class SafeLogger:
    """Structlog's logger. A line that cannot be written, to a closed stdout for one, must not fail what it tells of."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        """`name`: of the logger."""
        self._name = name

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
        import structlog

        with contextlib.suppress(Exception):
            getattr(structlog.get_logger(self._name), level)(event, **values)


_LOGGER = SafeLogger("session_actor.supervisors")


def logger() -> SafeLogger:
    """Return structlog's logger, imported now; what goes in are ids, types and places, never content."""
    import structlog  # noqa: F401 - when the first supervisor starts, not when it has something to tell

    return _LOGGER
