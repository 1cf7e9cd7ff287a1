"""What the runtime asks of a supervisor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .events import OnEvent
    from .exits import ExitReason
    from .slot import Slot


class SupervisorBase(ABC):
    """A behaviour whose task starts, watches and stops children."""

    on_event: OnEvent | None
    slot: Slot | None
    """The supervisor's own place; None before its first start."""

    @property
    @abstractmethod
    def parent(self) -> SupervisorBase | None:
        """The supervisor above, None for a root."""

    @abstractmethod
    async def open(self, slot: Slot) -> None:
        """Start the children in `slot`'s task; returns early when the supervisor is asked to end meanwhile."""

    @abstractmethod
    async def live(self, slot: Slot) -> ExitReason:
        """Work until asked to end; raises RestartsExhausted when a child used its restarts."""

    @abstractmethod
    async def close(self, slot: Slot) -> None:
        """Stop the children."""

    @abstractmethod
    def kill_children(self) -> None:
        """Kill the children, at once."""

    @abstractmethod
    def child_ended(self, slot: Slot, reason: ExitReason) -> None:
        """Decide what follows the end of a child's incarnation."""
