"""The cut: moves sealed segments of the log into the journals of their sessions, in the background.

Order: read and check the segments; write each session's records behind the valid part of its journal, in as many files
as that takes; sync the journals and the folders of new ones; remove the files of deleted sessions, if that has not been
done; commit to the catalog how far each journal is now valid, which files are sealed, and which segment is the first
that still counts; only then remove the segments. Dying anywhere leaves either the old state, whose half-written journal
bytes and files are beyond what the catalog counts and are written again by the next cut, or the new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final
from zlib import crc32

from .cut_journals import CutJournals
from .errors import LogCorrupt, PersistenceError, StoreClosed
from .reserve import is_full
from .scan import is_tombstone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .catalog import Catalog
    from .cut_journals import Grown, Spans
    from .disk_thread import DiskThread
    from .log import Log
    from .removal import Remover
    from .segment import Segment
    from .session_log import SessionLog
    from .storage import Disk
    from .trouble import Trouble

CUT_BYTES: Final = 32 * 1024 * 1024
"""Segments are cut together up to this size, so that a journal is synced once for all of them."""
GROUP_SESSIONS: Final = 32
YIELD_SESSIONS: Final = 1000
RETRY_S: Final = 5.0


class Cutter:
    """Cuts when segments are sealed."""

    def __init__(
        self,
        disk: Disk,
        *,
        log: Log,
        catalog: Catalog,
        journals: str,
        file_bytes: int,
        remover: Remover,
        snapshots: asyncio.Lock,
        thread: DiskThread,
        trouble: Trouble,
        on_cut: Callable[[Iterable[SessionLog]], None],
    ) -> None:
        """`journals`: their folder. `file_bytes`: size at which a journal file is sealed.

        `snapshots`: held while snapshots change. `thread`: where the disk is used. `on_cut(sessions)`: told whose
        journals grew.
        """
        self.last_cut_us: int | None = None
        self.lock = asyncio.Lock()
        """Held while journals and catalog change."""
        self.unforgotten: set[tuple[str, str]] = set()
        """Sessions and births that are deleted, though the catalog may still have them."""
        self._disk = disk
        self._log = log
        self._catalog = catalog
        self._journals = CutJournals(disk, catalog, journals, file_bytes)
        self._remover = remover
        self._snapshots = snapshots
        self._thread = thread
        self._trouble = trouble
        self._on_cut = on_cut
        self._sealed = asyncio.Event()

    def wake(self) -> None:
        """There may be something to cut."""
        self._sealed.set()

    async def run(self) -> None:
        """Cut in the background until cancelled. Trouble with the disk is noted, and the cut is tried again."""
        self._sealed.set()
        while True:
            await self._sealed.wait()
            self._sealed.clear()
            try:
                while await self.cut():
                    pass
            except (OSError, PersistenceError) as error:
                self._trouble.note(error, "cut_failed")
                with contextlib.suppress(OSError, PersistenceError):  # more of the log stays than is noted
                    await self.note_end()
                if not (is_full(error) and await self._made_room()):
                    await asyncio.sleep(RETRY_S)
                self._sealed.set()

    async def note_end(self) -> None:
        """Note in the catalog how far the log is: what of that is missing when it is opened next is damage.

        Raises OSError, `CatalogCorrupt`.
        """
        end = self._log.durable_end()
        if end is not None and self._trouble.lost is None:
            async with self.lock:
                await self._thread.run(lambda: self._catalog.note_log_end(end))

    async def _made_room(self) -> bool:
        try:
            return await self._thread.run(self._log.reserve.give_up)
        except OSError as error:
            self._trouble.note(error, "remove_failed")
            return False

    async def cut(self) -> int:
        """Cut what is sealed now, up to `CUT_BYTES`; returns how many segments were cut.

        Raises OSError and `StoreCorrupt`; then nothing has changed. Cancelling gives up between two steps.
        """
        await self.lock.acquire()
        committing = False
        try:
            segments = [] if self._trouble.lost is not None else self._ready()
            if not segments:
                return 0
            contents = [await self._thread.run(partial(self._contents, segment)) for segment in segments]
            spans = await _by_session(segments)
            _note_dead(spans, contents)
            dead = [log for log in spans if log.dead]
            for log in dead:  # first: a later birth's journal takes the place of theirs
                await self._remove(log)
            grown = await self._write_journals([log for log in spans if not log.dead], spans, contents)
            committing = True
            await self._commit(segments, grown, dead)
            return len(segments)
        finally:
            if not committing:
                self.lock.release()

    def _ready(self) -> list[Segment]:
        segments: list[Segment] = []
        size, limit = 0, 0 if self._log.reserve.given_up else CUT_BYTES  # the reserve is room for one segment
        for segment in self._log.sealed:
            size += segment.end
            damaged = self._log.damaged is not None and segment.number >= self._log.damaged
            if damaged or segment.synced < segment.end or (segments and size > limit):
                break
            segments.append(segment)
        return segments

    def _contents(self, segment: Segment) -> bytes:
        """The bytes of a segment, which must be those that were written."""
        if segment.data is not None:
            return segment.data
        file = segment.file or self._disk.open(segment.path)
        try:
            data = file.read(0, segment.end)
        finally:
            if file is not segment.file:
                file.close()
        if crc32(data) != segment.crc:
            raise LogCorrupt(segment.path, 0, "its bytes are not those that were written")
        return data

    # --- journals -----------------------------------------------------------------------------------------------------

    async def _write_journals(self, logs: list[SessionLog], spans: Spans, contents: list[bytes]) -> list[Grown]:
        """Raises the first error when all others are written, so that all sessions that are refused are known."""
        grown: list[Grown] = []
        folders: set[str] = set()
        errors: list[OSError] = []
        for group in _groups(logs):
            work = [(log, spans[log]) for log in group]
            grown += await self._thread.run(partial(self._journals.write_group, work, contents, folders, errors))
        if errors:
            raise errors[0]
        await self._thread.run(lambda: self._sync_folders(folders))
        return grown

    def _sync_folders(self, folders: set[str]) -> None:
        for folder in sorted(folders):
            self._disk.sync_dir(folder)

    # --- catalog ------------------------------------------------------------------------------------------------------

    async def _commit(self, segments: list[Segment], grown: list[Grown], dead: list[SessionLog]) -> None:
        """Make the cut valid. The lock is released when the catalog has answered, even if nobody waits any more."""
        births = [(log.session, log.birth) for log in dead]
        first_live, log_end = self._first_live_after(len(segments)), self._log.durable_end()

        def job() -> None:
            sealed = (row for one in grown for row in one.sealed)
            self._catalog.commit_cut((one.row for one in grown), births, first_live, sealed, log_end)

        def then(error: BaseException | None) -> None:
            try:
                if error is None:
                    self._committed(segments, grown, dead)
            finally:
                self.lock.release()

        await self._thread.run(job, then)

    def _committed(self, segments: list[Segment], grown: list[Grown], dead: list[SessionLog]) -> None:
        for one in grown:
            one.log.extent = one.extent
            if one.broken is not None:
                self._trouble.note(one.broken, "cut_failed")
        for log in (*(one.log for one in grown), *dead):
            self._journals.refused.pop(log, None)
        self.unforgotten.difference_update((log.session, log.birth) for log in dead)
        for segment in segments:
            self._log.sealed.popleft()
            segment.data = None
        self.last_cut_us = time.time_ns() // 1000
        with contextlib.suppress(StoreClosed):  # closed since: they are removed when the store is opened next
            self._thread.submit(lambda: self._log.remove(segments), self._on_removed)
        self._tell(_groups([*(one.log for one in grown), *dead]))

    def _tell(self, groups: Iterator[list[SessionLog]]) -> None:
        """Tell whose journals grew, a bounded number a turn of the loop."""
        group = next(groups, None)
        if group is not None:
            self._on_cut(group)
            asyncio.get_running_loop().call_soon(self._tell, groups)

    def _on_removed(self, _: None, error: BaseException | None) -> None:
        """What could not be removed is removed when the store is opened next."""
        if error is not None:
            self._trouble.note(error, "remove_failed")
        self._trouble.retry_now()  # there may be room again

    def _first_live_after(self, count: int) -> int:
        following = next(islice(self._log.sealed, count, None), self._log.current)
        number = self._log.next_number if following is None else following.number
        return number if self._log.damaged is None else min(number, self._log.damaged)

    async def give_up_lost(self) -> None:
        """What is lost of the log was salvaged: it is not missed any more. Raises OSError, `CatalogCorrupt`."""
        async with self.lock:
            self._log.damaged = None
            first_live = self._first_live_after(0)
            await self._thread.run(lambda: self._catalog.commit_cut([], [], first_live))

    async def forget(self, log: SessionLog) -> None:
        """Remove what the journals and the catalog have of a session whose tombstone is synced. Raises OSError.

        When it raises, or the process dies, the same is done when the store is opened next or the tombstone is cut.
        """
        self.unforgotten.add((log.session, log.birth))
        async with self.lock:
            await self._remove(log)
            first_live = self._first_live_after(0)
            await self._thread.run(lambda: self._catalog.commit_cut([], [(log.session, log.birth)], first_live))
        self.unforgotten.discard((log.session, log.birth))

    async def _remove(self, log: SessionLog) -> None:
        """Remove the files of a session that is dead, if that has not been done."""
        if not log.removed:
            async with self._snapshots:
                await self._thread.run(lambda: self._remover.remove(log.session, log.birth))
            log.removed = True


async def _by_session(segments: list[Segment]) -> Spans:
    """Of each session the places of its records, in the order of the log."""
    spans: Spans = {}
    for index, segment in enumerate(segments):
        for count, (log, places) in enumerate(segment.spans.items()):
            spans.setdefault(log, []).append((index, places))
            if count % YIELD_SESSIONS == YIELD_SESSIONS - 1:
                await asyncio.sleep(0)
    return spans


def _note_dead(spans: Spans, contents: list[bytes]) -> None:
    """A session whose synced tombstone is among what is cut is dead, even if nobody was told yet."""
    for log in [log for log in spans if log.dying]:
        index, places = spans[log][-1]
        last = contents[index][places[-2] : places[-1]]
        log.dead = log.dead or is_tombstone(last + b"\n")


def _groups(logs: Iterable[SessionLog]) -> Iterator[list[SessionLog]]:
    iterator = iter(logs)
    while group := list(islice(iterator, GROUP_SESSIONS)):
        yield group
