"""What an earlier process had written, and a full disk has no room to make durable.

It may not be on the disk, whatever a sync says: one may have been refused. So it is taken for records that are written,
and of which a sync was refused: the store is read, takes no changes, and as soon as there is room another segment takes
over from memory at the last byte that is surely synced. That needs as much room as those records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.format.record import SUFFIX_BYTES, decode_record
from session_actor.persistence.writing.batch import Batch

if TYPE_CHECKING:
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.log.log import Log
    from session_actor.persistence.log.segment import Segment
    from session_actor.persistence.log.session_log import SessionLog


def unsure_batches(disk: Disk, log: Log) -> list[Batch]:
    """A batch for each segment that is not synced as a whole, at positions from 1 on. Blocks. Raises OSError.

    Its sessions know from then on that these records are not synced.
    """
    batches: list[Batch] = []
    for segment in log.sealed:
        if segment.synced < segment.end:
            batches.append(_batch(segment, _bytes(disk, segment), batches[-1].last + 1 if batches else 1))
    for batch in reversed(batches):
        for owner, seq in zip(reversed(batch.logs), reversed(batch.seqs), strict=True):
            owner.synced_seq = seq - 1
    return batches


def _bytes(disk: Disk, segment: Segment) -> bytes:
    if segment.data is not None:
        return segment.data
    file = disk.open(segment.path)
    try:
        return file.read(0, segment.end)
    finally:
        file.close()


def _batch(segment: Segment, data: bytes, first: int) -> Batch:
    batch = Batch(segment, first)
    batch.start = segment.synced
    found = sorted(
        (begin, end, owner)
        for owner, places in segment.spans.items()
        for begin, end in zip(places[::2], places[1::2], strict=True)
        if begin >= segment.synced
    )
    for begin, end, owner in found:
        line = data[data.rfind(b"\n", 0, begin) + 1 : end + SUFFIX_BYTES]
        batch.lines.append(line)
        batch.logs.append(owner)
        batch.seqs.append(_seq_of(data[begin:end], owner))
        batch.size += len(line)
    batch.last = first + len(found) - 1
    return batch


def _seq_of(record: bytes, owner: SessionLog) -> int:
    try:
        return decode_record(record + b"\n").seq
    except LineDamaged:  # its session's owner is told when it is loaded
        return owner.written_seq
