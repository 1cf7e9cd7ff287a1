"""What a supervisor tells about its children."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from .errors import CrashSummary, shown
from .log import logger

if TYPE_CHECKING:
    from .exits import ExitReason
    from .slot import Slot
    from .supervisor_base import SupervisorBase

EventKind = Literal[
    "started",
    "crashed",
    "restarting",
    "stopped",
    "quarantined",
    "released",
    "exhausted",
    "gave_up",
    "leaked",
    "mailbox_full",
]


class Event(NamedTuple):
    """One thing that happened to a child."""

    kind: EventKind
    id: object
    reason: ExitReason | None
    restarts: int
    """Restarts of this child so far."""
    delay_s: float
    """Seconds until the restart, with `restarting`; else 0."""
    waiting: int = 0
    """Messages in the mailbox, with `mailbox_full`; else 0."""


OnEvent = Callable[[Event], None]

_LOGGED = {
    "crashed": "server_crashed",
    "leaked": "server_leaked",
    "quarantined": "server_quarantined",
    "gave_up": "gave_up",
}


def emit(  # noqa: PLR0917 - the rarer the later
    supervisor: SupervisorBase | None,
    kind: EventKind,
    slot: Slot,
    reason: ExitReason | None = None,
    delay_s: float = 0.0,
    waiting: int = 0,
) -> None:
    """Tell the nearest hook upwards; log what an operator must know. A hook that raises is detached."""
    if kind in _LOGGED:
        error = None if reason is None or reason.error is None else str(CrashSummary.of(reason.error))
        logger().warning(_LOGGED[kind], server=shown(slot.id, str), error=error, restarts=slot.restarts)
    while supervisor is not None and supervisor.on_event is None:
        supervisor = supervisor.parent
    if supervisor is None or supervisor.on_event is None:
        return
    try:
        supervisor.on_event(Event(kind, slot.id, reason, slot.restarts, delay_s, waiting))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - the watcher's fault, also a CancelledError, is not the tree's
        supervisor.on_event = None
        logger().warning("event_hook_detached", error=str(CrashSummary.of(error)))
