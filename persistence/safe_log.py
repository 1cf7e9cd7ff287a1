"""The lazy logger: structlog is imported when there is something to log, and never configured."""

from __future__ import annotations

import contextlib
from typing import Final


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


LOGGER: Final = SafeLogger("session_actor.persistence")
"""What goes in is no content."""
