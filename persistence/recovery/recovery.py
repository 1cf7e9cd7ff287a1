"""What the log holds when a store is opened: the segments that count, whose records are in them, and what was torn off.

The newest segment names the one that it continues and the offset up to which that one counts, and so on back to the
first that is not cut: this chain is the log. Segments outside it are leftovers. Records count up to the first torn end;
its bytes, and segments behind it, are kept aside, never removed.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Final

from session_actor.persistence.errors import LineDamaged, LogCorrupt
from session_actor.persistence.files.keeping import Aside
from session_actor.persistence.format.header import SegmentRef
from session_actor.persistence.format.record import decode_record
from session_actor.persistence.log.chain import judge, proven
from session_actor.persistence.log.log import SCRATCH_NAMES, TAKEOVER_NAME, number_of
from session_actor.persistence.log.scan import Damage, is_tombstone, read_owner
from session_actor.persistence.log.segment import Segment
from session_actor.persistence.log.session_log import SessionLog
from session_actor.persistence.reserve import is_full
from session_actor.persistence.store import TornTail

from .recovered import Recovered
from .segment_scans import SegmentScans, sure_end, synced_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.log.log import Log
    from session_actor.persistence.log.scan import SegmentScan

    Known = Callable[[str, str], bool]

_TURN_SESSIONS: Final = 250
_ALL: Final = 1 << 62
_NOWHERE: Final = 0, 0, 0


class LogRecovery:
    """Reads the segments of a log into `log`, which must be new."""

    def __init__(
        self,
        disk: Disk,
        log: Log,
        aside: str,
        *,
        thread: DiskThread,
        known: Known,
        buried: Known,
        settle: Callable[[], None],
        missing: Callable[[Damage], list[tuple[str, str]]],
    ) -> None:
        """`aside`: folder for what is torn off. `thread`: where the disk is read.

        `known(session, birth)`: whether there is a journal of that birth; `buried(session, birth)`: whether the catalog
        has it as deleted; `settle`: of the catalog; `missing`: see `Restored`. All are called in the thread.
        """
        self._disk = disk
        self._log = log
        self._scans = SegmentScans(disk, log.path, thread)
        self._aside = Aside(disk, aside)
        self._thread = thread
        self._known = known
        self._is_buried = buried
        self._settle = settle
        self._missing = missing
        self._buried: set[SessionLog] = set()
        self._owners: dict[bytes, tuple[str, str]] = {}
        self._births: dict[tuple[str, str], SessionLog] = {}
        self._damage: list[tuple[int, Damage]] = []
        self._oldest: dict[SessionLog, bytes] = {}
        self._newest: dict[SessionLog, bytes] = {}
        self._last_line: dict[SessionLog, tuple[int, int]] = {}
        self._found = Recovered()
        self._unsure_from: int | None = None
        """The oldest segment that could not be made durable, as the disk is full."""
        self._unused: list[tuple[str, int]] = []
        """Segments that end in room that was preallocated, and their sizes without it."""

    async def run(self, first_live: int, noted: SegmentRef | None = None) -> Recovered:
        """Recover; `first_live`: the oldest segment that is not cut, says the catalog.

        `noted`: up to where the log was surely synced, says the catalog; None: that is not known. Raises
        `StoreVersionTooNew`, and OSError when the disk refuses.
        """
        numbers = await self._thread.run(lambda: self._tidy(first_live))
        chain, limits = await self._scans.read(numbers, first_live, noted)
        self._damage += self._scans.damage
        kept, damage = judge(chain, limits, noted)
        self._damage += damage
        counting = {scan.path for scan in kept}
        await self._set_aside(kept, [path for path in map(self._log.path, numbers) if path not in counting])
        if kept and not kept[-1].is_settled:
            await self._make_all_durable(kept, noted)
        for scan in kept:
            await self._index(scan, noted, last=scan is kept[-1])
        await self._note_ends()
        await self._bury()
        await self._meet_owners()
        self._found.logs = self._newest_births()
        self._set_end(kept, noted)
        self._log.next_number = max(first_live - 1, noted.segment if noted else 0, *numbers) + 1
        await self._blame()
        if self._unused and not self._damage:  # what is damaged is left as it was found
            await self._thread.run(self._give_back)
        if self._found.full is not None and self._damage:
            await self._thread.run(self._make_durable_in_place)
        damaged = {number for number, _ in self._damage}
        self._log.damaged = min(damaged, default=None)
        self._found.damage, self._found.last_lines = self._damage, self._last_line
        return self._found

    def _set_end(self, kept: list[SegmentScan], noted: SegmentRef | None) -> None:
        """The next segment continues what the log was: so it stays damage that something of it is lost."""
        ends = [(number_of(kept[-1].path), sure_end(kept[-1], noted))] if kept else []
        if noted is not None:
            ends.append((noted.segment, noted.offset))
        self._log.tail = SegmentRef(*max(ends)) if ends else None

    async def _make_all_durable(self, kept: list[SegmentScan], noted: SegmentRef | None) -> None:
        for scan in kept[proven(kept) :]:
            if not scan.end or (noted is not None and number_of(scan.path) < noted.segment):
                continue
            try:
                await self._thread.run(partial(self._make_durable, scan, await self._scans.data(scan)))
            except OSError as error:
                if not is_full(error):
                    raise
                self._found.full, self._unsure_from = error, number_of(scan.path)
                break
        await self._thread.run(lambda: self._disk.sync_dir(self._log.folder))

    def _make_durable(self, scan: SegmentScan, data: bytes) -> None:
        """What a killed process had written may not be on the disk yet, and what follows must not outlive it.

        It is written anew, to another file: had a sync of that process failed, the kernel would take lost pages for
        clean, and say OK over them (PostgreSQL's fsync lesson of 2018). On a full disk it waits until there is room:
        see `unsure`.
        """
        path = self._log.path(TAKEOVER_NAME)
        self._disk.unlink(path)
        try:
            self._write(path, data, 0, create=True)
            self._disk.rename(path, scan.path)
        except OSError:
            self._disk.unlink(path)
            raise

    def _make_durable_in_place(self) -> None:
        """What is damaged is no other segment's to take over: all that is left on a full disk is the same file."""
        for segment in self._log.sealed:
            if segment.synced < segment.end:
                with contextlib.closing(self._disk.open(segment.path)) as file:
                    data = file.read(segment.synced, segment.end - segment.synced)
                self._write(segment.path, data, segment.synced)
                segment.synced = segment.end
        self._found.full = None

    def _write(self, path: str, data: bytes, offset: int, *, create: bool = False) -> None:
        with contextlib.closing(self._disk.open(path, write=True, create=create)) as file:
            file.write(data, offset)
            file.sync()

    # --- which segments -----------------------------------------------------------------------------------------------

    def _tidy(self, first_live: int) -> list[int]:
        """Remove what is cut and what was never begun; returns the numbers of the other segments."""
        numbers: list[int] = []
        cut: list[str] = []
        for name in self._disk.list(self._log.folder):
            number = number_of(name)
            if name in SCRATCH_NAMES:
                self._disk.unlink(self._log.path(name))
            elif 0 < number < first_live:
                cut.append(name)
            elif number:
                numbers.append(number)
        if cut:
            self._remove_cut(cut)
        return sorted(numbers)

    def _remove_cut(self, names: list[str]) -> None:
        """Remove segments that the catalog does not count, unless a loss of power could make it count them again.

        While that cannot be helped, as on a full disk, they stay until it can: see `Commits.prepare`.
        """
        self._log.leftovers = [self._log.path(name) for name in names]
        with contextlib.suppress(OSError):
            self._settle()
            self._log.remove_leftovers()

    async def _set_aside(self, kept: list[SegmentScan], dropped: list[str]) -> None:
        """Keep a copy of the torn bytes, and move whole segments that do not count.

        On a full disk they stay where they are: such segments are moved when the store is opened next. The newest goes
        first, and for good, before any other: each names the one before it, and one in between would be missed.
        """
        tails = [scan for scan in kept[-1:] if scan.end < scan.size]
        for scan in tails:
            data = (await self._scans.data(scan))[scan.end : scan.size]
            await self._thread.run(partial(self._keep, scan.path, scan.end, data))
            await self._thread.run(lambda: self._disk.sync_dir(self._log.folder))
        are_kept = [
            await self._thread.run(partial(self._keep, path, 0, await self._scans.bytes_of(path))) for path in dropped
        ]
        for path, is_kept in zip(reversed(dropped), reversed(are_kept), strict=True):
            if not is_kept:
                break
            await self._thread.run(partial(self._remove, path))

    def _remove(self, path: str) -> None:
        self._disk.unlink(path)
        self._disk.sync_dir(self._log.folder)

    def _keep(self, path: str, offset: int, data: bytes) -> bool:
        """Keep bytes that do not count, and tell of them; False: the disk is full."""
        place, is_kept = None, True
        if data:
            try:
                place = self._aside.add(data, f"{_name(path)}-{offset}.torn")
            except OSError as error:
                if not is_full(error):
                    raise
                is_kept = False
        if offset or data:
            self._found.torn.append(TornTail(path, offset, len(data), place))
        return is_kept

    # --- whose records ------------------------------------------------------------------------------------------------

    async def _index(self, scan: SegmentScan, noted: SegmentRef | None, *, last: bool) -> None:
        """Make a sealed segment of a scan: note each record with its session. `last`: it is the newest."""
        data = await self._scans.data(scan)
        header = data[: data.find(b"\n") + 1]
        continues = scan.header.continues if scan.header else None
        segment = Segment(number_of(scan.path), scan.path, None, continues, (header, ""))
        end = sure_end(scan, noted) if last else scan.end
        segment.end = segment.written = segment.synced = end
        if self._unsure_from is not None and segment.number >= self._unsure_from:
            segment.synced = min(end, synced_end(scan, noted))
        for count, (owner, places) in enumerate(scan.spans.items(), 1):
            log = self._meet(owner)
            if log is None:
                self._damage.append((segment.number, Damage(scan.path, places[0], None)))
                continue
            segment.spans[log] = places
            self._oldest.setdefault(log, data[places[0] : places[1]])
            self._newest[log] = data[places[-2] : places[-1]]
            self._last_line[log] = segment.number, places[-2]
            if count % _TURN_SESSIONS == 0:
                await asyncio.sleep(0)
        for marked in scan.marked:
            if marked.owner in self._owners and is_tombstone(data[marked.begin : marked.end] + b"\n"):
                self._births[self._owners[marked.owner]].dead = True
        segment.data = scan.data or None
        if segment.data is None:
            segment.crc = await self._scans.sum_of(scan, data, segment.synced)
        if len(data) > scan.size:
            self._unused.append((scan.path, scan.size))
        scan.data = b""
        self._log.sealed.append(segment)

    def _give_back(self) -> None:
        """A process that was killed left room that it had preallocated: that is given back, if the disk lets it."""
        for path, size in self._unused:
            with contextlib.suppress(OSError):
                file = self._disk.open(path, write=True)
                try:
                    file.truncate(size)
                finally:
                    file.close()

    def _meet(self, owner: bytes) -> SessionLog | None:
        """The session of an owner; None for lines whose sums fit, but which name no session."""
        found = self._owners.get(owner)
        if found is None:
            found = read_owner(owner)
            if found is None:
                return None
            self._owners[owner] = found
            self._births.setdefault(found, SessionLog(*found))
        return self._births[found]

    async def _note_ends(self) -> None:
        """Tell each session when it began and how far its records go."""
        for count, (log, newest) in enumerate(self._newest.items(), 1):
            try:
                last = decode_record(newest + b"\n")
                first = decode_record(self._oldest[log] + b"\n")
                log.created_us, self._found.first_seqs[log] = first.at_us, first.seq
            except LineDamaged:  # the line's sum fits, and what it holds is no record
                number, begin = self._last_line[log]
                self._damage.append((number, Damage(self._log.path(number), begin, ((log.session, log.birth),))))
                continue
            log.appended_seq = log.written_seq = log.synced_seq = last.seq
            log.tail_sum = last.sum.encode()
            if count % _TURN_SESSIONS == 0:
                await asyncio.sleep(0)
        self._oldest.clear()
        self._newest.clear()

    async def _bury(self) -> None:
        """Void the records of births that the catalog has as deleted, though no tombstone is in the log."""
        births = [log for log in self._births.values() if not log.dead]
        for first in range(0, len(births), _TURN_SESSIONS):
            self._buried.update(
                await self._thread.run(partial(self._of_buried, births[first : first + _TURN_SESSIONS]))
            )
        for log in self._buried:
            log.dead = True

    def _of_buried(self, logs: list[SessionLog]) -> list[SessionLog]:
        return [log for log in logs if self._is_buried(log.session, log.birth)]

    def _newest_births(self) -> dict[str, SessionLog]:
        """Of each session its last birth, unless the catalog has that as deleted: then it knows what there is now.

        Those before it were deleted, though the tombstone of one may be lost: no other birth is made before that.
        """
        lost: dict[SessionLog, tuple[int, int, int]] = {}
        for number, damage in self._damage:
            for index, owner in enumerate(damage.owners or ()):
                if owner in self._births:
                    log = self._births[owner]
                    lost[log] = max(lost.get(log, _NOWHERE), (number, damage.offset, index))

        def last_place(log: SessionLog) -> tuple[int, int, int]:
            return max((*self._last_line.get(log, _NOWHERE[:2]), 0), lost.get(log, _NOWHERE))

        newest: dict[str, SessionLog] = {}
        for log in self._births.values():
            other = newest.setdefault(log.session, log)
            if other is not log and last_place(log) > last_place(other):
                newest[log.session] = log
        for log in self._births.values():
            last = newest[log.session]
            if last is not log:
                log.dead, log.followed_by = True, None if last.dead else last.birth
            if log.dead and log not in self._buried:
                self._found.dead.append(log)
        return {session: log for session, log in newest.items() if log not in self._buried}

    async def _meet_owners(self) -> None:
        """The births of damaged lines, if any such is known: else the name itself may be damaged."""
        for owner in {owner for _, damage in self._damage for owner in damage.owners or ()}:
            if owner not in self._births:
                is_buried = await self._thread.run(partial(self._is_buried, *owner))
                if is_buried or await self._thread.run(partial(self._known, *owner)):
                    log = self._births[owner] = SessionLog(*owner)
                    if is_buried:
                        log.dead = True
                        self._buried.add(log)

    async def _blame(self) -> None:
        """Tell the sessions that damage concerns; all that have no later record, where its owner is not sure.

        What is lost of the dead, and what is in journals, concerns nobody.
        """
        last_unowned, concerning = None, list[tuple[int, Damage]]()
        for number, damage in self._damage:
            missing = await self._thread.run(partial(self._missing, damage))
            missing = [owner for owner in missing if owner not in self._births or not self._births[owner].dead]
            if damage.owners and not missing:
                continue
            error = LogCorrupt(damage.path, damage.offset)
            concerning.append((number, damage._replace(owners=tuple(missing) or None)))
            self._found.unsure_births.update(owner for owner in missing if owner not in self._births)
            owners = [self._births.get(owner) for owner in missing]
            if not owners or None in owners:
                self._found.unowned_damage = error
                last_unowned = (number, damage.offset or _ALL)  # lines behind another header may be another's
            for log in owners:
                if log is not None:
                    log.damage = error
        self._damage = concerning
        if last_unowned is not None:
            self._found.proven_whole = {log for log, place in self._last_line.items() if place > last_unowned}


def _name(path: str) -> str:
    return path.rpartition("/")[2]
