"""First lines of segments and journals: read back exactly, damaged ones told from newer ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.persistence.errors import LineDamaged, StoreVersionTooNew
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
from session_actor.persistence.format.record import NO_SUM, close_line

ids = st.text(alphabet=st.characters(exclude_categories=[]), min_size=1, max_size=40)
numbers = st.integers(0, 2**63 - 1)
SEGMENT = encode_segment_header(SegmentHeader(7, SegmentRef(6, 4096)))[0]
JOURNAL = encode_journal_header(JournalHeader("user-42", "5e0f", 1))[0]


@given(session=ids, number=numbers, seq=numbers)
def test_a_journal_header_is_read_back_for_any_id(session, number, seq):
    header = JournalHeader(session, "5e0f", number, RecordRef(seq, "9ae0daaf"))
    line, total = encode_journal_header(header)
    assert decode_journal_header(line, "x") == header
    assert line.endswith(f'"sum":"{total}"}}\n'.encode())
    assert line.count(b"\n") == 1


@given(number=numbers, before=st.none() | st.builds(SegmentRef, numbers, numbers))
def test_a_segment_header_is_read_back(number, before):
    header = SegmentHeader(number, before)
    assert decode_segment_header(encode_segment_header(header)[0], "x") == header


def test_the_first_file_of_a_journal_continues_from_nothing():
    assert decode_journal_header(JOURNAL, "x").continues == RecordRef(0, NO_SUM)
    assert b"continues" not in JOURNAL
    assert encode_journal_header(JournalHeader("user-42", "5e0f", 1, RecordRef(0, NO_SUM)))[0] == JOURNAL


@pytest.mark.parametrize(("line", "decode"), [(SEGMENT, decode_segment_header), (JOURNAL, decode_journal_header)])
def test_a_flipped_bit_or_a_missing_end_is_damage_and_never_a_newer_version(line, decode):
    flips = (
        bytes([*line[:index], line[index] ^ (1 << bit), *line[index + 1 :]])
        for index in range(len(line))
        for bit in range(8)
    )
    for damaged in [*flips, *(line[:length] for length in range(len(line)))]:
        with pytest.raises(LineDamaged):
            decode(damaged, "x")


def test_a_header_of_the_other_kind_is_damage():
    with pytest.raises(LineDamaged, match="session-actor-journal"):
        decode_journal_header(SEGMENT, "x")
    with pytest.raises(LineDamaged, match="session-actor-log"):
        decode_segment_header(JOURNAL, "x")


@pytest.mark.parametrize("body", [b"{", b'{"a":1', b'{"format":"session-actor-log"', b'{"format":7,"version":1'])
def test_a_line_that_is_no_header_is_damage(body):
    with pytest.raises(LineDamaged, match="header"):
        decode_segment_header(close_line(body)[0], "x")


def test_a_header_without_its_fields_is_damage():
    with pytest.raises(LineDamaged, match="lacks fields"):
        decode_segment_header(close_line(b'{"format":"session-actor-log","version":1')[0], "x")


@pytest.mark.parametrize("version", [0, -1, 2, 10**30])
def test_an_unknown_version_is_refused_by_name(version):
    line = close_line(b'{"format":"session-actor-log","version":%d,"number":1' % version)[0]
    with pytest.raises(StoreVersionTooNew, match=f"version {version} of session-actor-log") as caught:
        decode_segment_header(line, "/data/log/1.ndjson")
    assert caught.value.path == "/data/log/1.ndjson"


def test_a_file_that_needs_decryption_is_refused_by_the_cipher_s_name():
    header = SegmentHeader(1, enc="aes-256-gcm", kid="main", epoch=3)
    with pytest.raises(StoreVersionTooNew, match="aes-256-gcm"):
        decode_segment_header(encode_segment_header(header)[0], "x")


def test_fields_that_later_versions_add_are_passed_over():
    line = close_line(b'{"format":"session-actor-log","version":1,"number":3,"later":[{}]')[0]
    assert decode_segment_header(line, "x") == SegmentHeader(3)
