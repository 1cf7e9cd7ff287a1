r"""The lines of the store's files: how they are written, checked and read.

Layout. Every file is NDJSON; every line, headers included, ends in the same 19 bytes:

    line    := body ',"sum":"' crc '"}' LF          crc: CRC-32 of body, 8 lower-case hex digits

    journal := body of {"seq":12,"at":"2026-01-31T09:30:00.000001Z","kind":"push","data":{…},"prev":"9ae0daaf", … sum}
                 seq    number of the record in its session: 1, 2, 3 …, strictly + 1; order comes from it alone
                 at     UTC with microseconds
                 kind   name of the change, [a-z][a-z0-9_.-]*, at most 64 characters
                 data   JSON of the change (see values)
                 prev   sum of the record before; 00000000 before the first
    log     := body of {"w":4096,"p":"1c291ca3","s":"user-42","birth":"5e0f…","r":{…},"sum":…}
                 w      bytes of this segment known to be synced when the line was written
                 p      sum of the line before in this segment, its header included
                 s      id of the session; {"$esc":"…"} when it holds lone surrogates
                 birth  which creation of that id
                 r      the journal line verbatim, without its LF
    segment header := body of {"format":"session-actor-log","version":1,"number":7,"continues":{"segment":6,"offset":4096}, …}
                 continues   the segment whose synced part ends at offset, and which this one takes over from; or null
    journal header := body of {"format":"session-actor-journal","version":1,"session":"user-42","birth":"5e0f…","number":1,
                 "continues":{"seq":0,"sum":"00000000"}, …}
                 continues   the record before the first of this file
    both headers may go on with "enc", "kid", "epoch": cipher, name and epoch of the key. Absent: plain.

Both kinds of headers are made and read by `header`. A check compares the whole suffix byte for byte, LF included:
comparing numbers would let a changed case of a hex digit, a quote or LF pass.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from .errors import LineDamaged, RecordTooLarge, ValueUnreadable
from .values import decode_text, encode_text

NO_SUM: Final = "00000000"
"""`prev` of a session's first record."""
MAX_RECORD_BYTES: Final = 64 * 1024 * 1024
"""The cap of one record's data, encoded."""
MAX_LINE_BYTES: Final = MAX_RECORD_BYTES + 16 * 1024
"""No valid line is longer: a reader may stop there."""

_SUFFIX_BYTES: Final = 19
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_US: Final = 1_000_000
_KIND: Final = re.compile(r"[a-z][a-z0-9_.\-]{0,63}")
_FIRST_SECOND: Final = -62_135_596_800  # 0001-01-01
_LAST_SECOND: Final = 253_402_300_799  # 9999-12-31


class Record(msgspec.Struct, frozen=True, gc=False):
    """One change of one session."""

    seq: int
    at_us: int
    """Microseconds since the epoch, UTC."""
    kind: str
    data: bytes
    """JSON."""
    prev: str
    """Sum of the record before."""
    sum: str
    """Its own sum: the next record's `prev`."""

    def __repr__(self) -> str:
        """Without the data, which is conversation."""
        return f"Record(seq={self.seq}, kind={self.kind!r}, {len(self.data)} bytes)"


class LogLine(NamedTuple):
    """One line of the log, checked; the record inside is still encoded."""

    synced_bytes: int
    """Bytes of the segment known to be synced when the line was written (`w`)."""
    prev_sum: str
    """Sum of the line before (`p`)."""
    session: str
    birth: str
    record: bytes
    """The journal line without its newline."""
    sum: str


# --- sums ------------------------------------------------------------------------------------------------------------


def verify(line: bytes) -> bool:
    """Whether `line`, newline included, is whole: its last 19 bytes are what its other bytes ask for."""
    body = line[:-_SUFFIX_BYTES]
    return line[-_SUFFIX_BYTES:] == b',"sum":"%08x"}\n' % crc32(body) and body[:1] == b"{"


def close_line(body: bytes) -> tuple[bytes, str]:
    """Add the suffix to `body`; returns the line and its sum."""
    total = b"%08x" % crc32(body)
    return b'%b,"sum":"%b"}\n' % (body, total), total.decode()


# --- records ---------------------------------------------------------------------------------------------------------


def encode_record(seq: int, at_us: int, kind: str, data: bytes, prev: str) -> tuple[bytes, str]:
    """Make a journal line; returns it (newline included) and its sum.

    `at_us`: microseconds since the epoch, years 1 to 9999. `data`: JSON on one line. `prev`: sum of the record before.
    Raises `RecordTooLarge`; ValueError for an unusable kind or time.
    """
    if len(data) > MAX_RECORD_BYTES:
        raise RecordTooLarge(len(data), MAX_RECORD_BYTES)
    second, microsecond = divmod(at_us, _SECOND_US)
    return close_line(
        b'{"seq":%d,"at":"%b.%06dZ","kind":"%b","data":%b,"prev":"%b"'
        % (seq, _second_text(second), microsecond, _kind_text(kind), data, prev.encode())
    )


def decode_record(line: bytes) -> Record:
    """Check and read a journal line, newline included. Raises `LineDamaged`."""
    if not verify(line):
        raise LineDamaged(_BAD_SUM)
    try:
        fields = _RECORD.decode(line)
        return Record(fields.seq, parse_time(fields.at), fields.kind, bytes(fields.data), fields.prev, fields.sum)
    except _UNREADABLE:
        raise LineDamaged(_BAD_FORM) from None


class _RecordFields(msgspec.Struct, gc=False):
    seq: int
    at: str
    kind: str
    data: msgspec.Raw
    prev: str
    sum: str


_RECORD: Final = msgspec.json.Decoder(_RecordFields)
_BAD_SUM: Final = "its sum does not fit its bytes"
_BAD_FORM: Final = "its sum fits, but it is not a line of this format"
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError, ValueError, ValueUnreadable)


# --- log lines -------------------------------------------------------------------------------------------------------


def encode_log_line(synced_bytes: int, prev_sum: str, owner: bytes, record: bytes) -> tuple[bytes, str]:
    """Wrap a journal line for the log; returns the log line (newline included) and its sum.

    `synced_bytes`: bytes of the segment known to be synced now. `prev_sum`: sum of the line before in this segment.
    `owner`: made once a lease by `encode_owner`. `record`: a journal line, newline included.
    """
    return close_line(b'{"w":%d,"p":"%b",%b,"r":%b' % (synced_bytes, prev_sum.encode(), owner, record[:-1]))


def encode_owner(session: str, birth: str) -> bytes:
    """The part of a log line that names the session, for `encode_log_line`."""
    return b'"s":%b,"birth":%b' % (encode_text(session), encode_text(birth))


def decode_log_line(line: bytes) -> LogLine:
    """Check and read a log line, newline included; the record inside is checked by `decode_record(line.record + LF)`.

    Raises `LineDamaged`.
    """
    if not verify(line):
        raise LineDamaged(_BAD_SUM)
    try:
        fields = _LOG_LINE.decode(line)
        session = decode_text(fields.s)
        return LogLine(fields.w, fields.p, session, fields.birth, bytes(fields.r), fields.sum)
    except _UNREADABLE:
        raise LineDamaged(_BAD_FORM) from None


class _LogFields(msgspec.Struct, gc=False):
    w: int
    p: str
    s: str | dict[str, str]
    birth: str
    r: msgspec.Raw
    sum: str


_LOG_LINE: Final = msgspec.json.Decoder(_LogFields)


# --- times and kinds -------------------------------------------------------------------------------------------------


def parse_time(text: str) -> int:
    """Microseconds since the epoch of a time as `encode_record` writes it. Raises ValueError."""
    if len(text) != 27 or text[19] != "." or text[26] != "Z" or not text[20:26].isdecimal():
        raise ValueError("not a time of this format")
    return _second_of(text[:19]) * _SECOND_US + int(text[20:26])


@lru_cache(maxsize=64)
def _second_of(text: str) -> int:
    return (datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)


@lru_cache(maxsize=64)
def _second_text(second: int) -> bytes:
    if not _FIRST_SECOND <= second <= _LAST_SECOND:
        raise ValueError(f"a time {second} s from the epoch is outside the years 1 to 9999")
    return (_EPOCH + timedelta(seconds=second)).isoformat()[:19].encode()


@lru_cache(maxsize=1024)
def _kind_text(kind: str) -> bytes:
    if not _KIND.fullmatch(kind):
        raise ValueError("a kind is [a-z][a-z0-9_.-]*, at most 64 characters")
    return kind.encode()
