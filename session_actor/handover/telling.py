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


@contextmanager
def handing_over(to: str, measured: dict[str, float]) -> Generator[None]:
    """Tell the start of a handover, and its stop or its exception; `measured` is told at the start and at the stop."""
    begun_s = perf_counter()
    tell("start", dict(measured), to=to)
    try:
        yield
    except BaseException as error:
        tell("exception", {"duration_ms": ms_since(begun_s)}, to=to, error=type(error).__name__)
        raise
    tell("stop", {"duration_ms": ms_since(begun_s), **measured}, to=to)
