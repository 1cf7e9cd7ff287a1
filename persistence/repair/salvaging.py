"""Salvage in an open store: of one session whose files are damaged, and of all that damage of the log concerns."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from session_actor.persistence.errors import (
    CatalogCorrupt,
    LineDamaged,
    NotDurable,
    PersistenceError,
    StoreCorrupt,
    StoreVersionTooNew,
)
from session_actor.persistence.files.keeping import Aside
from session_actor.persistence.format.gap import Link, first_misfit
from session_actor.persistence.format.record import Record, decode_record
from session_actor.persistence.log.scan import TOMBSTONE
from session_actor.persistence.log.segment import read_spans
from session_actor.persistence.log.session_log import Extent, SessionLog
from session_actor.persistence.reserve import is_full

from .salvage import SessionCopy, Source, commit_of, old_files, remove_files, void_name

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from session_actor.persistence.catalog.catalog import CatalogRow
    from session_actor.persistence.cutting.cut_commit import CutCommit
    from session_actor.persistence.engine import Engine
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.log.segment import Segment
    from session_actor.persistence.recovery.recovered import Recovered

    from .mending import Salvage
    from .salvage import Copied


class Salvaged(NamedTuple):
    """What salvage made of a session."""

    log: SessionLog
    """The session under its new birth."""
    dropped: int
    """Records that do not count any more, beside those in gaps; see `Copied`."""
    kept_at: tuple[str, ...]
    """Where the originals are."""
    lost: int
    """How many records do not count any more, those in gaps included."""


class _Ready(NamedTuple):
    """A session that is copied, and not yet replaced by its copy."""

    salvaged: Salvaged
    commit: CutCommit
    old_files: list[str]


class Salvager:
    """Salvages sessions of one open store."""

    def __init__(
        self, disk: Disk, engine: Engine, salvage: Salvage, replaced: Callable[[SessionLog, Salvaged], None]
    ) -> None:
        """Nothing is done yet. `replaced(log, salvaged)`: told on the loop of each session, perhaps twice."""
        self._disk = disk
        self._engine = engine
        self._salvage: Salvage = salvage
        self._replaced = replaced
        self._births: dict[str, list[tuple[SessionLog, Segment]]] = {}
        """The births of each session that the log has, and where, once they were asked for."""

    async def session(self, log: SessionLog, lost_at_end: int = 0, kept_at: tuple[str, ...] = ()) -> Salvaged | None:
        """Copy what can be kept of a session to a new birth; all its records must be written. None: nothing can.

        Of a birth that was salvaged or deleted while this waited for its turn nothing can: it is void.

        `lost_at_end`: so many records are known to be lost behind its newest. `kept_at`: what is kept of it already.
        Raises `CatalogCorrupt`, `NotDurable`, OSError; then nothing has changed, or it is not known whether it has:
        whoever holds the session loses it, and it is to be settled before it is lent again.
        """
        engine = self._engine
        async with engine.alone():
            if engine.trouble.lost is not None:
                raise NotDurable(log.appended_seq, "written", str(engine.trouble.lost))
            if log.dead or log.dying or await self._is_void(log):
                return None
            live = engine.log.live()
            try:
                ready = await engine.run_cut(lambda: self._copy(log, live, lost_at_end, kept_at))
                if ready is not None:
                    await self._replace(log, ready)
            except BaseException:
                self._failed(log)
                raise
        return None if ready is None else ready.salvaged

    async def _is_void(self, log: SessionLog) -> bool:
        """Whether the catalog has this birth as dead; whoever holds it loses it then.

        That it has another birth for the session says nothing: it may be older than this one.
        """
        catalog = self._engine.catalog
        is_void = await self._engine.run_cut(lambda: log.birth in catalog.dead_births(log.session))
        if is_void:
            log.dead = True
            log.end_lease()
        return is_void

    def _copy(self, log: SessionLog, live: list[Segment], lost_at_end: int, kept_at: tuple[str, ...]) -> _Ready | None:
        catalog, layout = self._engine.catalog, self._engine.layout
        row = catalog.get(log.session)
        if row is not None and row.birth != log.birth:  # that one is deleted, and the catalog not told yet
            row = None
        logged = partial(self._logged, log, [segment for segment in live if log in segment.spans])
        source = Source(log.session, log.birth, log.created_us, row, logged, lost_at_end, log.unusable)
        copied = SessionCopy(self._disk, layout, catalog, source, self._salvage).run()
        if copied is None:
            return None
        lost = copied.dropped + sum(last - first + 1 for first, last in copied.gaps)
        spare = self._keep_spare(log, live, copied) if lost else ()
        salvaged = Salvaged(log_of(copied.row), copied.dropped, (*kept_at, *copied.kept_at, *spare), lost)
        return _Ready(salvaged, commit_of(catalog, source, copied), old_files(self._disk, layout, source, copied))

    def _keep_spare(self, log: SessionLog, live: list[Segment], copied: Copied) -> list[str]:
        """Keep what is lost and the log still has, as records of a birth that was salvaged before: they go with it."""
        kept: list[bytes] = []
        for other, segments in self._salvaged_before(log, live).items():
            records = list(self._logged(other, segments))
            if not (records and records[-1][0].kind == TOMBSTONE):  # what was deleted is not kept
                kept += [line for record, line in records if _is_lost(record.seq, copied)]
        if not kept:
            return []
        return [Aside(self._disk, self._engine.layout.aside).add(b"".join(kept), void_name(log.session, log.birth))]

    def _salvaged_before(self, log: SessionLog, live: list[Segment]) -> dict[SessionLog, list[Segment]]:
        """The dead births of a session that the log has, and where."""
        if not self._births:
            for segment in live:
                for one in list(segment.spans):  # at once: others may be added meanwhile
                    self._births.setdefault(one.session, []).append((one, segment))
        found: dict[SessionLog, list[Segment]] = {}
        for one, segment in self._births.get(log.session, ()):
            if one is not log and one.dead:
                found.setdefault(one, []).append(segment)
        return found

    async def _replace(self, log: SessionLog, ready: _Ready) -> None:
        """Let the new birth count. When that fails, find out whether it happened all the same."""
        engine, salvaged = self._engine, ready.salvaged

        def made() -> None:
            log.dead = True
            engine.snapshotter.discard(log)
            self._replaced(log, salvaged)
            engine.events.tell("salvaged", {"lost": salvaged.lost}, session=log.session, kept_at=salvaged.kept_at)

        commits = engine.cutter.commits
        try:
            await commits.make(ready.commit, made)
        except (OSError, PersistenceError):
            if not await commits.settle():
                raise
        await engine.run_cut(partial(remove_files, self._disk, ready.old_files))

    def _failed(self, log: SessionLog) -> None:
        """The copy's snapshot may be in the place of one; nothing may be appended to what is perhaps replaced."""
        log.slots = None
        if self._engine.cutter.commits.may_replace(log.session):
            log.end_lease()
            self._engine.snapshotter.forget(log)

    def _logged(self, log: SessionLog, segments: list[Segment]) -> Iterator[tuple[Record, bytes]]:
        """The session's records in the log that can be read."""
        for segment in segments:
            for data in self._read(segment, log):
                try:
                    yield decode_record(data + b"\n"), data + b"\n"
                except LineDamaged:
                    continue

    def _read(self, segment: Segment, log: SessionLog) -> list[bytes]:
        spans, data = segment.written_spans(log), segment.data
        if data is not None:
            return [data[spans[i] : spans[i + 1]] for i in range(0, len(spans), 2)]
        file = self._disk.open(segment.path)
        try:
            return read_spans(file.read, spans)
        finally:
            file.close()

    # --- the log ------------------------------------------------------------------------------------------------------

    async def whole_log(self, recovered: Recovered) -> None:
        """Salvage every session that damage of the log concerns, and move the log into the journals.

        For a store that was just opened. `recovered.logs` has what was salvaged. Damaged segments are kept aside.
        Sessions whose files the disk refuses stay damaged, and the log as long as it takes: this is done again when the
        store is opened next. Raises `CatalogCorrupt`, OSError when the disk is full or refuses the log; what was
        salvaged until then stays so.
        """
        engine, refused = self._engine, set[tuple[str, str]]()
        kept_at = await engine.run_cut(lambda: self._keep_segments(recovered))
        for log in [log for log in recovered.logs.values() if not log.dead]:
            with self._noting("salvage_failed"):
                refused.add((log.session, log.birth))
                if log.damage is not None or not await engine.run_cut(partial(self._follows, log)):
                    await self.session(log, _lost_at_end(recovered, log), tuple(kept_at))
                refused.discard((log.session, log.birth))
            if (log.session, log.birth) in refused:
                log.damage = log.damage or recovered.unowned_damage
        recovered.unowned_damage = None
        recovered.proven_whole.clear()
        recovered.damage = recovered.missed_by(refused)
        engine.log.damaged = min((number for number, _ in recovered.damage), default=None)
        with self._noting("cut_failed"):
            await engine.cutter.cut_all()
        if not recovered.damage:
            await engine.cutter.give_up_lost()

    @contextlib.contextmanager
    def _noting(self, name: str) -> Generator[None]:
        """What is refused of one session says nothing of the others; a full disk, or a damaged catalog, does."""
        try:
            yield
        except CatalogCorrupt:
            raise
        except (OSError, StoreCorrupt, StoreVersionTooNew) as error:
            if is_full(error):
                raise
            self._engine.trouble.note(error, name)

    def _keep_segments(self, recovered: Recovered) -> list[str]:
        aside = Aside(self._disk, self._engine.layout.aside)
        kept: list[str] = []
        for path in sorted({damage.path for _, damage in recovered.damage}):
            place = aside.copy(path, f"{path.rpartition('/')[2]}.damaged")
            if place is not None:
                kept.append(place)
        return kept

    def _follows(self, log: SessionLog) -> bool:
        """Whether the session's records in the log follow one another and what its journal holds."""
        segments = [segment for segment in self._engine.log.sealed if log in segment.spans]
        extent = log.extent
        before = Link() if extent is None else Link(extent.seq, extent.sum)
        return first_misfit((record for record, _ in self._logged(log, segments)), before) is None


def log_of(row: CatalogRow) -> SessionLog:
    """A session that is whole in its journal."""
    return SessionLog(row.session, row.birth, row.created_us, Extent(row.journal, row.bytes, row.seq, row.sum, row.crc))


def _is_lost(seq: int, copied: Copied) -> bool:
    return seq > copied.row.seq or any(first <= seq <= last for first, last in copied.gaps)


def _lost_at_end(recovered: Recovered, log: SessionLog) -> int:
    """How many damaged lines behind its newest record are known to be the session's."""
    owner, last = (log.session, log.birth), recovered.last_lines.get(log, (0, 0))
    return sum(
        (damage.owners or ()).count(owner) for number, damage in recovered.damage if (number, damage.offset) > last
    )
