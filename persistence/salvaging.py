"""Salvage in an open store: of one session whose files are damaged, and of all that damage of the log concerns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .errors import LineDamaged
from .gap import Link, first_misfit
from .keeping import Aside
from .record import Record, decode_record
from .salvage import SessionCopy, Source, install
from .segment import read_spans
from .session_log import Extent, SessionLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .catalog import CatalogRow
    from .engine import Engine
    from .mending import Salvage
    from .recovery import Recovered
    from .segment import Segment
    from .storage import Disk


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


class Salvager:
    """Salvages sessions of one open store."""

    def __init__(self, disk: Disk, engine: Engine, salvage: Salvage) -> None:
        """Nothing is done yet."""
        self._disk = disk
        self._engine = engine
        self._salvage: Salvage = salvage

    async def session(self, log: SessionLog, lost_at_end: int = 0, kept_at: tuple[str, ...] = ()) -> Salvaged | None:
        """Copy what can be kept of a session to a new birth; all its records must be written. None: nothing can.

        Of a birth that was salvaged or deleted while this waited for its turn nothing can: it is void.

        `lost_at_end`: so many records are known to be lost behind its newest. `kept_at`: what is kept of it already.
        Raises `CatalogCorrupt`, OSError; then nothing has changed.
        """
        engine = self._engine
        async with engine.alone():
            if log.dead or log.dying:
                return None
            segments = [segment for segment in engine.log.live() if log in segment.spans]
            salvaged = await engine.run_cut(lambda: self._copy(log, segments, lost_at_end))
            if salvaged is not None:
                log.dead = True
                engine.snapshotter.discard(log)
                salvaged = salvaged._replace(kept_at=(*kept_at, *salvaged.kept_at))
                engine.events.tell("salvaged", {"lost": salvaged.lost}, session=log.session, kept_at=salvaged.kept_at)
        return salvaged

    def _copy(self, log: SessionLog, segments: list[Segment], lost_at_end: int) -> Salvaged | None:
        catalog, layout = self._engine.catalog, self._engine.layout
        row = catalog.get(log.session)
        if row is not None and row.birth != log.birth:
            row = None
        logged = partial(self._logged, log, segments)
        source = Source(log.session, log.birth, log.created_us, row, logged, lost_at_end, log.unusable)
        copied = SessionCopy(self._disk, layout, catalog, source, self._salvage).run()
        if copied is None:
            return None
        install(self._disk, layout, catalog, source, copied)
        lost = copied.dropped + sum(last - first + 1 for first, last in copied.gaps)
        return Salvaged(log_of(copied.row), copied.dropped, tuple(copied.kept_at), lost)

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

    async def whole_log(self, recovered: Recovered) -> dict[str, Salvaged]:
        """Salvage every session that damage of the log concerns, and move the log into the journals.

        For a store that was just opened. Returns what was salvaged, by session; `recovered.logs` has it, too. Damaged
        segments are kept aside. Raises `StoreCorrupt`, OSError; what was salvaged until then stays so.
        """
        engine, found = self._engine, dict[str, Salvaged]()
        kept_at = await engine.run_cut(lambda: self._keep_segments(recovered))
        for log in [log for log in recovered.logs.values() if not log.dead]:
            lost = _lost_at_end(recovered, log)
            if log.damage is None and await engine.run_cut(partial(self._follows, log)):
                continue
            salvaged = await self.session(log, lost, tuple(kept_at))
            if salvaged is not None:
                found[log.session] = salvaged
                recovered.logs[log.session] = salvaged.log
        recovered.unowned_damage = None
        recovered.proven_whole.clear()
        recovered.damage.clear()
        engine.log.damaged = None
        while await engine.cutter.cut():
            pass
        await engine.cutter.give_up_lost()
        return found

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


def _lost_at_end(recovered: Recovered, log: SessionLog) -> int:
    """How many damaged lines behind its newest record are known to be the session's."""
    owner, last = (log.session, log.birth), recovered.last_lines.get(log, (0, 0))
    return sum(
        (damage.owners or ()).count(owner) for number, damage in recovered.damage if (number, damage.offset) > last
    )
