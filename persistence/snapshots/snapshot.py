"""Snapshots on the disk: what a session was after one of its records, so that loading need not read what came before.

A session has two slots, so that there is always a whole snapshot beside the one that is being written. A new one goes
into a temporary file first, which is synced and then renamed into the slot that does not hold the newest. So slots are
found by their names alone, and nothing is ever left over but a temporary file, which the next snapshot overwrites. What
a slot holds of another birth of the session, or what is damaged, counts as nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from session_actor.persistence.errors import LineDamaged, RecordTooLarge, StoreCorrupt
from session_actor.persistence.files.names import snapshot_path
from session_actor.persistence.files.plain_file import NotPlain, open_plain
from session_actor.persistence.format.header import (
    RecordRef,
    SnapshotHeader,
    decode_snapshot_header,
    encode_snapshot_header,
)
from session_actor.persistence.format.record import MAX_RECORD_BYTES, close_line, verify
from session_actor.persistence.store import Snapshot

if TYPE_CHECKING:
    from collections.abc import Collection

    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.store import Lease

SLOTS: Final = ("a", "b")
TEMPORARY: Final = ".new"
"""Added to a slot's name while its snapshot is being written."""
MAX_BYTES: Final = MAX_RECORD_BYTES + 64 * 1024
"""No valid snapshot is longer."""
_HEADER_BYTES: Final = 16 * 1024


class _Data(msgspec.Struct):
    p: str
    data: msgspec.Raw


_DATA: Final = msgspec.json.Decoder(_Data)


class Slot(NamedTuple):
    """A slot that holds a snapshot of the birth that was asked for."""

    name: str
    path: str
    seq: int


class Slots(NamedTuple):
    """What the slots of a session hold."""

    good: list[Slot]
    """Newest first; their headers are sound."""
    damaged: list[str]
    """Paths of files that are there and are no snapshots."""
    refused: tuple[tuple[str, OSError], ...] = ()
    """Paths of files that the disk refuses to read, each with why: what they hold is not known."""


def check_snapshot(lease: Lease, seq: int, data: bytes) -> None:
    """Raises ValueError and `RecordTooLarge` for what `Store.save` refuses."""
    if not 1 <= seq <= lease.appended_seq:
        raise ValueError(f"a snapshot after record {seq}: the session has records 1 to {lease.appended_seq}")
    if b"\n" in data:
        raise ValueError("the data of a snapshot must be JSON on one line")
    if len(data) > MAX_RECORD_BYTES:
        raise RecordTooLarge(len(data), MAX_RECORD_BYTES)


def encode_snapshot(session: str, birth: str, after: RecordRef, data: bytes) -> bytes:
    """The file of a snapshot that was taken after record `after`; `data`: JSON on one line."""
    header, total = encode_snapshot_header(SnapshotHeader(session, birth, after))
    return header + close_line(b'{"p":"%b","data":%b' % (total.encode(), data))[0]


def decode_snapshot(content: bytes, path: str) -> tuple[SnapshotHeader, Snapshot]:
    """Check and read the file of a snapshot. Raises `LineDamaged`, `StoreVersionTooNew`."""
    end = content.find(b"\n", 0, _HEADER_BYTES) + 1
    header, line = decode_snapshot_header(content[:end], path), content[end:]
    if not verify(line) or line.find(b"\n") != len(line) - 1:
        raise LineDamaged("its data fail their check")
    try:
        found = _DATA.decode(line)
    except (msgspec.DecodeError, RecursionError):
        raise LineDamaged("its sum fits, but it is no snapshot of this format") from None
    if found.p.encode() != content[end - 11 : end - 3]:
        raise LineDamaged("its data belong to another header")
    return header, Snapshot(header.after.seq, header.after.sum, found.data)


def look(disk: Disk, folder: str, session: str, birth: str) -> Slots:
    """What the slots of a session hold for a birth of it. Blocks. Raises `StoreVersionTooNew`.

    `folder`: that of all snapshots. A slot that the disk refuses to read does not hide the other one.
    """
    found, refused = Slots([], []), list[tuple[str, OSError]]()
    for name in SLOTS:
        path = f"{folder}/{snapshot_path(session, name)}"
        try:
            start = _read(disk, path, _HEADER_BYTES)
            header = None if start is None else decode_snapshot_header(start[: start.find(b"\n") + 1], path)
        except LineDamaged:
            found.damaged.append(path)
            continue
        except OSError as error:
            refused.append((path, error))
            continue
        if header is not None and (header.session, header.birth) == (session, birth):
            found.good.append(Slot(name, path, header.after.seq))
    found.good.sort(key=lambda slot: -slot.seq)
    return found._replace(refused=tuple(refused))


def shelves(disk: Disk, folder: str) -> frozenset[str] | None:
    """The folders of snapshots in `folder`, that of all; None: that cannot be told. Blocks."""
    try:
        return frozenset(disk.list(folder))
    except OSError:
        return None


def slots_without_look(session: str, found: frozenset[str] | None) -> Slots | None:
    """The empty slots of a session that has no folder among the `shelves` that were found; None: look.

    Most sessions are short and have no snapshot, and to look is to try to open two files.
    """
    shelf, _, _ = snapshot_path(session, SLOTS[0]).partition("/")
    return None if found is None or shelf in found else Slots([], [])


def read_slot(disk: Disk, slot: Slot, session: str, birth: str) -> Snapshot:
    """The snapshot in a slot, which may have been overwritten since by a newer one. Blocks.

    Raises `LineDamaged` for what is no whole snapshot of this birth, `StoreVersionTooNew`, OSError.
    """
    content = _read(disk, slot.path, MAX_BYTES)
    if content is None:
        raise LineDamaged("it is gone")
    header, snapshot = decode_snapshot(content, slot.path)
    if (header.session, header.birth) != (session, birth):
        raise LineDamaged("it belongs to another session or birth")
    return snapshot


def write_beside(disk: Disk, path: str, content: bytes) -> None:
    """Write a snapshot beside the slot at `path`, synced, ready to be renamed into it. Blocks. Raises OSError."""
    file = disk.open(path + TEMPORARY, create=True)
    try:
        file.truncate(0)
        file.write(content, 0)
        file.sync()
    finally:
        file.close()


def copy_only(disk: Disk, slots: Slots) -> Slots:
    """Have two copies of the only snapshot of a session, so that it can be the base of all. Blocks.

    Raises OSError; `StoreCorrupt` when it cannot be read.
    """
    (only,) = slots.good
    name = other_slot(slots)
    path = only.path.removesuffix(f"{only.name}.ndjson") + f"{name}.ndjson"
    _copy(disk, only.path, path)
    return Slots([only, Slot(name, path, only.seq)], [])


def write_again(disk: Disk, slot: Slot) -> None:
    """Make a snapshot durable that somebody else wrote: a sync of its folder may have been refused, and lost its name.

    Blocks. Raises as `copy_only`.
    """
    _copy(disk, slot.path, slot.path)


def _copy(disk: Disk, source: str, target: str) -> None:
    try:
        content = _read(disk, source, MAX_BYTES)
    except LineDamaged as error:
        raise StoreCorrupt(source, str(error)) from error
    if content is None:
        raise StoreCorrupt(source, "it is gone")
    write_beside(disk, target, content)
    disk.rename(target + TEMPORARY, target)
    disk.sync_dir(target.rpartition("/")[0])


def usable(slots: Slots, unusable: Collection[Slot]) -> Slots:
    """The slots without the `unusable` ones, which then count as damaged."""
    good = [slot for slot in slots.good if slot not in unusable]
    return slots._replace(good=good, damaged=slots.damaged + [slot.path for slot in slots.good if slot not in good])


def check_readable(slots: Slots) -> None:
    """Raises OSError when the disk refuses to read a slot."""
    for _, error in slots.refused:
        raise error


def other_slot(slots: Slots) -> str:
    """The slot that does not hold the newest snapshot."""
    return next(name for name in SLOTS if not slots.good or name != slots.good[0].name)


def _read(disk: Disk, path: str, limit: int) -> bytes | None:
    """At most `limit` bytes of a file; None when there is none.

    Raises `LineDamaged` for what is no plain file, or longer than any. That the disk refuses now says nothing about
    what it holds: it is an OSError, and whoever comes later may read it.
    """
    try:
        file = open_plain(disk, path)
    except FileNotFoundError:
        return None
    except NotPlain as error:
        raise LineDamaged("it is no plain file") from error
    try:
        if file.size() > MAX_BYTES:
            raise LineDamaged(f"it is longer than {MAX_BYTES} bytes")
        return file.read(0, min(limit, file.size()))
    finally:
        file.close()
