"""What a cut or a salvage commits to the catalog, and whether it did: a commit that reports an error may have happened.

SQLite commits by truncating its rollback journal, and syncs that afterwards. When the disk refuses that sync, the
commit has failed for who made it, and everybody who reads has what it wrote: nobody may write those journals again
before it is known which of both is so, and no record may be taken for a birth that is perhaps replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.persistence.catalog.catalog import Catalog
from session_actor.persistence.reserve import is_full

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.catalog.catalog import CatalogRow
    from session_actor.persistence.catalog.catalog_files import FileRow
    from session_actor.persistence.files.disk_thread import DiskThread, Result
    from session_actor.persistence.format.header import RecordRef, SegmentRef
    from session_actor.persistence.log.log import Log
    from session_actor.persistence.trouble import Trouble

_ASKED_ROWS: Final = 32


class CutCommit(NamedTuple):
    """One transaction: see `Catalog.commit_cut`. Methods block."""

    rows: list[CatalogRow]
    sealed: list[FileRow]
    dead: list[tuple[str, str]]
    first_live: int
    log_end: SegmentRef | None = None
    bases: tuple[tuple[str, str, RecordRef], ...] = ()

    def make(self, catalog: Catalog) -> None:
        """Raises OSError, `CatalogCorrupt`: it may have happened all the same."""
        catalog.commit_cut(self.rows, self.dead, self.first_live, self.sealed, self.log_end, self.bases)

    def is_made(self, catalog: Catalog) -> bool:
        """Whether it happened, after it failed; what is so is on the disk then. Raises OSError, `CatalogCorrupt`."""
        catalog.settle()
        if catalog.first_live_segment() != self.first_live:
            return False
        for first in range(0, len(self.rows), _ASKED_ROWS):
            rows = self.rows[first : first + _ASKED_ROWS]
            if catalog.get_all([row.session for row in rows]) != rows:
                return False
        return all(birth in catalog.dead_births(session) for session, birth in self.dead)

    def replaces(self, session: str) -> bool:
        """Whether it gives a session another birth in the place of the one that it has."""
        return any(row.session == session for row in self.rows) and any(dead == session for dead, _ in self.dead)


class Commits:
    """The commits of one open store. One that failed is in doubt until it is known whether it happened.

    The lock of who changes the catalog must be held, and nothing be in doubt, when one is made.
    """

    def __init__(self, catalog: Catalog, thread: DiskThread, trouble: Trouble, log: Log) -> None:
        """`thread`: where the catalog is used. `log`: holds room for commits on a full disk."""
        self._catalog = catalog
        self._thread = thread
        self._trouble = trouble
        self._log = log
        self._doubt: tuple[CutCommit, Callable[[], None], Callable[[], None]] | None = None
        """The one that failed, and what is to be done if it has happened, and if it has not."""

    async def make(
        self,
        commit: CutCommit,
        made: Callable[[], None],
        ended: Callable[[], None] | None = None,
        unmade: Callable[[], None] = lambda: None,
    ) -> None:
        """Make it valid; `made` is told then, and `ended` in any case, even if nobody waits any more.

        `unmade` is told in the thread when it is known that it failed and has not happened.

        Raises OSError, `CatalogCorrupt`: it is in doubt. `made` may be told twice, when it was interrupted.
        """

        def then(error: BaseException | None) -> None:
            try:
                self._doubt = commit, made, unmade  # until all of it is done, whatever is raised meanwhile
                if error is None:
                    made()
                    self._doubt = None
            finally:
                if ended is not None:
                    ended()

        await self._thread.run(lambda: self._with_room(commit.make), then)

    def _with_room(self, job: Callable[[Catalog], Result]) -> Result:
        """Do it, and on a full disk once more in the room that is held for it: a commit may be made again."""
        try:
            return job(self._catalog)
        except OSError as error:
            if not (is_full(error) and self._log.commit_room.give_up()):
                raise
            return job(self._catalog)

    async def prepare(self) -> None:
        """`settle`, and remove what earlier cuts left of the log because the disk refused to settle the catalog.

        Raises OSError, `CatalogCorrupt`: it is tried again by the next cut.
        """
        await self.settle()
        if self._log.leftovers:
            await self._thread.run(lambda: self._with_room(Catalog.settle))
            await self._thread.run(self._log.remove_leftovers)

    async def settle(self) -> bool:
        """Find out whether the commit that is in doubt happened, and tell its `made`; False: not, or none is in doubt.

        Raises OSError, `CatalogCorrupt`: it is still not known.
        """
        if self._doubt is None or self._trouble.lost is not None:
            return False
        commit, made, unmade = self._doubt
        is_made = await self._thread.run(lambda: self._with_room(commit.is_made))
        self._doubt = None
        if is_made:
            made()
        else:
            await self._thread.run(unmade)
        return is_made

    def may_replace(self, session: str) -> bool:
        """Whether the one that is in doubt may have given a session another birth."""
        return self._doubt is not None and self._doubt[0].replaces(session)
