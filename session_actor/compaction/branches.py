"""What a session's branches are, as a value: their heads, and what of them is contaminated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session_actor.stack import Retractions
    from session_actor.state.table import Table

    from .retracting import Contamination


class Branches(dict[str, "int | None"]):
    """The branches of a session by their names, each with the frame id of its head (None: empty).

    A dict of your own, which never changes by itself; `contaminated` tells what of them came after an assumption that
    was retracted, as `Stack.contaminated` does of one.
    """

    __slots__ = ("_retractions", "_table")

    def __init__(self, heads: Mapping[str, int | None], table: Table, retractions: Retractions | None) -> None:
        """`retractions`: what stacks need to know of them; None: there are none."""
        super().__init__(heads)
        self._table = table
        self._retractions = retractions

    def contaminated(self) -> dict[str, Contamination]:
        """Of each branch that has any, the frames that are contaminated and the last clean one, as of now.

        Costs nothing where nothing was retracted, else O(n) for each branch. It blocks to read frames that are still on
        the disk; `Session.contaminated` does not.
        """
        if self._retractions is None:
            return {}
        stacks = ((name, Stack(self._table, head, None, self._retractions)) for name, head in self.items())
        return {name: found for name, stack in stacks if (found := stack.contaminated())}
