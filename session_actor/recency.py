"""Which of many was used longest ago: a heap that is corrected when it is asked, so that using costs nothing here."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Item = TypeVar("Item")


class Recency(Generic[Item]):
    """Holds items with the tick of their last use, as far as it knew when they were added.

    The items themselves keep their newest tick; `least` reads it and moves items that were used meanwhile, so that the
    answer is exact and each use costs one heap operation at most (lazy update, as timer heaps do it).
    """

    def __init__(self, used: Callable[[Item], int | None]) -> None:
        """`used` tells the tick of an item's last use; None: the item is gone and is to be forgotten."""
        self._used = used
        self._heap: list[tuple[int, int, Item]] = []
        self._added = 0

    def add(self, item: Item, tick: int) -> None:
        """Add an item that was used at `tick`."""
        self._added += 1
        heapq.heappush(self._heap, (tick, self._added, item))

    def least(self, before: int | None = None) -> Item | None:
        """Take out the item that was used longest ago, if that was before tick `before` (None: whenever).

        None when there is none. The caller adds it again if it is to stay.
        """
        heap = self._heap
        while heap:
            known, order, item = heap[0]
            if before is not None and known >= before:
                return None
            used = self._used(item)
            if used is None:
                heapq.heappop(heap)
            elif used > known:
                heapq.heapreplace(heap, (used, order, item))
            else:
                heapq.heappop(heap)
                return item
        return None
