"""Reading a segment back: what counts, what is torn off, and what is damage."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_actor.persistence import StoreVersionTooNew
from session_actor.persistence.format.header import SegmentHeader, SegmentRef, encode_segment_header
from session_actor.persistence.format.record import (
    NO_SUM,
    SUFFIX_BYTES,
    close_line,
    encode_log_line,
    encode_owner,
    encode_record,
    encode_watermark,
)
from session_actor.persistence.log.scan import Damage, SegmentScan, read_owner

PATH = "/log/00000007.ndjson"
NO_LIMIT = 1 << 40


class Written:
    """A segment of `count` lines, of two sessions in turn; synced after every `sync_every`-th line."""

    def __init__(self, count: int = 20, sync_every: int = 5) -> None:
        header, last = encode_segment_header(SegmentHeader(7, SegmentRef(6, 4096)))
        self.data = header
        self.starts: list[int] = []
        self.synced_at: list[int] = []
        synced, sums = 0, {"a": NO_SUM, "b": NO_SUM}
        for number in range(count):
            session = "ab"[number % 2]
            record, sums[session] = encode_record(number // 2 + 1, number, "said", b'{"n":%d}' % number, sums[session])
            line, last = encode_log_line(synced, last, encode_owner(session, f"{session:0>16}"), record)
            self.starts.append(len(self.data))
            self.synced_at.append(synced)
            self.data += line
            if number % sync_every == sync_every - 1:
                synced = len(self.data)
        self.last = last
        self.synced = synced

    def lines_before(self, offset: int) -> int:
        """How many lines end at or before `offset`."""
        ends = [*self.starts[1:], len(self.data)]
        return sum(end <= offset for end in ends)


WRITTEN = Written()


def scan(data: bytes, *, proven: bool = False, limit: int = NO_LIMIT) -> tuple[SegmentScan, list[Damage]]:
    found = SegmentScan(PATH, 7, data)
    for _ in found.steps(limit):
        pass
    return found, found.judge(proven=proven)


def records(found: SegmentScan) -> list[bytes]:
    return [found.data[begin:end] for begin, end, _ in places(found)]


def places(found: SegmentScan) -> list[tuple[int, int, bytes]]:
    """Begin and end of each record, and its owner."""
    return sorted(
        (begin, end, owner)
        for owner, spans in found.spans.items()
        for begin, end in zip(spans[::2], spans[1::2], strict=True)
    )


def count(found: SegmentScan) -> int:
    return sum(run.lines for run in found.runs)


def test_a_whole_segment_is_read_to_its_end():
    found, damage = scan(WRITTEN.data)
    assert (count(found), damage, found.end, found.size) == (20, [], len(WRITTEN.data), len(WRITTEN.data))
    assert found.header == SegmentHeader(7, SegmentRef(6, 4096))
    assert [read_owner(owner)[0] for _, _, owner in places(found)] == ["a", "b"] * 10
    assert [end + SUFFIX_BYTES for _, end, _ in places(found)] == [*WRITTEN.starts[1:], len(WRITTEN.data)]


@pytest.mark.parametrize("room", [1, 18, 19, 20, 511, 4096, 100_000])
def test_zeros_behind_the_last_line_are_its_clean_end(room):
    found, damage = scan(WRITTEN.data + bytes(room))
    assert (count(found), damage, found.end, found.size) == (20, [], len(WRITTEN.data), len(WRITTEN.data))


def test_every_truncation_leaves_the_longest_valid_prefix():
    for length in range(len(WRITTEN.data)):
        found, damage = scan(WRITTEN.data[:length])
        assert damage == []
        assert count(found) == len(records(found)) == WRITTEN.lines_before(length)
        assert found.end <= length


@pytest.mark.parametrize("room", [0, 64])
def test_every_flipped_bit_is_damage_if_it_was_shown_to_be_synced_and_a_torn_end_otherwise(room):
    """A bit in each byte; which one changes from byte to byte."""
    shown = WRITTEN.synced_at[-1]
    for position in range(len(WRITTEN.data)):
        data = bytearray(WRITTEN.data + bytes(room))
        data[position] ^= 1 << (position * 5 % 8)
        found, damage = scan(bytes(data))
        start = max((start for start in [0, *WRITTEN.starts] if start <= position), default=0)
        if start < shown:
            assert [found.offset for found in damage][:1] == [start], position
        else:
            assert damage == [], position
            assert count(found) == len(records(found)) == WRITTEN.lines_before(start), position


def test_lines_behind_damage_are_read_for_the_other_sessions():
    data = bytearray(WRITTEN.data)
    data[data.index(b'"kind"', WRITTEN.starts[4])] ^= 1
    found, damage = scan(bytes(data))
    assert count(found) == 19
    assert damage == [Damage(PATH, WRITTEN.starts[4], (("a", "000000000000000a"),))]


def test_damage_that_hides_its_owner_may_concern_everybody():
    data = bytearray(WRITTEN.data)
    position = data.index(b'"s":', WRITTEN.starts[4])
    data[position : position + 20] = b"?" * 20
    _, damage = scan(bytes(data))
    assert damage == [Damage(PATH, WRITTEN.starts[4], None)]


def test_a_hole_of_zeros_in_what_was_synced_is_damage():
    data = bytearray(WRITTEN.data)
    data[WRITTEN.starts[3] : WRITTEN.starts[5]] = bytes(WRITTEN.starts[5] - WRITTEN.starts[3])
    found, damage = scan(bytes(data))
    assert [(found.offset, found.owners) for found in damage] == [(WRITTEN.starts[3], None)]
    assert count(found) >= 17


def test_a_hole_of_zeros_in_what_was_not_synced_is_the_torn_end():
    data = bytearray(WRITTEN.data)
    data[WRITTEN.starts[17] : WRITTEN.starts[18]] = bytes(WRITTEN.starts[18] - WRITTEN.starts[17])
    found, damage = scan(bytes(data))
    assert (count(found), damage, found.end) == (17, [], WRITTEN.starts[17])
    assert found.size == len(WRITTEN.data)


def test_all_of_a_segment_that_a_later_one_proves_synced_must_be_there():
    data = bytearray(WRITTEN.data)
    data[WRITTEN.starts[18] + 60] ^= 1
    assert scan(bytes(data))[1] == []
    assert [found.offset for found in scan(bytes(data), proven=True)[1]] == [WRITTEN.starts[18]]


def test_a_watermark_shows_what_was_synced_before_it():
    line, _ = encode_watermark(len(WRITTEN.data), WRITTEN.last)
    data = bytearray(WRITTEN.data + line)
    found, damage = scan(bytes(data))
    assert (count(found), damage) == (21, [])
    data[WRITTEN.starts[19] + 60] ^= 1
    assert [found.offset for found in scan(bytes(data))[1]] == [WRITTEN.starts[19]]


def test_only_a_watermark_that_covers_all_before_it_settles_a_segment():
    line, total = encode_watermark(len(WRITTEN.data), WRITTEN.last)
    early, _ = encode_watermark(len(WRITTEN.data) - 1, WRITTEN.last)
    odd, _ = close_line(b'{"w":%d,"p":"%b","x":1' % (len(WRITTEN.data), WRITTEN.last.encode()))
    again, _ = close_line(b'{"w":%d,"p":"%b","x":1' % (len(WRITTEN.data), total.encode()))
    for data, settled in ((b"", False), (line, True), (early, False), (odd, False), (line + again, True)):
        assert scan(WRITTEN.data + data)[0].is_settled is settled


def test_a_line_in_the_wrong_place_is_not_taken():
    """Each line names the sum of the one before: swapped and doubled lines are sound, but do not follow."""
    lines = WRITTEN.data.splitlines(keepends=True)
    for other in ([*lines[:3], lines[4], lines[3], *lines[5:]], [*lines[:4], *lines[3:]], [*lines[:3], *lines[4:]]):
        _, damage = scan(b"".join(other))
        assert [found.offset for found in damage][:1] == [WRITTEN.starts[3 if len(other) > len(lines) else 2]]


@pytest.mark.parametrize("apart", [1, 3])
def test_swapped_lines_do_not_hide_what_a_watermark_behind_them_shows_to_be_synced(apart):
    watermark, _ = encode_watermark(len(WRITTEN.data), WRITTEN.last)
    lines = WRITTEN.data.splitlines(keepends=True)
    lines[-1 - apart], lines[-1] = lines[-1], lines[-1 - apart]
    found, damage = scan(b"".join(lines))
    assert (damage, count(found)) == ([], 19 - apart)
    found, damage = scan(b"".join([*lines, watermark]))
    assert damage[0].offset == WRITTEN.starts[19 - apart]
    assert found.synced_bytes == len(WRITTEN.data)


def test_a_sound_line_of_another_form_is_not_taken():
    line, _ = close_line(b'{"w":"many","p":"%b"' % WRITTEN.last.encode())
    found, damage = scan(WRITTEN.data + line)
    assert (count(found), damage, found.end) == (20, [], len(WRITTEN.data))


def test_only_what_comes_before_the_limit_counts():
    found, damage = scan(WRITTEN.data, limit=WRITTEN.starts[12], proven=True)
    assert (count(found), damage, found.end) == (12, [], WRITTEN.starts[12])


def test_the_header_of_another_segment_is_damage_when_the_lines_were_synced():
    found = SegmentScan(PATH, 8, WRITTEN.data)
    for _ in found.steps(NO_LIMIT):
        pass
    assert found.header is None
    assert [damage.offset for damage in found.judge(proven=False)] == [0]


def test_a_segment_of_a_newer_version_is_refused():
    line, _ = close_line(b'{"format":"session-actor-log","version":2,"number":7')
    with pytest.raises(StoreVersionTooNew, match="version 2"):
        SegmentScan(PATH, 7, line)


def test_an_empty_and_an_unwritten_segment_hold_nothing():
    for data in (b"", bytes(4096)):
        found, damage = scan(data)
        assert (count(found), damage, found.end, found.header) == (0, [], 0, None)


@settings(max_examples=100, deadline=None)
@given(tail=st.binary(min_size=1, max_size=3000))
def test_garbage_behind_the_last_line_is_a_torn_end(tail):
    found, damage = scan(WRITTEN.data + tail)
    assert (count(found), damage, found.end) == (20, [], len(WRITTEN.data))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(WRITTEN.data) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_any_edit_is_found_or_without_effect(edits):
    """What is read is a line that was written, in its order; what is missing is reported or beyond the last mark."""
    data = bytearray(WRITTEN.data)
    for position, value in edits:
        data[position] = value
    found, damage = scan(bytes(data))
    whole, read = records(scan(WRITTEN.data)[0]), records(found)
    positions = [whole.index(record) for record in read]
    assert positions == sorted(set(positions))
    if not damage:
        assert count(found) == len(read)
        assert read == whole[: len(read)]
        assert len(read) >= WRITTEN.lines_before(WRITTEN.synced_at[-1])


def test_lines_longer_than_a_piece_are_read():
    header, last = encode_segment_header(SegmentHeader(7))
    record, _ = encode_record(1, 0, "said", b'"%b"' % (b"x" * 300_000), NO_SUM)
    line, last = encode_log_line(0, last, encode_owner("a", "0" * 16), record)
    second, _ = encode_log_line(len(header) + len(line), last, encode_owner("b", "0" * 16), record)
    found, damage = scan(header + line + second)
    assert (count(found), damage) == (2, [])


@pytest.mark.parametrize("swallows", [1, 2])
def test_a_line_behind_a_damaged_line_end_still_shows_what_was_synced(swallows):
    watermark, _ = encode_watermark(WRITTEN.synced, WRITTEN.last)
    data = bytearray(WRITTEN.data + watermark)
    for start in [*WRITTEN.starts[-swallows + 1 :], len(WRITTEN.data)][-swallows:]:
        data[start - 1] ^= 1
    found, damage = scan(bytes(data))
    assert [place.offset for place in damage] == [WRITTEN.starts[-swallows]]
    assert found.end == len(data)
