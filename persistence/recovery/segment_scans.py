"""Reading the segments of a log after a crash, of which no more is in memory at once than must be.

Which of them count is told by their headers. Each of these is then read whole and looked through, one after the other;
the bytes of the oldest are kept, up to `HELD_BYTES`, and those of the others are read again where they are needed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final
from zlib import crc32

from session_actor.persistence.log.chain import beheaded, chain_of, limits_of
from session_actor.persistence.log.log import number_of
from session_actor.persistence.log.scan import CHUNK_BYTES, Damage, SegmentScan, used_bytes
from session_actor.persistence.log.segment_file import read_segment

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.format.header import SegmentHeader, SegmentRef
    from session_actor.persistence.log.chain import Found

HELD_BYTES: Final = 64 * 1024 * 1024
"""This much of the log is kept in memory until it is cut, so that sessions load without reading it again."""
_WHOLE: Final = 1 << 62


class SegmentScans:
    """The segments of one log. `damage`: what cannot be read at all, or is missing."""

    def __init__(self, disk: Disk, path_of: Callable[[int], str], thread: DiskThread) -> None:
        """`path_of(number)`: where a segment lies. `thread`: where the disk is read."""
        self.damage: Found = []
        self._disk = disk
        self._path_of = path_of
        self._thread = thread
        self._held = 0
        self._sums: dict[str, tuple[int, int]] = {}
        """Of segments whose bytes are not kept: CRC-32 up to an offset, and that one."""

    async def read(
        self, numbers: list[int], first_live: int, noted: SegmentRef | None
    ) -> tuple[list[SegmentScan], list[int]]:
        """Look through the segments that count, oldest first; returns them, and up to where each counts.

        Raises `StoreVersionTooNew`, OSError.
        """
        headers = {number: await self._thread.run(partial(self._header, number)) for number in numbers}
        begun = await self._thread.run(lambda: beheaded(headers, self._synced_bytes))
        chain, missing = chain_of(headers, first_live, begun, noted.segment if noted else 0)
        self.damage += [(number, Damage(self._path_of(number), 0, None)) for number in missing]
        limits = limits_of(chain, headers, dict.fromkeys(chain, _WHOLE))
        scans = [await self._scan(number, limit) for number, limit in zip(chain, limits, strict=True)]
        return scans, [scan.size if limit == _WHOLE else limit for scan, limit in zip(scans, limits, strict=True)]

    async def data(self, scan: SegmentScan) -> bytes:
        """All bytes of a segment."""
        return scan.data or (await self._thread.run(partial(read_segment, self._disk, scan.path)))[0]

    async def bytes_of(self, path: str) -> bytes:
        """The bytes of a segment that does not count, without the room that was taken for more."""
        data, _ = await self._thread.run(partial(read_segment, self._disk, path))
        return data[: used_bytes(data)]

    async def sum_of(self, scan: SegmentScan, data: bytes, end: int) -> int:
        """CRC-32 of the bytes up to `end` as they were when they were looked through, if that is known."""
        known = self._sums.get(scan.path)
        if known is not None and known[1] == end:
            return known[0]
        return await self._thread.run(lambda: crc32(memoryview(data)[:end]))

    def _header(self, number: int) -> SegmentHeader | None:
        path = self._path_of(number)
        data, why = read_segment(self._disk, path, CHUNK_BYTES)
        if why:
            self.damage.append((number, Damage(path, 0, None)))
        return SegmentScan(path, number, data).header

    def _synced_bytes(self, number: int) -> int:
        """What the lines of a segment say of how far it was synced."""
        path = self._path_of(number)
        scan = SegmentScan(path, number, read_segment(self._disk, path)[0])
        for _ in scan.steps(scan.size):
            pass
        return scan.synced_bytes

    async def _scan(self, number: int, limit: int) -> SegmentScan:
        path = self._path_of(number)
        data, _ = await self._thread.run(partial(read_segment, self._disk, path))
        scan = SegmentScan(path, number, data)
        for _ in scan.steps(limit):
            await asyncio.sleep(0)
        self._held += len(data)
        if self._held > HELD_BYTES:
            end = scan.end
            self._sums[path] = await self._thread.run(lambda: crc32(memoryview(data)[:end])), end
            scan.data = b""
        return scan


def sure_end(scan: SegmentScan, noted: SegmentRef | None) -> int:
    """Up to where the newest segment is surely on the disk, after what was not is made so.

    A watermark at its end says so of all before it, and not of itself: the sync behind it may have been refused. Then
    a loss of power may take it, and whatever goes on behind it would miss it.
    """
    if not scan.is_settled:
        return scan.end
    return synced_end(scan, noted)


def synced_end(scan: SegmentScan, noted: SegmentRef | None) -> int:
    """Up to where a segment is surely on the disk, whatever is made so."""
    is_noted = noted is not None and noted.segment == number_of(scan.path)
    return max(scan.synced_bytes, noted.offset if noted is not None and is_noted else 0)
