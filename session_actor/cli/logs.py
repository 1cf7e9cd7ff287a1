"""What the library logs while a command runs: notes on stderr. By itself structlog prints to stdout, among the data."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

from .codes import note

if TYPE_CHECKING:
    from collections.abc import Generator, MutableMapping


@contextlib.contextmanager
def logs_as_notes() -> Generator[None]:
    """Meanwhile each warning of the log is a note, harmless as all are. Loads structlog, which takes a while."""
    import structlog

    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(
        processors=[_in_words],
        logger_factory=_Notes,
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
    )
    try:
        yield
    finally:
        if before is None:
            structlog.reset_defaults()
        else:
            structlog.configure(**before)


def _in_words(_logger: object, level: str, said: MutableMapping[str, Any]) -> str:
    event = said.pop("event")
    if event == "model_unknown":
        said["advice"] = "give a file with its profile: --profiles FILE"
    return f"{level}: {event}" + "".join(f", {name}={value}" for name, value in said.items())


class _Notes:
    """What structlog writes to."""

    def __init__(self, *_: object) -> None:
        """The names of loggers are not shown."""

    def msg(self, text: str) -> None:
        """Write one line."""
        note(text)

    debug = info = warning = error = critical = msg
