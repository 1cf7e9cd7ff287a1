"""Gaps, the chain over them, and what salvage makes of the records that are left."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_actor.persistence.files.lines import read_lines
from session_actor.persistence.format.gap import GAP, Link, encode_gap, first_lost, first_misfit, read_gap
from session_actor.persistence.format.header import RecordRef
from session_actor.persistence.format.record import MAX_LINE_BYTES, NO_SUM, decode_record, encode_record
from session_actor.persistence.journals.journal import broken_link
from session_actor.persistence.repair.mending import Mender

COUNT = 12


def chain(count: int = COUNT) -> list[tuple[bytes, object]]:
    found, total = [], NO_SUM
    for seq in range(1, count + 1):
        line, total = encode_record(seq, seq, "said", b'{"n":%d}' % seq, total)
        found.append((line, decode_record(line)))
    return found


CHAIN = chain()


def mend(kept: list[int], salvage: str, last: int = COUNT) -> tuple[Mender, list]:
    mender = Mender(salvage)
    out = [one for index in kept for one in mender.take(CHAIN[index][1], CHAIN[index][0])]
    out += mender.lose(last, "damaged", 7)
    return mender, out


@given(st.sets(st.integers(0, COUNT - 1)))
def test_readable_keeps_every_record_and_puts_gaps_in_place_of_the_others(kept):
    mender, out = mend(sorted(kept), "readable")
    records = [one.record for one in out]
    assert first_misfit(records, Link()) is None
    assert broken_link(records, RecordRef()) is None
    assert [one.line for one in out if one.record.kind != GAP] == [CHAIN[index][0] for index in sorted(kept)]
    covered = [
        seq
        for record in records
        for seq in range(first_lost(record) if record.kind == GAP else record.seq, record.seq + 1)
    ]
    assert covered == list(range(1, COUNT + 1))
    lost = {seq for first, last in mender.gaps for seq in range(first, last + 1)}
    assert lost == {index + 1 for index in range(COUNT)} - {index + 1 for index in kept}


@given(st.sets(st.integers(0, COUNT - 1)))
def test_prefix_keeps_the_records_before_the_first_loss(kept):
    mender, out = mend(sorted(kept), "prefix")
    length = next(index for index in range(COUNT + 1) if index not in kept)
    assert [one.line for one in out] == [line for line, _ in CHAIN[:length]]
    assert mender.gaps == []
    assert mender.dropped == len(kept) - length


@settings(max_examples=50)
@given(st.lists(st.integers(0, COUNT - 1), max_size=30))
def test_records_in_any_order_and_doubled_make_a_sound_chain(kept):
    _, out = mend(kept, "readable")
    assert first_misfit([one.record for one in out], Link()) is None


def test_mending_what_was_mended_changes_nothing():
    _, out = mend([0, 1, 4, 5, 9], "readable")
    again = Mender("readable")
    assert [line for one in out for line in again.take(one.record, one.line)] == out
    assert again.gaps == []


def test_a_record_that_does_not_follow_is_lost_itself():
    other, _ = encode_record(3, 3, "said", b'{"n":99}', "12345678")
    mender = Mender("readable")
    out = [one for line, record in CHAIN[:2] for one in mender.take(record, line)]
    out += mender.take(decode_record(other), other)
    out += mender.take(CHAIN[3][1], CHAIN[3][0])
    assert [one.record.kind for one in out] == ["said", "said", GAP, "said"]
    assert (mender.gaps, mender.dropped) == ([(3, 3)], 1)


def test_a_gap_says_what_is_lost_and_has_the_time_of_the_record_before():
    line, total = encode_gap(Link.of(CHAIN[2][1]), 7, 3, "damaged")
    record = decode_record(line)
    assert (record.seq, record.kind, record.prev, record.sum) == (7, GAP, CHAIN[2][1].sum, total)
    assert (read_gap(record).first, read_gap(record).why, record.at_us) == (4, "damaged", 3)


def test_only_the_record_behind_a_gap_need_not_name_the_one_before():
    line, _ = encode_gap(Link.of(CHAIN[2][1]), 7, 3, "damaged")
    records = [record for _, record in CHAIN]
    assert first_misfit([*records[:3], decode_record(line), *records[7:]], Link()) is None
    assert first_misfit([*records[:3], *records[7:]], Link()) == 3
    assert first_misfit([*records[:3], decode_record(line), *records[8:]], Link()) == 4
    assert first_misfit([*records[:2], decode_record(line)], Link()) == 2


class Bytes:
    """A file in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]


@given(st.binary(max_size=300), st.integers(1, 40))
def test_lines_are_cut_behind_each_newline_and_nowhere_else(data, piece):
    found = list(read_lines(Bytes(data), 0, len(data), piece))
    assert b"".join(line.data for line in found) == data
    assert all(b"\n" not in line.data[:-1] for line in found)
    assert all(line.data.endswith(b"\n") for line in found[:-1])
    assert [line.offset for line in found] == [0, *(line.end for line in found)][: len(found)]


@pytest.mark.parametrize("at", [0, 3])
def test_a_line_that_is_too_long_is_passed_over(at):
    long = b"x" * (MAX_LINE_BYTES + 1) + b"\n"
    data = b"a\n" * at + long + b"b\n"
    found = list(read_lines(Bytes(data), 0, len(data)))
    assert [line.data for line in found] == [b"a\n"] * at + [b"", b"b\n"]
    assert found[at].end - found[at].offset == len(long)
