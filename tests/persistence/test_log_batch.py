"""Lines on their way to the disk: the quick encoder is the plain one, and wrapping anew keeps records as they are."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.persistence import ValueNotStorable
from session_actor.persistence.batch import Batch, rebuild
from session_actor.persistence.header import SegmentHeader, encode_segment_header
from session_actor.persistence.record import (
    decode_log_lines,
    encode_log_line,
    encode_logged,
    encode_owner,
    encode_record,
)
from session_actor.persistence.segment import Segment
from session_actor.persistence.session_log import SessionLog
from session_actor.persistence.values import dumps

HEADER_CRC = crc32(encode_segment_header(SegmentHeader(1))[0])
sums = st.text(alphabet="0123456789abcdef", min_size=8, max_size=8)


def segment(number: int) -> Segment:
    return Segment(number, f"/log/{number:08}.ndjson", None, None, encode_segment_header(SegmentHeader(number)))


@given(
    synced=st.integers(0, 2**40),
    sums=st.tuples(sums, sums),
    session=st.text(min_size=1, max_size=20),
    seq=st.integers(1, 2**60),
    at_us=st.integers(-(2**50), 2**50),
    text=st.text(max_size=200),
)
def test_the_quick_encoder_makes_the_bytes_of_the_plain_ones(*, synced, sums, session, seq, at_us, text):
    owner, data = encode_owner(session, "0" * 16), dumps(text)
    record, record_sum = encode_record(seq, at_us, "said", data, sums[0])
    line, line_sum = encode_log_line(synced, sums[1], owner, record)
    found = encode_logged(synced, sums[1].encode(), owner, seq, at_us, "said", data, sums[0].encode())
    assert found == (line, line_sum.encode(), len(record) - 1, record_sum.encode())


def filled(log: SessionLog, into: Segment, first: int, count: int) -> Batch:
    batch = Batch(into, first)
    for number in range(first, first + count):
        batch.add_entry((log, number, 0, "said", b'"%d"' % number, 1))
    return batch


def test_a_batch_grows_and_tells_only_what_is_new():
    log, into = SessionLog("a", "0" * 16), segment(1)
    batch = filled(log, into, 1, 3)
    first = batch.unwritten_lines
    batch.note_written(first)
    batch.add_entry((log, 4, 0, "said", b"4", 1))
    assert (batch.lines, batch.first, batch.last) == (first + batch.unwritten_lines, 1, 4)
    batch.note_written(batch.unwritten_lines)
    assert batch.unwritten_lines == b""
    assert list(into.spans[log]) == [place for pair in zip(batch.starts, batch.ends, strict=True) for place in pair]
    assert (log.written_seq, into.written, into.crc) == (4, into.end, crc32(batch.lines, HEADER_CRC))


def test_what_could_not_be_written_becomes_a_batch_of_its_own():
    log, into = SessionLog("a", "0" * 16), segment(1)
    batch = filled(log, into, 1, 2)
    batch.note_written(batch.unwritten_lines)
    written = batch.lines
    batch.add_entry((log, 3, 0, "said", b"3", 1))
    batch.add_entry((log, 4, 0, "said", b"4", 1))
    whole = batch.lines
    rest = batch.split(3)
    assert (batch.lines, batch.last, batch.size, batch.seqs) == (written, 2, len(written), [1, 2])
    assert (rest.lines, rest.first, rest.last, rest.seqs) == (whole[len(written) :], 3, 4, [3, 4])
    assert rest.start == batch.start + batch.size
    assert into.end == rest.start + rest.size


def test_records_wrapped_for_another_segment_stay_as_they_are():
    log, old, new = SessionLog("a", "0" * 16), segment(1), segment(2)
    batches = [filled(log, old, 1, 3), filled(log, old, 4, 1)]
    batches[0].add_watermark()
    again = rebuild(new, batches)
    assert [batch.records for batch in again] == [batch.records for batch in batches]
    assert [(batch.first, batch.last) for batch in again] == [(1, 3), (4, 4)]
    lines = decode_log_lines(b"".join(batch.lines for batch in again))
    header, header_sum = encode_segment_header(SegmentHeader(2))
    assert [line.p for line in lines] == [header_sum, *(line.sum for line in lines[:-1])]
    assert new.end == len(header) + sum(batch.size for batch in again)


def test_an_entry_that_cannot_be_encoded_takes_its_position_alone():
    log, into = SessionLog("a", "0" * 16), segment(1)
    batch = filled(log, into, 1, 1)
    size, total = batch.size, log.tail_sum
    with pytest.raises(ValueNotStorable):
        batch.add_entry((log, 2, 0, "said", object(), 1))
    assert (batch.last, batch.size, log.tail_sum, len(batch.seqs)) == (2, size, total, 1)
