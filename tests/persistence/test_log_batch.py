"""Lines on their way to the disk: the quick encoder is the plain one, and wrapping anew keeps records as they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from session_actor.persistence import ValueNotStorable
from session_actor.persistence.format.header import SegmentHeader, encode_segment_header
from session_actor.persistence.format.record import (
    encode_log_line,
    encode_logged,
    encode_owner,
    encode_record,
    log_head,
    record_in,
)
from session_actor.persistence.format.values import dumps
from session_actor.persistence.log.segment import Segment
from session_actor.persistence.log.session_log import SessionLog
from session_actor.persistence.writing.batch import Backlog, Batch, rebuild

from .log_lines import decode_log_lines

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
    found = encode_logged(log_head(synced), sums[1].encode(), owner, seq, at_us, "said", data, sums[0].encode())
    assert found == (line, line_sum.encode(), len(record) - 1, record_sum.encode())
    assert record_in(line, owner) == record


def backlog(*entries) -> Backlog:
    queue = Backlog(1000, 1_000_000, lambda: None)
    for entry in entries:
        queue.append(entry)
    return queue


def filled(log: SessionLog, into: Segment, first: int, count: int) -> Batch:
    batch = Batch(into, first)
    queue = backlog(*((log, number, 0, "said", b'"%d"' % number, 1) for number in range(first, first + count)))
    assert batch.take(queue, count, 10**6) == []
    assert (len(queue.entries), queue.held_bytes) == (0, 0)
    return batch


def test_a_batch_tells_segment_and_session_where_its_records_are():
    log, into = SessionLog("a", "0" * 16), segment(1)
    batch = filled(log, into, 1, 3)
    places = list(into.spans[log])
    assert [batch.data[begin - batch.start : end - batch.start] + b"\n" for begin, end in pairs(places)] == [
        record for _, _, record in batch.records
    ]
    assert list(into.written_spans(log)) == []
    batch.note_written()
    assert (log.written_seq, into.written, list(into.written_spans(log))) == (3, into.end, places)
    batch.note_synced()
    assert log.synced_seq == 3


def pairs(places: list[int]) -> list[tuple[int, int]]:
    return list(zip(places[::2], places[1::2], strict=True))


def test_batches_that_follow_each_other_become_one():
    log, into = SessionLog("a", "0" * 16), segment(1)
    first, second, both = filled(log, into, 1, 2), filled(log, into, 3, 1), b""
    both = first.data + second.data
    first.absorb(second)
    assert (first.data, first.first, first.last, first.seqs) == (both, 1, 3, [1, 2, 3])
    assert first.start + first.size == into.end


def test_records_wrapped_for_another_segment_stay_as_they_are():
    log, old, new = SessionLog("a", "0" * 16), segment(1), segment(2)
    watermark = Batch(old, 4)
    batches = [filled(log, old, 1, 3), watermark, filled(log, old, 4, 1)]
    watermark.add_watermark()
    again = rebuild(new, batches)
    assert [batch.records for batch in again] == [batch.records for batch in batches]
    assert [(batch.first, batch.last) for batch in again] == [(1, 3), (4, 3), (4, 4)]
    data = b"".join(batch.data for batch in again)
    lines = decode_log_lines(data)
    header, header_sum = encode_segment_header(SegmentHeader(2))
    assert [line.p for line in lines] == [header_sum, *(line.sum for line in lines[:-1])]
    assert new.end == len(header) + len(data)
    assert [(header + data)[begin:end] + b"\n" for begin, end in pairs(list(new.spans[log]))] == [
        record for batch in batches for _, _, record in batch.records
    ]


def test_an_entry_that_cannot_be_encoded_takes_its_position_and_its_session_with_it():
    one, two, into = SessionLog("a", "0" * 16), SessionLog("b", "1" * 16), segment(1)
    batch = Batch(into, 1)
    queue = backlog(
        (one, 1, 0, "said", b"1", 1),
        (one, 2, 0, "said", object(), 1),
        (two, 1, 0, "said", b"1", 1),
        (one, 3, 0, "said", b"3", 1),
    )
    refused = batch.take(queue, 10, 10**6)
    assert [(bad.position, type(bad.error)) for bad in refused] == [(2, ValueNotStorable), (4, type(None))]
    assert (batch.last, batch.logs, batch.seqs, one.broken_until) == (4, [one, two], [1, 1], 4)
    assert batch.size == len(batch.data) == into.end - batch.start
