"""What hears of the ends of a slot, and what ends with its incarnation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .exits import ExitReason


class Tied:
    """Something with ends: of each incarnation, and the last one, its own."""

    __slots__ = ("owned", "watchers")

    def __init__(self) -> None:
        """Nobody hears of it, and nothing ends with it."""
        self.watchers: dict[Callable[[ExitReason, bool], None], None] | None = None
        self.owned: set[Callable[[], None]] | None = None

    def own(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` when the current incarnation ends."""
        if self.owned is None:
            self.owned = set()
        self.owned.add(cancel)

    def cancel_owned(self) -> None:
        """Call what `own` was given."""
        owned, self.owned = self.owned, None
        for cancel in owned or ():
            cancel()

    def disown(self, cancel: Callable[[], None]) -> None:
        """Forget what `own` was given."""
        if self.owned is not None:
            self.owned.discard(cancel)

    def watch(self, hear: Callable[[ExitReason, bool], None]) -> None:
        """Call `hear(reason, restarting)` at each end of an incarnation, and at that of the slot."""
        if self.watchers is None:
            self.watchers = {}
        self.watchers[hear] = None

    def unwatch(self, hear: Callable[[ExitReason, bool], None]) -> None:
        """Forget what `watch` was given."""
        (self.watchers or {}).pop(hear, None)

    def tell_end(self, reason: ExitReason, *, restarting: bool) -> None:
        """Tell who watches; after the last end nobody does."""
        watchers = tuple(self.watchers or ())
        if not restarting:
            self.watchers = None
        for hear in watchers:
            hear(reason, restarting)
