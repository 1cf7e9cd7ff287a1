"""Looking at a log without changing it: what opening the store would take from it, and what it would find wrong.

Every segment is read twice, one at a time: to judge which bytes count, and to follow each session's records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.format.record import decode_record
from session_actor.persistence.log.chain import beheaded, chain_of, judge, limits_of
from session_actor.persistence.log.log import SCRATCH_NAMES, number_of, segment_name
from session_actor.persistence.log.scan import CHUNK_BYTES, Damage, SegmentScan, is_tombstone, read_owner
from session_actor.persistence.log.segment_file import MAX_SEGMENT_BYTES, read_segment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.format.header import SegmentHeader, SegmentRef
    from session_actor.persistence.format.record import Record

_NO_LIMIT: Final = 1 << 62

Owner = tuple[str, str]
"""A session and its birth."""


class Logged(NamedTuple):
    """One record in the log."""

    number: int
    """Of its segment."""
    offset: int
    owner: Owner
    line: bytes
    """As in a journal, LF included."""
    record: Record


class LogSurvey:
    """What was found in the folder of a log. Segments are told apart by their numbers."""

    def __init__(self, disk: Disk, folder: str) -> None:
        """Nothing was looked at yet."""
        self.folder = folder
        self.leftovers: list[str] = []
        """Names of files that were never begun or are cut already: opening removes them."""
        self.strange: list[str] = []
        """Names that are none of the log's."""
        self.unreadable: dict[int, str] = {}
        """Why a segment cannot be read at all."""
        self.chain: list[int] = []
        """Those that continue one another, oldest first."""
        self.outside: list[int] = []
        """Segments that no other continues: opening keeps them aside."""
        self.kept: list[SegmentScan] = []
        """Those that count, oldest first, without their bytes."""
        self.damage: list[tuple[int, Damage]] = []
        self.odd: list[tuple[int, Damage]] = []
        """After `records`: lines whose sums fit, but which name no session or hold no record."""
        self.torn: list[tuple[int, int, int]] = []
        """Torn ends: number of the segment, offset, length."""
        self.numbers: list[int] = []
        """All segments that are not cut, oldest first."""
        self.size_bytes = 0
        self.was_read = False
        self._disk = disk

    def path(self, number: int) -> str:
        """Where a segment lies."""
        return f"{self.folder}/{segment_name(number)}"

    # --- which bytes count --------------------------------------------------------------------------------------------

    def read(self, first_live: int | None, noted: SegmentRef | None = None) -> None:
        """Judge all segments. `first_live`: the oldest that is not cut; None: not known, so the oldest in the chain.

        `noted`: up to where the log was synced, says the catalog; None: not known.

        Raises `StoreVersionTooNew`, OSError.
        """
        self.was_read = True
        self._list(1 if first_live is None else first_live)
        headers = {number: self._header(number) for number in self.numbers}
        begun = beheaded(headers, lambda number: self._scan(number, _NO_LIMIT).synced_bytes)
        self.size_bytes = 0
        chain, missing = chain_of(headers, first_live or 1, begun, noted.segment if noted else 0)
        if first_live is None:
            chain = [number for number in chain if number > max(missing, default=0)]
        else:
            self.damage += [(number, Damage(self.path(number), 0, None)) for number in missing]
        self.chain = chain
        self.outside = [number for number in self.numbers if number not in set(chain)]
        limits = limits_of(chain, headers, dict.fromkeys(chain, _NO_LIMIT))
        scans = [self._scan(number, limit) for number, limit in zip(chain, limits, strict=True)]
        kept, damage = judge(scans, [min(limit, scan.size) if limit == _NO_LIMIT else limit
                                     for limit, scan in zip(limits, scans, strict=True)], noted)  # fmt: skip
        self.kept = kept
        self.damage += [(number, Damage(self.path(number), 0, None)) for number in chain if number in self.unreadable]
        self.damage += [found for found in damage if found[0] not in self.unreadable]
        for scan in kept[-1:]:
            if scan.end < scan.size:
                self.torn.append((number_of(scan.path), scan.end, scan.size - scan.end))
        dropped = [scan for scan in scans if scan not in kept and scan.size]
        self.torn += [(number_of(scan.path), 0, scan.size) for scan in dropped]

    def _list(self, first_live: int) -> None:
        for name in self._disk.list(self.folder):
            number = number_of(name)
            if name in SCRATCH_NAMES or 0 < number < first_live:
                self.leftovers.append(name)
            elif number:
                self.numbers.append(number)
            else:
                self.strange.append(name)
        self.numbers.sort()

    def _header(self, number: int) -> SegmentHeader | None:
        return SegmentScan(self.path(number), number, self._bytes(number, CHUNK_BYTES)).header

    def _bytes(self, number: int, limit: int = MAX_SEGMENT_BYTES) -> bytes:
        """The bytes of a segment, at most `limit`; none, and a reason in `unreadable`, when it cannot be read."""
        try:
            data, why = read_segment(self._disk, self.path(number), limit)
        except OSError as error:
            error.filename = error.filename or self.path(number)
            raise
        if why:
            self.unreadable[number] = why
        return data

    def _scan(self, number: int, limit: int) -> SegmentScan:
        scan = SegmentScan(self.path(number), number, self._bytes(number))
        for _ in scan.steps(limit):
            pass
        self.size_bytes += scan.size
        scan.data = b""
        return scan

    # --- whose records ------------------------------------------------------------------------------------------------

    def records(self) -> Iterator[Logged]:
        """Every record that counts, in the order of the log; sound lines without a record go to `odd`."""
        for scan in self.kept:
            number = number_of(scan.path)
            data = self._bytes(number)
            owners = {key: read_owner(key) for key in scan.spans}
            places = [
                (spans[index], spans[index + 1], key)
                for key, spans in scan.spans.items()
                for index in range(0, len(spans), 2)
            ]
            for begin, end, key in sorted(places):
                owner = named = owners[key]
                line = data[begin:end] + b"\n"
                try:
                    record = decode_record(line)
                except LineDamaged:
                    owner = None
                    record = None
                if owner is None or record is None:
                    self.odd.append((number, Damage(scan.path, begin, None if named is None else (named,))))
                else:
                    yield Logged(number, begin, owner, line, record)

    def newest_births(self) -> dict[str, Owner]:
        """Of each session in the log the last birth that has records there."""
        places = {
            owner: (number_of(scan.path), spans[-2])
            for scan in self.kept
            for key, spans in scan.spans.items()
            if (owner := read_owner(key)) is not None
        }
        return {owner[0]: owner for owner in sorted(places, key=places.__getitem__)}

    def dead(self) -> set[Owner]:
        """The births whose tombstones are in the log, or are lost there: a later birth was made after that."""
        newest = self.newest_births()
        found = {
            owner
            for scan in self.kept
            for key in scan.spans
            if (owner := read_owner(key)) is not None and newest[owner[0]] != owner
        }
        for scan in self.kept:
            if not scan.marked:
                continue
            data = self._bytes(number_of(scan.path))
            for key, begin, end in scan.marked:
                owner = read_owner(key)
                if owner is not None and is_tombstone(data[begin:end] + b"\n"):
                    found.add(owner)
        return found
