"""The first lines of log segments and journal files: format, version, and where the file goes on from.

The layout is shown in `record`. A header keeps its form (format, version, sum) in every version to come, so its sum is
judged first and its version next: a damaged header is never taken for a newer one.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from session_actor.persistence.errors import LineDamaged, StoreVersionTooNew, ValueUnreadable

from .record import NO_SUM, close_line, verify
from .values import decode_typed, encode_record_data

VERSION: Final = 1
"""The format version that is written, and the newest that is read."""
LOG_FORMAT: Final = "session-actor-log"
JOURNAL_FORMAT: Final = "session-actor-journal"
SNAPSHOT_FORMAT: Final = "session-actor-snapshot"


class SegmentRef(msgspec.Struct, frozen=True):
    """A place in another segment."""

    segment: int
    offset: int


class RecordRef(msgspec.Struct, frozen=True):
    """One record of a session, as what comes behind it names it: `seq` 0 and `NO_SUM` before the first of all."""

    seq: int = 0
    sum: str = NO_SUM


_NOTHING: Final = RecordRef()


class SegmentHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """First line of a log segment. `enc`, `kid`, `epoch`: cipher, key name and key epoch; None when plain."""

    number: int
    continues: SegmentRef | None = None
    enc: str | None = None
    kid: str | None = None
    epoch: int | None = None


class JournalHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """First line of a journal file. `enc`, `kid`, `epoch` as in `SegmentHeader`.

    `copies`: the birth that salvage copied; None: none, its records were made under its own.
    """

    session: str
    birth: str
    number: int
    continues: RecordRef = _NOTHING
    enc: str | None = None
    kid: str | None = None
    epoch: int | None = None
    copies: str | None = None


class SnapshotHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """First line of a snapshot, which was taken after record `after`. `enc`, `kid`, `epoch` as in `SegmentHeader`."""

    session: str
    birth: str
    after: RecordRef
    enc: str | None = None
    kid: str | None = None
    epoch: int | None = None


class _Form(msgspec.Struct):
    """What every header of every version has."""

    format: str
    version: int
    enc: str | None = None


_FORM: Final = msgspec.json.Decoder(_Form)
_Header = TypeVar("_Header", SegmentHeader, JournalHeader, SnapshotHeader)


def encode_segment_header(header: SegmentHeader) -> tuple[bytes, str]:
    """First line of a log segment, newline included, and its sum."""
    return _encode(LOG_FORMAT, header)


def encode_journal_header(header: JournalHeader) -> tuple[bytes, str]:
    """First line of a journal file, newline included, and its sum."""
    if header.continues == _NOTHING:  # left out is only the default itself, not what is equal to it
        header = msgspec.structs.replace(header, continues=_NOTHING)
    return _encode(JOURNAL_FORMAT, header)


def encode_snapshot_header(header: SnapshotHeader) -> tuple[bytes, str]:
    """First line of a snapshot, newline included, and its sum."""
    return _encode(SNAPSHOT_FORMAT, header)


def decode_segment_header(line: bytes, path: str) -> SegmentHeader:
    """Check and read the first line of a log segment. `path`: named in errors.

    Raises `LineDamaged`; `StoreVersionTooNew` for a newer version or a cipher, which this version does not read.
    """
    return _decode(line, path, LOG_FORMAT, SegmentHeader)


def decode_journal_header(line: bytes, path: str) -> JournalHeader:
    """Check and read the first line of a journal file; `path` and errors as in `decode_segment_header`."""
    return _decode(line, path, JOURNAL_FORMAT, JournalHeader)


def decode_snapshot_header(line: bytes, path: str) -> SnapshotHeader:
    """Check and read the first line of a snapshot; `path` and errors as in `decode_segment_header`."""
    return _decode(line, path, SNAPSHOT_FORMAT, SnapshotHeader)


def _encode(form: str, header: SegmentHeader | JournalHeader | SnapshotHeader) -> tuple[bytes, str]:
    fields = encode_record_data(header)[1:-1]
    return close_line(b'{"format":"%b","version":%d,%b' % (form.encode(), VERSION, fields))


def _decode(line: bytes, path: str, form: str, header: type[_Header]) -> _Header:
    if not verify(line):
        raise LineDamaged("the header's sum does not fit its bytes")
    try:
        found = _FORM.decode(line)
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise LineDamaged("it does not start with a header") from None
    if found.format != form:
        raise LineDamaged(f"it does not start with a header of format {form}")
    _refuse_newer(found, path)
    try:
        return decode_typed(line, header)
    except ValueUnreadable:
        raise LineDamaged("its header lacks fields, or has them of another type") from None


def _refuse_newer(found: _Form, path: str) -> None:
    if not 1 <= found.version <= VERSION:
        raise StoreVersionTooNew(path, f"version {found.version} of {found.format}", f"versions 1 to {VERSION}")
    if found.enc is not None:
        raise StoreVersionTooNew(path, f"decryption by {found.enc!r}", "plain files only")
