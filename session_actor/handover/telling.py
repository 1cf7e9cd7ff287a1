"""The events of handovers; all of them are in docs/handover.md."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Final

from session_actor import telemetry

if TYPE_CHECKING:
    from collections.abc import Generator

EVENT: Final = ("session_actor", "handover")


def tell(what: str, measurements: dict[str, float], **metadata: object) -> None:
    """Tell an event to whoever is attached."""
    if telemetry.attached:
        telemetry.emit((*EVENT, what), measurements, metadata)


def ms_since(begun_s: float) -> float:
    """Milliseconds since a moment of `perf_counter`."""
    return (perf_counter() - begun_s) * 1000


class HandingOver:
    """One handover, as it is told."""

    def __init__(self, to: str, measured: dict[str, float]) -> None:
        """Tell its start. `measured` is told at the start and at the stop."""
        self._begun_s = perf_counter()
        self._to = to
        self._measured = measured
        self.goes_on = False
        """Nobody waits for it any more, and its end is told all the same."""
        tell("start", dict(measured), to=to)

    def end(self, error: BaseException | None) -> None:
        """Tell its stop, or its exception."""
        took: dict[str, float] = {"duration_ms": ms_since(self._begun_s)}
        if error is None:
            tell("stop", {**took, **self._measured}, to=self._to)
        else:
            tell("exception", took, to=self._to, error=type(error).__name__)


@contextmanager
def handing_over(to: str, measured: dict[str, float]) -> Generator[HandingOver]:
    """Tell the start of a handover, and its end unless it goes on without this."""
    telling = HandingOver(to, measured)
    try:
        yield telling
    except BaseException as error:
        if not telling.goes_on:
            telling.end(error)
        raise
    telling.end(None)
