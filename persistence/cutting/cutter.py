"""The cut: moves sealed segments of the log into the journals of their sessions, in the background.

Order: read and check the segments; write each session's records behind the valid part of its journal, in as many files
as that takes; sync the journals and the folders of new ones; remove the files of deleted sessions, if that has not been
done; commit to the catalog how far each journal is now valid, which files are sealed, and which segment is the first
that still counts; only then remove the segments. Dying anywhere leaves either the old state, whose half-written journal
bytes and files are beyond what the catalog counts and are written again by the next cut, or the new one.

What is refused of one session (its folder cannot be written, its journal is damaged) keeps no other from being cut: its
records stay in the log, and so do that segment and all behind it; of what is in journals already, whoever reads the log
takes no notice. It is tried again. When the log has grown too far by that, the store takes no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from session_actor.persistence.errors import PersistenceError, StoreClosed
from session_actor.persistence.reserve import is_full

from .cut_commit import Commits, CutCommit
from .cut_journals import CutJournals, by_session, contents_of, note_dead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.journals.removal import Remover
    from session_actor.persistence.log.log import Log
    from session_actor.persistence.log.segment import Segment
    from session_actor.persistence.log.session_log import SessionLog
    from session_actor.persistence.trouble import Trouble

    from .cut_journals import Grown, Refusals, Spans

CUT_BYTES: Final = 32 * 1024 * 1024
"""Segments are cut together up to this size, so that a journal is synced once for all of them."""
GROUP_SESSIONS: Final = 32
RETRY_S: Final = 5.0
CALM_S: Final = 1.0
MOST_SEGMENTS: Final = 128
"""So far the log may grow while the cut is refused: a gigabyte, with segments of 8 MB."""


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
        self.commits = Commits(catalog, thread, trouble, log)
        """Those of cuts and salvages; `lock` must be held."""
        self._sealed = asyncio.Event()
        self._tried: set[SessionLog] = set()
        """Whose records were refused once more since it was begun to try that again."""

    def wake(self) -> None:
        """There may be something to cut."""
        self._sealed.set()

    async def run(self) -> None:
        """Cut in the background until cancelled. Trouble with the disk is noted, and the cut is tried again.

        What was sealed before is cut after `CALM_S`: sessions that are loaded as soon as a store is open go first.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CALM_S):
                await self._sealed.wait()
        self._sealed.set()
        while True:
            await self._sealed.wait()
            self._sealed.clear()
            try:
                await self.cut_all()
                self._log.reserve.lent = False
            except (OSError, PersistenceError) as error:
                self._trouble.note(error, "cut_failed")
                self._log.reserve.lent = False
                if len(self._log.sealed) > MOST_SEGMENTS:
                    self._trouble.stop(error)
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
            self._log.reserve.lent = await self._thread.run(self._log.reserve.give_up)
        except OSError as error:
            self._trouble.note(error, "remove_failed")
        return self._log.reserve.lent

    async def cut(self) -> int:
        """Cut what is sealed now, up to `CUT_BYTES`; returns how many segments were dealt with.

        When there is none that was not, what was refused is tried again. Raises OSError and `StoreCorrupt`: nothing has
        changed, or only what is refused was left, and the error is the first of these. Cancelling gives up between two
        steps.
        """
        self._tried.clear()
        count, refusal = await self._cut()
        if refusal is not None:
            raise refusal
        return count

    async def cut_all(self) -> None:
        """Cut until nothing is left but what is refused, of which the first is raised; see `cut`."""
        self._tried.clear()
        first: Exception | None = None
        count = 1
        while count:
            count, refusal = await self._cut()
            first = first or refusal
        if first is not None:
            raise first

    async def _cut(self) -> tuple[int, Exception | None]:
        """As `cut`, but it returns what is refused."""
        await self.lock.acquire()
        committing = False
        try:
            await self.commits.prepare()
            self._journals.touched = {}
            segments = [] if self._trouble.lost is not None else self._ready() or self._left()
            if not segments:
                return 0, None
            await self._thread.run(self._log.hold_commit_room)
            contents = [await self._thread.run(partial(contents_of, self._disk, segment)) for segment in segments]
            spans = self._without_left(await by_session(segments), again=segments[0].cut)
            note_dead(spans, contents)
            refusals: Refusals = {}
            dead = await self._bury([log for log in spans if log.dead], refusals)
            unburied = {log.session for log in (*refusals, *self._tried) if log.dead}
            alive = [log for log in spans if not log.dead]  # a later birth's journal takes the place of a dead one's
            ready = [log for log in alive if log.session not in unburied]
            grown = await self._write_journals(ready, spans, contents, refusals)
            if segments[0].cut:
                self._tried.update(refusals, (log for log in alive if log.session in unburied))
            committing = True
            await self._commit(segments, grown, dead)
            return len(segments), next(iter(refusals.values()), None)
        except OSError as error:
            if is_full(error):
                await self._give_back(committing=committing)
            raise
        finally:
            if not committing:
                self.lock.release()

    async def _give_back(self, *, committing: bool) -> None:
        """The disk is full: let it have what the cut wrote, if that surely does not count."""
        if committing:
            with contextlib.suppress(OSError, PersistenceError):  # it is not known: that is asked again
                async with self.lock:
                    await self.commits.settle()
        else:
            touched, self._journals.touched = self._journals.touched, {}
            await self._thread.run(partial(self._journals.give_back, touched))
        self._trouble.retry_now()

    def _without_left(self, spans: Spans, *, again: bool) -> Spans:
        """Without sessions that have older records that are left; of these, `again`, those that were not tried yet."""
        out = self._tried if again else {log for segment in self._log.sealed if segment.cut for log in segment.spans}
        return {log: places for log, places in spans.items() if log not in out}

    def _ready(self) -> list[Segment]:
        """Sealed segments that were not cut yet."""
        return self._some(segment for segment in self._log.sealed if not segment.cut)

    def _left(self) -> list[Segment]:
        """Those of which something is left that was not tried again."""
        return self._some(segment for segment in self._log.sealed if segment.cut and segment.spans.keys() - self._tried)

    def _some(self, candidates: Iterable[Segment]) -> list[Segment]:
        segments: list[Segment] = []
        size, limit = 0, 0 if self._log.reserve.given_up else CUT_BYTES  # the reserve is room for one segment
        for segment in candidates:
            size += segment.end
            damaged = self._log.damaged is not None and segment.number >= self._log.damaged
            if damaged or segment.synced < segment.end or (segments and size > limit):
                break
            segments.append(segment)
        return segments

    @property
    def refused(self) -> tuple[str, ...]:
        """The folders of journals that are refused: their records stay in the log."""
        left = {log for segment in self._log.sealed if segment.cut for log in segment.spans}
        return tuple(sorted({self._journals.folder_of(log) for log in left}))

    # --- journals -----------------------------------------------------------------------------------------------------

    async def _bury(self, logs: list[SessionLog], refusals: Refusals) -> list[SessionLog]:
        """Remove the files of sessions that are dead; returns those whose files are gone."""
        gone: list[SessionLog] = []
        for log in logs:
            with self._journals.refusing(log, refusals):
                await self._remove(log)
                gone.append(log)
        return gone

    async def _write_journals(
        self, logs: list[SessionLog], spans: Spans, contents: list[bytes], refusals: Refusals
    ) -> list[Grown]:
        """Those that could be written, and are on the disk."""
        grown: list[Grown] = []
        folders: set[str] = set()
        for group in _groups(logs):
            work = [(log, spans[log]) for log in group]
            grown += await self._thread.run(partial(self._journals.write_group, work, contents, folders, refusals))
        return await self._thread.run(lambda: self._sync_folders(folders, grown, refusals))

    def _sync_folders(self, folders: set[str], grown: list[Grown], refusals: Refusals) -> list[Grown]:
        """What is refused of one folder says nothing of the others, unless it is that of all."""
        for folder in sorted(folders):
            try:
                self._disk.sync_dir(folder)
            except OSError as error:
                inside = [one.log for one in grown if self._journals.folder_of(one.log) == folder]
                for log in inside or [one.log for one in grown]:
                    self._journals.distrust(log)
                if is_full(error) or not inside:
                    raise
                error.filename = error.filename or folder
                for log in inside:
                    self._journals.refuse(log, error, refusals)
        return [one for one in grown if one.log not in refusals]

    # --- catalog ------------------------------------------------------------------------------------------------------

    async def _commit(self, segments: list[Segment], grown: list[Grown], dead: list[SessionLog]) -> None:
        """Make the cut valid. The lock is released when the catalog has answered, even if nobody waits any more."""
        births = [(log.session, log.birth) for log in dead]
        moved = {*(one.log for one in grown), *dead}
        gone = self._gone_after(segments, moved)
        void = list(islice(self._log.sealed, gone))
        first_live, log_end = self._first_live_after(gone), self._log.durable_end()
        rows = [one.row for one in grown]
        sealed = [row for one in grown for row in one.sealed]
        commit = CutCommit(rows, sealed, births, first_live, log_end)
        touched, self._journals.touched = self._journals.touched, {}
        await self.commits.make(
            commit,
            lambda: self._committed(segments, void, grown, dead),
            self.lock.release,
            partial(self._journals.give_back, touched),
        )

    def _gone_after(self, segments: list[Segment], moved: set[SessionLog]) -> int:
        """How many of the oldest segments have nothing left when these were cut, and these sessions moved."""
        gone = 0
        for segment in self._log.sealed:
            left = segment.spans.keys() - moved if segment in segments else segment.spans
            if left or not (segment.cut or segment in segments):
                break
            gone += 1
        return gone

    def _committed(
        self, segments: list[Segment], gone: list[Segment], grown: list[Grown], dead: list[SessionLog]
    ) -> None:
        """Take note of a cut that is in the catalog. It may be done again, when it was interrupted."""
        for one in grown:
            one.log.extent = one.extent
            if one.broken is not None:
                self._trouble.note(one.broken, "cut_failed")
        for log in (*(one.log for one in grown), *dead):
            self._journals.done(log)
        self.unforgotten.difference_update((log.session, log.birth) for log in dead)
        moved = [*(one.log for one in grown), *dead]
        for segment in segments:
            segment.cut = True
            for log in moved:
                segment.spans.pop(log, None)
        while self._log.sealed and self._log.sealed[0] in gone:
            self._log.sealed.popleft()
        for segment in gone:
            segment.data = None
        if len(self._log.sealed) <= MOST_SEGMENTS:
            self._trouble.go_on()
        self.last_cut_us = time.time_ns() // 1000
        self._trouble.events.report("cut", {"segments": len(gone), "sessions": len(moved)})
        with contextlib.suppress(StoreClosed):  # closed since: they are removed when the store is opened next
            self._thread.submit(lambda: self._log.remove(gone), self._on_removed)
        self._tell(_groups(moved))

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
            await self.commits.settle()
            self._log.damaged = None
            first_live = self._first_live_after(0)
            await self._thread.run(lambda: self._catalog.commit_cut([], [], first_live))

    async def forget(self, log: SessionLog) -> None:
        """Remove what the journals and the catalog have of a session whose tombstone is synced. Raises OSError.

        When it raises, or the process dies, the same is done when the store is opened next or the tombstone is cut.
        """
        self.unforgotten.add((log.session, log.birth))
        async with self.lock:
            await self.commits.settle()
            await self._remove(log)
            first_live = self._first_live_after(0)
            await self._thread.run(lambda: self._catalog.commit_cut([], [(log.session, log.birth)], first_live))
        self.unforgotten.discard((log.session, log.birth))

    async def _remove(self, log: SessionLog) -> None:
        """Remove the files of a session that is dead, if that has not been done."""
        if not log.removed:
            async with self._snapshots:
                await self._thread.run(lambda: self._remover.remove(log.session, log.birth, log.followed_by))
            log.removed = True


def _groups(logs: Iterable[SessionLog]) -> Iterator[list[SessionLog]]:
    iterator = iter(logs)
    while group := list(islice(iterator, GROUP_SESSIONS)):
        yield group
