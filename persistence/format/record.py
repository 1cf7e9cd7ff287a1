r"""The lines of the store's files: how they are written, checked and read.

Layout. Every file is NDJSON; every line, headers included, ends in the same 19 bytes:

    line    := body ',"sum":"' crc '"}' LF          crc: CRC-32 of body, 8 lower-case hex digits

    journal := {"seq":12,"at":"2026-01-31T09:30:00.000001Z","kind":"push","data":{…},"prev":"9ae0daaf","sum":…}
        seq     number of the record in its session: 1, 2, 3 …, strictly + 1; order comes from it alone
        at      UTC with microseconds
        kind    name of the change, [a-z][a-z0-9_.-]*, at most 64 characters
        data    JSON of the change (see `values`)
        prev    sum of the record before; 00000000 before the first
    log     := {"w":4096,"p":"1c291ca3","s":"user-42","birth":"5e0f…","r":{…},"sum":…}
        w       bytes of this segment known to be synced when the line was written
        p       sum of the line before in this segment, its header included
        s       id of the session; {"$esc":"…"} when it holds lone surrogates
        birth   which creation of that id
        r       the journal line verbatim, without its LF
    watermark := {"w":4096,"p":"1c291ca3","sum":…}   a log line without a record
    segment header := {"format":"session-actor-log","version":1,"number":7,"continues":{"segment":6,"offset":4096},
                       "sum":…}
        continues   the segment whose synced part ends at offset, and which this one takes over from; absent: none
    journal header := {"format":"session-actor-journal","version":1,"session":"user-42","birth":"5e0f…","number":2,
                       "continues":{"seq":12,"sum":"9ae0daaf"},"sum":…}
        continues   the record before the first of this file; absent before the first of all
    journal index: last line of a journal file that is complete; see `journal_index`
    snapshot := header LF data LF
        header  {"format":"session-actor-snapshot","version":1,"session":"user-42","birth":"5e0f…",
                 "after":{"seq":12,"sum":"9ae0daaf"},"sum":…}     after: the record that it was taken after
        data    {"p":"5c1d90aa","data":{…},"sum":…}               p: sum of the header line
    headers may also have "enc", "kid", "epoch": cipher, name and epoch of the key. Absent: plain.

Headers are made and read by `header`. A check compares the whole suffix byte for byte, LF included: comparing numbers
would let a changed case of a hex digit, a quote or LF pass.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar
from zlib import crc32

import msgspec

from session_actor.persistence.errors import LineDamaged, RecordTooLarge

from .values import encode_text

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_SUM: Final = "00000000"
"""`prev` of a session's first record."""
SUFFIX_BYTES: Final = 19
"""Length of the part of a line that holds its sum, LF included."""
MAX_RECORD_BYTES: Final = 64 * 1024 * 1024
"""The cap of one record's data, encoded."""
MAX_LINE_BYTES: Final = MAX_RECORD_BYTES + 16 * 1024
"""No valid line is longer: a reader may stop there."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_US: Final = 1_000_000
_TIME_CHARACTERS: Final = 27
_SECOND: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)
_KIND: Final = re.compile(r"[a-z][a-z0-9_.\-]{0,63}")
_FIRST_SECOND: Final = -62_135_596_800  # 0001-01-01
_LAST_SECOND: Final = 253_402_300_799  # 9999-12-31
_KEPT: Final = 1024
_SECONDS: Final[dict[str, int]] = {}
_SECOND_TEXTS: Final[dict[int, bytes]] = {}
_KIND_TEXTS: Final[dict[str, bytes]] = {}
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_BAD_SUM: Final = "its sum does not fit its bytes"
_BAD_FORM: Final = "its sum fits, but it is not a line of this format"


class Record(msgspec.Struct, frozen=True, gc=False):
    """One change of one session; the fields are those of its line, so that lines are decoded without any Python."""

    seq: int
    at: str
    kind: str
    data: msgspec.Raw
    """JSON; a view on the bytes it was read from."""
    prev: str
    """Sum of the record before."""
    sum: str
    """Its own sum: the next record's `prev`."""

    @property
    def at_us(self) -> int:
        """When it was made: microseconds since the epoch, UTC. Raises `LineDamaged` for text that is no time."""
        return parse_time(self.at)

    def __repr__(self) -> str:
        """Without the data, which is conversation."""
        return f"Record(seq={self.seq}, kind={self.kind!r}, at={self.at!r})"

    def __rich_repr__(self) -> Any:
        """None, so that rich takes `repr`, too: it would show all fields."""
        return None


_RECORD: Final = msgspec.json.Decoder(Record)

# --- sums -----------------------------------------------------------------------------------------------------------


def verify(line: bytes) -> bool:
    """Whether `line`, LF included, is whole: its last 19 bytes are what its other bytes ask for."""
    body = line[:-SUFFIX_BYTES]
    return line[-SUFFIX_BYTES:] == b',"sum":"%08x"}\n' % crc32(body) and body[:1] == b"{"


def close_line(body: bytes) -> tuple[bytes, str]:
    """Add the suffix to `body`; returns the line, LF included, and its sum."""
    total = f"{crc32(body):08x}"
    return b'%b,"sum":"%b"}\n' % (body, total.encode()), total


# --- records ----------------------------------------------------------------------------------------------------------


def encode_record(seq: int, at_us: int, kind: str, data: bytes, prev: str) -> tuple[bytes, str]:
    """Make a journal line; returns it, LF included, and its sum.

    `at_us`: microseconds since the epoch, years 1 to 9999. `data`: JSON on one line. `prev`: sum of the record before.
    Raises `RecordTooLarge`; ValueError for an unusable kind or time.
    """
    if len(data) > MAX_RECORD_BYTES:
        raise RecordTooLarge(len(data), MAX_RECORD_BYTES)
    second, microsecond = divmod(at_us, _SECOND_US)
    at, name = _SECOND_TEXTS.get(second) or _second_text(second), _KIND_TEXTS.get(kind) or _kind_text(kind)
    return close_line(
        b'{"seq":%d,"at":"%b.%06dZ","kind":"%b","data":%b,"prev":"%b"'
        % (seq, at, microsecond, name, data, prev.encode())
    )


def decode_record(line: bytes) -> Record:
    """Check and read a journal line, LF included. Raises `LineDamaged`."""
    if not verify(line):
        raise LineDamaged(_BAD_SUM)
    try:
        return _RECORD.decode(line)
    except (msgspec.DecodeError, RecursionError):
        raise LineDamaged(_BAD_FORM) from None


def decode_records(lines: bytes) -> list[Record]:
    """Read journal lines whose bytes were checked as a whole: no sum is looked at. Raises `LineDamaged`."""
    try:
        return _RECORD.decode_lines(lines)
    except (msgspec.DecodeError, RecursionError):
        raise LineDamaged(_BAD_FORM) from None


# --- log lines --------------------------------------------------------------------------------------------------------


def encode_logged(  # noqa: PLR0917 - made for every record: keywords cost
    head: bytes, prev_sum: bytes, owner: bytes, seq: int, at_us: int, kind: str, data: bytes, prev: bytes
) -> tuple[bytes, bytes, int, bytes]:
    """`encode_record` and `encode_log_line` in one, twice as quick, for the writer; sums are ASCII bytes here.

    `head`: from `log_head`. Returns the log line, LF included, its sum, the length of the record in it (without LF),
    and the record's sum.
    """
    if len(data) > MAX_RECORD_BYTES:
        raise RecordTooLarge(len(data), MAX_RECORD_BYTES)
    second = at_us // _SECOND_US
    body = b'{"seq":%d,"at":"%b.%06dZ","kind":"%b","data":%b,"prev":"%b"' % (
        seq,
        _SECOND_TEXTS.get(second) or _second_text(second),
        at_us - second * _SECOND_US,
        _KIND_TEXTS.get(kind) or _kind_text(kind),
        data,
        prev,
    )
    record_sum = b"%08x" % crc32(body)
    line = b"".join((head, prev_sum, b'",', owner, b',"r":', body, b',"sum":"', record_sum, b'"}'))
    line_sum = b"%08x" % crc32(line)
    return b"".join((line, b',"sum":"', line_sum, b'"}\n')), line_sum, len(body) + SUFFIX_BYTES - 1, record_sum


def log_head(synced_bytes: int) -> bytes:
    """What log lines start with as long as `synced_bytes` of their segment are known to be synced."""
    return b'{"w":%d,"p":"' % synced_bytes


def record_in(line: bytes, owner: bytes) -> bytes:
    """The journal line, LF included, that a log line of `owner` wraps."""
    return line[line.index(owner) + len(owner) + len(b',"r":') : -SUFFIX_BYTES] + b"\n"


def prev_in(line: bytes) -> bytes:
    """The sum of the session's record before, which the journal line names that a log line wraps."""
    end = len(line) - 2 * SUFFIX_BYTES + len(b"\n") - len(b'"')
    return line[end - len(NO_SUM) : end]


def encode_owner(session: str, birth: str) -> bytes:
    """The part of a log line that names the session: made once a lease, for `encode_log_line`."""
    return b'"s":%b,"birth":%b' % (encode_text(session), encode_text(birth))


def encode_log_line(synced_bytes: int, prev_sum: str, owner: bytes, record: bytes) -> tuple[bytes, str]:
    """Wrap a journal line for the log; returns the log line, LF included, and its sum.

    `synced_bytes`: bytes of the segment known to be synced now. `prev_sum`: sum of the line before in this segment.
    `owner`: from `encode_owner`. `record`: a journal line, LF included.
    """
    return close_line(b'{"w":%d,"p":"%b",%b,"r":%b' % (synced_bytes, prev_sum.encode(), owner, record[:-1]))


def encode_watermark(synced_bytes: int, prev_sum: str) -> tuple[bytes, str]:
    """A log line that only says how far the segment is synced; returns it, LF included, and its sum."""
    return close_line(b'{"w":%d,"p":"%b"' % (synced_bytes, prev_sum.encode()))


# --- times and kinds --------------------------------------------------------------------------------------------------


def parse_time(text: str) -> int:
    """Microseconds since the epoch of a time as `encode_record` writes it. Raises `LineDamaged`."""
    second, fraction = _SECONDS.get(text[:19]), text[20:26]
    if len(text) != _TIME_CHARACTERS or text[19::7] != ".Z" or not (fraction.isdecimal() and fraction.isascii()):
        raise LineDamaged("its time is not a time of this format")
    return (_second_of(text[:19]) if second is None else second) * _SECOND_US + int(fraction)


def times_of(records: Sequence[Record]) -> list[int]:
    """`Record.at_us` of many, checked in one go: in half the time. Raises `LineDamaged` if any is none."""
    texts = [record.at for record in records]
    fractions = [text[20:26] for text in texts]
    whole, digits, count = "".join(texts), "".join(fractions), len(texts)
    sound = whole.isascii() and (not count or digits.isdecimal()) and set(map(len, texts)) <= {_TIME_CHARACTERS}
    if not sound or whole[19::_TIME_CHARACTERS] != "." * count or whole[26::_TIME_CHARACTERS] != "Z" * count:
        raise LineDamaged("its time is not a time of this format")
    known = _SECONDS
    return [
        (known.get(text[:19]) or _second_of(text[:19])) * _SECOND_US + int(fraction)
        for text, fraction in zip(texts, fractions, strict=True)
    ]


def _second_of(text: str) -> int:
    if not _SECOND.fullmatch(text):
        raise LineDamaged("its time is not a time of this format")
    try:
        second = (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
    except ValueError:
        raise LineDamaged("its time does not exist") from None
    return _keep(_SECONDS, text, second)


def _second_text(second: int) -> bytes:
    if not _FIRST_SECOND <= second <= _LAST_SECOND:
        raise ValueError(f"a time {second} s from the epoch is outside the years 1 to 9999")
    return _keep(_SECOND_TEXTS, second, (_EPOCH + timedelta(seconds=second)).isoformat()[:19].encode())


def _kind_text(kind: str) -> bytes:
    if not _KIND.fullmatch(kind):
        raise ValueError("a kind is [a-z][a-z0-9_.-]*, at most 64 characters")
    return _keep(_KIND_TEXTS, kind, kind.encode())


def _keep(cache: dict[_Key, _Value], key: _Key, value: _Value) -> _Value:
    """Remember `value`: looking into a dict takes a third of a call through `lru_cache`."""
    if len(cache) >= _KEPT:
        cache.clear()
    cache[key] = value
    return value
