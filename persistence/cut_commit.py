"""What a cut commits to the catalog, and whether it did: a commit that reports an error may have happened.

SQLite commits by truncating its rollback journal, and syncs that afterwards. When the disk refuses that sync, the
commit has failed for who made it, and everybody who reads has what it wrote: nobody may write those journals again
before it is known which of both is so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from .catalog import Catalog
    from .cut_journals import Grown
    from .header import SegmentRef

_ASKED_ROWS: Final = 32


class CutCommit(NamedTuple):
    """One transaction: see `Catalog.commit_cut`. Methods block."""

    grown: list[Grown]
    dead: list[tuple[str, str]]
    first_live: int
    log_end: SegmentRef | None

    def make(self, catalog: Catalog) -> None:
        """Raises OSError, `CatalogCorrupt`: it may have happened all the same."""
        sealed = (row for one in self.grown for row in one.sealed)
        catalog.commit_cut((one.row for one in self.grown), self.dead, self.first_live, sealed, self.log_end)

    def is_made(self, catalog: Catalog) -> bool:
        """Whether it happened, after it failed; what is so is on the disk then. Raises OSError, `CatalogCorrupt`."""
        catalog.settle()
        if catalog.first_live_segment() != self.first_live:
            return False
        for first in range(0, len(self.grown), _ASKED_ROWS):
            rows = [one.row for one in self.grown[first : first + _ASKED_ROWS]]
            if catalog.get_all([row.session for row in rows]) != rows:
                return False
        return all(birth in catalog.dead_births(session) for session, birth in self.dead)
