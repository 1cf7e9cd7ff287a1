"""The formats on disk, held by files: what version 1 wrote stays readable, and is written the same way today."""

from __future__ import annotations

import base64
import math
import struct
from pathlib import Path

import pytest

from session_actor.persistence.errors import StoreVersionTooNew
from session_actor.persistence.format.header import (
    JournalHeader,
    RecordRef,
    SegmentHeader,
    SegmentRef,
    decode_journal_header,
    decode_segment_header,
    encode_journal_header,
    encode_segment_header,
)
from session_actor.persistence.format.record import (
    NO_SUM,
    close_line,
    decode_record,
    encode_log_line,
    encode_owner,
    encode_record,
    encode_watermark,
)
from session_actor.persistence.format.values import dumps, loads

from .log_lines import decode_log_line

GOLDEN = Path(__file__).parent / "golden"
AT_US = 1_769_851_800_000_001  # 2026-01-31T09:30:00.000001Z
BIRTH = "5e0f5e0f5e0f5e0f"
IDS = ["user-42", "../../etc/passwd", "CON", 'a"b\\c\n', "\u00e9", "e\u0301", "\U0001f600", "nul\x00", "lone\ud800\\"]
VALUES = [
    None,
    True,
    0,
    -(2**63),
    2**64 - 1,
    2**64,
    -(10**40),
    0.1,
    -0.0,
    1e300,
    math.inf,
    -math.inf,
    "",
    "NUL \x00, line end \n, \u2028, \x7f, \U0001f600",
    "lone \ud800 and \udfff\ud83d\ude00, backslash \\",
    b"\x00\xff bytes",
    [],
    {},
    {"": [{"a": None}]},
    {"$esc": "not a tag"},
    {"$b64": 1},
    {"$$float": "$", "$": [], "$ref": "#/$defs/x"},
    {"key \ud800": 1, "$\udfff": 2},
]


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def journal() -> bytes:
    """A journal of all values, the second file of its session."""
    header = JournalHeader("lone\ud800\\", BIRTH, 2, RecordRef(12, "9ae0daaf"))
    parts, prev = [encode_journal_header(header)[0]], "9ae0daaf"
    for seq, value in enumerate(VALUES, start=13):
        line, prev = encode_record(seq, AT_US + seq, "push", dumps(value), prev)
        parts.append(line)
    return b"".join(parts)


def log() -> bytes:
    """A segment with one record for each id, and a watermark."""
    line, prev = encode_segment_header(SegmentHeader(7, SegmentRef(6, 4096)))
    parts = [line]
    for number, session in enumerate(IDS):
        record, _ = encode_record(1, AT_US, "push", b'{"number":%d}' % number, NO_SUM)
        line, prev = encode_log_line(len(parts[0]), prev, encode_owner(session, BIRTH), record)
        parts.append(line)
    return b"".join([*parts, encode_watermark(sum(map(len, parts)), prev)[0]])


FILES = {"journal-1.ndjson": journal, "log-1.ndjson": log}


@pytest.mark.parametrize("name", FILES)
def test_version_1_is_written_byte_for_byte_as_it_was(name):
    assert FILES[name]() == golden(name)


def test_a_journal_of_version_1_is_read():
    header, *lines = golden("journal-1.ndjson").splitlines(keepends=True)
    assert decode_journal_header(header, "x") == JournalHeader("lone\ud800\\", BIRTH, 2, RecordRef(12, "9ae0daaf"))
    records = [decode_record(line) for line in lines]
    assert [record.seq for record in records] == list(range(13, 13 + len(VALUES)))
    assert [record.at_us for record in records] == [AT_US + record.seq for record in records]
    assert [record.prev for record in records] == ["9ae0daaf", *(record.sum for record in records[:-1])]
    values = [loads(bytes(record.data)) for record in records]
    assert values == VALUES
    assert list(map(type, values)) == list(map(type, VALUES))


def test_a_log_of_version_1_is_read():
    header, *lines, watermark = golden("log-1.ndjson").splitlines(keepends=True)
    assert decode_segment_header(header, "x") == SegmentHeader(7, SegmentRef(6, 4096))
    read = [decode_log_line(line) for line in lines]
    assert [line.session for line in read] == IDS
    assert {line.birth for line in read} == {BIRTH}
    assert [bytes(decode_record(bytes(line.r) + b"\n").data) for line in read] == [
        b'{"number":%d}' % number for number in range(len(IDS))
    ]
    assert decode_log_line(watermark).w == len(golden("log-1.ndjson")) - len(watermark)


def test_values_of_version_1_are_read():
    text = golden("values-1.ndjson")
    values = [loads(line) for line in text.splitlines()]
    assert values[:-2] == VALUES
    assert b"".join(dumps(value) + b"\n" for value in values) == text
    bits = [base64.b16encode(struct.pack(">d", value)) for value in values[-2:]]
    assert bits == [b"7FF8000000000000", b"FFF8000000000001"]


@pytest.mark.parametrize(
    ("name", "decode"), [("log-2.ndjson", decode_segment_header), ("journal-2.ndjson", decode_journal_header)]
)
def test_a_newer_version_is_refused_by_name_and_left_as_it_is(name, decode, tmp_path):
    path = tmp_path / name
    path.write_bytes(golden(name))
    with pytest.raises(StoreVersionTooNew) as caught, path.open("rb") as file:
        decode(file.readline(), str(path))
    assert str(path) in str(caught.value)
    assert "version 2" in str(caught.value)
    assert "versions 1 to 1" in str(caught.value)
    assert path.read_bytes() == golden(name)


def newer() -> dict[str, bytes]:
    """Files of a version to come: the header keeps its form, the rest is anything."""
    return {
        "log-2.ndjson": close_line(b'{"format":"session-actor-log","version":2,"number":"seven"')[0] + b"\x00\x01\n",
        "journal-2.ndjson": close_line(b'{"format":"session-actor-journal","version":2')[0] + b"\x00\x01\n",
    }


@pytest.mark.parametrize("name", newer())
def test_the_files_of_a_version_to_come_are_what_this_test_thinks(name):
    assert newer()[name] == golden(name)
