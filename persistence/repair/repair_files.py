"""The steps of a repair that change single files, and the catalog."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.persistence.catalog.catalog import Catalog, CatalogRow
from session_actor.persistence.catalog.catalog_copy import copy_catalog
from session_actor.persistence.catalog.catalog_files import FileRow
from session_actor.persistence.checking.findings import Findings
from session_actor.persistence.checking.log_survey import LogSurvey
from session_actor.persistence.checking.tree import check_tree, is_folder
from session_actor.persistence.checking.verify import rebuild_from
from session_actor.persistence.errors import CatalogCorrupt
from session_actor.persistence.files.keeping import PIECE_BYTES, Aside
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.files.storage import DIRECTORY_MODE, FILE_MODE, OsDisk
from session_actor.persistence.format.frame_index import frames_in
from session_actor.persistence.format.record import NO_SUM
from session_actor.persistence.journals.beyond import beyond, unknown
from session_actor.persistence.journals.journal import Part
from session_actor.persistence.journals.journal_index import IndexBuilder
from session_actor.persistence.journals.journal_walk import Good, Walk

from .mending import time_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.checking.findings import Finding
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.journals.beyond import Beyond
    from session_actor.persistence.layout import Layout

    from .repairs import Step

TEMPORARY: Final = ".new"


class FileRepair:
    """Does steps in a store whose lock is held. All methods block, and raise OSError when the disk refuses."""

    def __init__(self, disk: Disk, layout: Layout) -> None:
        """Nothing is done yet."""
        self._disk = disk
        self._layout = layout
        self._aside = Aside(disk, layout.aside)

    def do(self, step: Step) -> None:
        """Do one step."""
        doing: dict[str, Callable[[Step], None]] = {
            "not_a_folder": self._replace_folder,
            "format": self._write_format,
            "catalog": self._rebuild_catalog,
            "mode": self._make_private,
            "leftover": self._remove,
            "dead": self._remove,
            "tail": self._cut_off,
            "uncounted": self._count_beyond,
            "journal_row": self._count_anew,
            "index": self._index_anew,
        }
        doing.get(step.kind, self._set_aside)(step)

    # --- names --------------------------------------------------------------------------------------------------------

    def _set_aside(self, step: Step) -> None:
        self._aside.move(step.path, f"{_name(step.path)}.{step.kind}")

    def _replace_folder(self, step: Step) -> None:
        self._set_aside(step)
        self._disk.make_dir(step.path)
        self._disk.sync_dir(_folder(step.path))

    def _remove(self, step: Step) -> None:
        self._disk.unlink(step.path)
        self._disk.sync_dir(_folder(step.path))

    def _make_private(self, _: Step) -> None:
        """All that others may read, however much that is."""

        def change(finding: Finding) -> None:
            if finding.kind == "mode":
                Path(finding.path).chmod(DIRECTORY_MODE if is_folder(finding.path) else FILE_MODE)

        check_tree(self._layout, Findings(change))

    def _cut_off(self, step: Step) -> None:
        file, end = self._disk.open(step.path, write=True), step.offset or 0
        try:
            self._aside.keep(file, end, f"{_name(step.path)}-{end}.tail")
            file.truncate(end)
            file.sync()
        finally:
            file.close()

    # --- format and catalog -------------------------------------------------------------------------------------------

    def _write_format(self, step: Step) -> None:
        self._aside.copy(step.path, f"{_name(step.path)}.damaged")
        for folder in (self._layout.log, self._layout.journals):
            self._disk.make_dir(folder)
        self._layout.write_format(self._disk)

    def _rebuild_catalog(self, step: Step) -> None:
        """The new catalog is complete before it takes the old one's place; the old one's transaction goes first."""
        layout, disk = self._layout, self._disk
        survey = LogSurvey(disk, layout.log)
        survey.read(None)
        with tempfile.TemporaryDirectory(prefix="session-actor-") as folder:
            with contextlib.suppress(CatalogCorrupt):
                copy_catalog(disk, layout.catalog, folder).close()
            made = f"{folder}/rebuilt.db"
            rebuild_from(disk, layout, made, survey, f"{folder}/catalog.db").close()
            self._copy(OsDisk(), made, layout.catalog + TEMPORARY)
        for number in survey.outside:  # cut, or cut off by a loss: the new catalog will not count them
            self._aside.move(survey.path(number), f"{_name(survey.path(number))}.outside")
        for path in (layout.catalog, f"{layout.catalog}-journal"):
            self._aside.copy(path, f"{_name(path)}.damaged")
        self._disk.unlink(f"{layout.catalog}-journal")
        disk.sync_dir(layout.root)
        disk.rename(layout.catalog + TEMPORARY, step.path)
        disk.sync_dir(layout.root)

    def _copy(self, source_disk: Disk, source: str, target: str, end: int | None = None, tail: bytes = b"") -> None:
        """Copy a file up to `end` (None: all of it), add `tail`, and sync it."""
        origin, position = source_disk.open(source), 0
        try:
            limit = origin.size() if end is None else end
            file = self._disk.open(target, create=True)
            try:
                file.truncate(0)
                while piece := origin.read(position, min(PIECE_BYTES, limit - position)):
                    file.write(piece, position)
                    position += len(piece)
                if tail:
                    file.write(tail, position)
                file.sync()
            finally:
                file.close()
        finally:
            origin.close()

    # --- journals -----------------------------------------------------------------------------------------------------

    def _count_anew(self, step: Step) -> None:
        """Every line was found sound, up to the record that the catalog has: what else it says must be wrong."""
        with contextlib.closing(_opened(self._layout, self._disk)) as catalog:
            row = catalog.get(step.session or "")
            if row is None:
                return
            catalog.files.forget_from(row.session, row.birth, row.journal)
            walk = Walk(self._disk, step.path)
            if step.path.endswith(f"/{journal_path(row.session, row.journal)}"):
                row = msgspec.structs.replace(row, crc=walk.crc_of(row.bytes))
                catalog.commit_cut([row], [], catalog.first_live_segment())
                return
            for file in self._sealed(catalog, step):
                size = file.bytes if walk.crc_of(file.bytes) == file.crc else walk.size
                first = file.first_seq if walk.header is None else walk.header.continues.seq + 1
                changed = msgspec.structs.replace(file, first_seq=first, bytes=size, crc=walk.crc_of(size))
                catalog.commit_cut([], [], catalog.first_live_segment(), [changed])

    def _count_beyond(self, step: Step) -> None:
        """The catalog is older than the journal: count what follows its valid part, in one transaction."""
        with contextlib.closing(_opened(self._layout, self._disk)) as catalog:
            known, other, sealed = catalog.get(step.session or ""), self._unknown_row(step), list[FileRow]()
            row = known if known is not None and (other is None or other.birth == known.birth) else other
            if row is None:
                return
            dead = [] if known is None or known is row else [(known.session, known.birth)]
            files, owner = catalog.files, (row.session, row.birth)
            newest = files.newest(*owner)
            first = max(0 if newest is None else newest.last_seq, files.base(*owner).seq) + 1
            if row.seq:
                part = Part(row.journal, row.bytes, row.bytes, None, row.seq, row.sum, row.crc)
                found = beyond(self._disk, self._layout.journals, part, owner)
            else:
                found = unknown(self._disk, self._layout.journals, owner)
            for one in found[:-1]:
                sealed.append(self._sealed_row(owner, one, first))
                first = one.last.seq + 1
            for one in found[-1:]:
                crc = self._walk(row.session, one.number).crc_of(one.end)
                row = msgspec.structs.replace(
                    row, journal=one.number, bytes=one.end, seq=one.last.seq, sum=one.last.sum, crc=crc
                )
                catalog.commit_cut([row], dead, catalog.first_live_segment(), sealed)

    def _unknown_row(self, step: Step) -> CatalogRow | None:
        """The row of a journal that the catalog does not know, before its first record."""
        walk = Walk(self._disk, step.path)
        first = next((item.record for item in walk.items() if isinstance(item, Good)), None)
        if walk.header is None or first is None or walk.header.session != step.session:
            return None
        session, birth, number = walk.header.session, walk.header.birth, walk.header.number
        return CatalogRow(session, birth, time_of(first), number, 0, 0, NO_SUM, 0)

    def _sealed_row(self, owner: tuple[str, str], one: Beyond, first: int) -> FileRow:
        walk, index, size = self._walk(owner[0], one.number), IndexBuilder(), one.sealed or one.end
        for item in walk.items(one.end):
            if isinstance(item, Good):
                index.add(item.offset, len(item.line), frames_in(item.line))
        frames = index.first_frame, index.last_frame
        return FileRow(*owner, one.number, first, one.last.seq, *frames, size, one.end, one.last.sum, walk.crc_of(size))

    def _walk(self, session: str, number: int) -> Walk:
        return Walk(self._disk, f"{self._layout.journals}/{journal_path(session, number)}")

    def _index_anew(self, step: Step) -> None:
        with contextlib.closing(_opened(self._layout, self._disk)) as catalog:
            for file in self._sealed(catalog, step):
                index, walk = IndexBuilder(), Walk(self._disk, step.path)
                for item in walk.items(file.index_offset):
                    if isinstance(item, Good):
                        index.add(item.offset, len(item.line), frames_in(item.line))
                self._aside.copy(step.path, f"{_name(step.path)}-{file.birth}.index")
                line = index.line(file.birth, file.number)
                self._copy(self._disk, step.path, step.path + TEMPORARY, file.index_offset, line)
                self._disk.rename(step.path + TEMPORARY, step.path)
                self._disk.sync_dir(_folder(step.path))
                size = file.index_offset + len(line)
                changed = msgspec.structs.replace(
                    file,
                    bytes=size,
                    first_frame=index.first_frame,
                    last_frame=index.last_frame,
                    crc=walk.crc_of(size),
                )
                catalog.commit_cut([], [], catalog.first_live_segment(), [changed])

    def _sealed(self, catalog: Catalog, step: Step) -> list[FileRow]:
        """The row of the sealed file of a step; none when it has none."""
        row = catalog.get(step.session or "")
        files = [] if row is None else catalog.files.of(row.session, row.birth)
        return [file for file in files if step.path.endswith(f"/{journal_path(file.session, file.number)}")]


def _opened(layout: Layout, disk: Disk) -> Catalog:
    catalog = Catalog(layout.catalog, disk)
    catalog.open(create=False)
    return catalog


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
