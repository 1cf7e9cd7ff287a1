"""Which of many was used longest ago: a heap that is corrected when it is asked, so that using costs nothing here."""

from __future__ import annotations

import heapq
from math import inf
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Item = TypeVar("Item")

_CLEAN_AT: Final = 64


class Recency(Generic[Item]):
    """Holds items with the time of their last use, as far as it knew when they were added.

    The items themselves keep their newest time; `least` reads it and moves items that were used meanwhile, so that the
    answer is exact and each use costs one heap operation at most (lazy update, as timer heaps do it).
    """

    def __init__(self, used_s: Callable[[Item], float | None]) -> None:
        """`used_s` tells when an item was last used [seconds]; None: the item is gone and is to be forgotten."""
        self._used_s = used_s
        self._heap: list[tuple[float, int, Item]] = []
        self._added = 0
        self._clean_at = _CLEAN_AT

    def add(self, item: Item, used_s: float) -> None:
        """Add an item that was last used at `used_s`."""
        if len(self._heap) >= self._clean_at:
            self._clean()
        self._added += 1
        heapq.heappush(self._heap, (used_s, self._added, item))

    def _clean(self) -> None:
        """Forget what is gone, when half of the heap may be: else the dead would be held until they come to the top."""
        self._heap = [entry for entry in self._heap if self._used_s(entry[2]) is not None]
        heapq.heapify(self._heap)
        self._clean_at = max(_CLEAN_AT, 2 * len(self._heap))

    def __len__(self) -> int:
        """How many items are held, those included that may be gone."""
        return len(self._heap)

    def least(self, before_s: float = inf) -> Item | None:
        """Take out the item that was used longest ago, if that was before `before_s`.

        None when there is none. The caller adds it again if it is to stay.
        """
        heap = self._heap
        while heap:
            known_s, order, item = heap[0]
            if known_s >= before_s:
                return None
            used_s = self._used_s(item)
            if used_s is None:
                heapq.heappop(heap)
            elif used_s > known_s:
                heapq.heapreplace(heap, (used_s, order, item))
            else:
                heapq.heappop(heap)
                return item
        return None
