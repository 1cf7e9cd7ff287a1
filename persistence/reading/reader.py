"""Reading a store without its lock: one in use, one that is closed, a copy, or a damaged one. Nothing of it is changed.

A look takes a copy of the catalog first, and then the log behind it, so that no record is in neither. What a cut, a
pruning or a deletion moves away while it is read is looked for anew; what is damaged is found twice before it is
believed: a line that is just being written may seem so once.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from session_actor.persistence.catalog.catalog import Catalog
from session_actor.persistence.catalog.live_catalog import copy_live
from session_actor.persistence.checking.log_survey import LogSurvey
from session_actor.persistence.checking.tree import LookingDisk
from session_actor.persistence.checking.verify import rebuild_from
from session_actor.persistence.errors import (
    CatalogCorrupt,
    LineDamaged,
    SessionTombstoned,
    SessionUnknown,
    StoreCorrupt,
)
from session_actor.persistence.files.names import check_session_id
from session_actor.persistence.foreign import check_store_there
from session_actor.persistence.layout import Layout
from session_actor.persistence.store import SessionInfo

from .reader_log import LogView
from .session_lines import SessionLines

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from session_actor.persistence.catalog.catalog import CatalogRow
    from session_actor.persistence.files.storage import Disk

    from .reader_log import Logged

PAGE: Final = 500
_TRIES: Final = 50
"""So often a store that changes all the time is looked at before that is an error."""


class Look(NamedTuple):
    """What a store was at one moment."""

    catalog: Catalog
    log: LogView
    folder: tempfile.TemporaryDirectory[str]
    """Where the copy of the catalog is."""

    def close(self) -> None:
        """Remove the copy."""
        self.catalog.close()
        self.folder.cleanup()


class StoreReader:
    """One store, as it was when it was looked at last. Its methods block; use it in one thread at a time."""

    def __init__(self, root: str | os.PathLike[str], disk: Disk | None = None) -> None:
        """Looks at the store. `disk`: None: the real one.

        Raises `NotAStore`, `StoreVersionTooNew`, `StoreCorrupt`, OSError.
        """
        self.layout = Layout(root)
        self.disk: Disk = LookingDisk() if disk is None else disk
        check_store_there(self.layout)
        self._look: Look | None = self._settled()

    @property
    def look(self) -> Look:
        """What was found last. Raises ValueError once it is closed."""
        if self._look is None:
            raise ValueError(f"the reader of {self.layout.root} is closed")
        return self._look

    def refresh(self, between: Callable[[], None] | None = None) -> None:
        """Look again. Raises what making one does; what was found before stays then.

        `between()`: called when the catalog was copied and the log was not read yet.
        """
        before = self.look
        self._look = self._settled(between)
        before.close()

    def close(self) -> None:
        """Let go of what was found; again: no effect."""
        if self._look is not None:
            self._look.close()
            self._look = None

    def __enter__(self) -> Self:
        """The reader itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    # --- sessions -----------------------------------------------------------------------------------------------------

    def sessions(self, prefix: str = "") -> Iterator[SessionInfo]:
        """Every session whose id starts with `prefix`, by code points. No record is read but those in the log."""
        logged = self.look.log.newest
        waiting = sorted((name for name in logged if name.startswith(prefix)), reverse=True)
        after: str | None = None
        while page := self._page(prefix, after):
            for row, size in page:
                while waiting and waiting[-1] < row.session:
                    name = waiting.pop()
                    yield from self._only_logged(name, logged[name])
                if waiting and waiting[-1] == row.session:
                    waiting.pop()
                yield from self._of(row, logged.get(row.session), size)
            after = page[-1][0].session
        for name in reversed(waiting):
            yield from self._only_logged(name, logged[name])

    def _page(self, prefix: str, after: str | None) -> list[tuple[CatalogRow, int]]:
        """The next rows of the catalog, and how large those journals are [bytes]."""
        catalog = self.look.catalog
        rows = catalog.rows(prefix, after, PAGE)
        sizes = catalog.files.sizes(rows[0].session, rows[-1].session) if rows else {}
        return [(row, row.bytes + sizes.get((row.session, row.birth), 0)) for row in rows]

    def find(self, session: str) -> SessionInfo:
        """One session. Raises `SessionUnknown`, `SessionTombstoned`, `UnusableId`, `CatalogCorrupt`."""
        session, (catalog, log, *_) = check_session_id(session), self.look
        row, logged = catalog.get(session), log.newest.get(session)
        if row is None:
            found = self._only_logged(session, logged)
        else:
            sizes = catalog.files.sizes(session, session)
            found = self._of(row, logged, row.bytes + sizes.get((session, row.birth), 0))
        for info in found:
            return info
        if catalog.dead_births(session) or log.has_dead(session):
            raise SessionTombstoned(session)
        raise SessionUnknown(session, "see which there are")

    def lines(self, session: str) -> SessionLines:
        """What reads the records of a session. Raises as `find`."""
        return SessionLines(self, self.find(session))

    def _only_logged(self, session: str, logged: Logged | None) -> Iterator[SessionInfo]:
        """A session that no journal is known of."""
        if logged is not None and logged.birth not in self.look.catalog.dead_births(session):
            yield SessionInfo(session, logged.birth, logged.created_us, logged.last_seq, 0)

    def _of(self, row: CatalogRow, logged: Logged | None, size: int) -> Iterator[SessionInfo]:
        """A session with a journal. `logged`: what the log has of its name; `size`: of its journal."""
        if self.look.log.is_dead(row.session, row.birth):
            yield from self._only_logged(row.session, logged)
            return
        seq = row.seq
        if logged is not None and logged.birth == row.birth:  # another one was deleted before, as the catalog knows
            seq = max(seq, logged.last_seq)
        yield SessionInfo(row.session, row.birth, row.created_us, seq, size)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _settled(self, between: Callable[[], None] | None = None) -> Look:
        """A look that found no damage, or the same damage twice."""
        told: object = None
        for _ in range(_TRIES):
            try:
                look = self._take(between)
            except (FileNotFoundError, CatalogCorrupt, LineDamaged) as error:
                if str(error) == told:
                    raise
                told = str(error)
                continue
            damage = look.log.damage
            if not damage or damage == told:
                return look
            told = damage
            look.close()
        raise StoreCorrupt(self.layout.log, f"it was found damaged in another place each of {_TRIES} times")

    def _take(self, between: Callable[[], None] | None) -> Look:
        folder = tempfile.TemporaryDirectory(prefix="session-actor-")
        try:
            survey = LogSurvey(self.disk, self.layout.log)
            catalog = self._catalog(folder.name, survey)
            try:
                if between is not None:
                    between()
                if not survey.was_read:
                    survey.read(catalog.first_live_segment(), catalog.log_end())
                return Look(catalog, LogView(self.disk, survey), folder)
            except BaseException:
                catalog.close()
                raise
        except BaseException:
            folder.cleanup()
            raise

    def _catalog(self, folder: str, survey: LogSurvey) -> Catalog:
        """A copy of the catalog; of a damaged one that which repair would make. The survey is then read for it."""
        finished = True
        with contextlib.suppress(StoreCorrupt):  # that FORMAT alone is damaged hides no record
            finished = self.layout.is_finished(self.disk)
        try:
            return copy_live(self.disk, self.layout.catalog, folder)
        except CatalogCorrupt:
            if not finished:
                catalog = Catalog(f"{folder}/empty.db")
                catalog.open(create=True)
                return catalog
        survey.read(None)
        rebuilt = Path(folder) / "rebuilt.db"
        return rebuild_from(self.disk, self.layout, str(rebuilt), survey, f"{folder}/catalog.db")
