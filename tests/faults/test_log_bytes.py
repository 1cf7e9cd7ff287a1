"""A mixed log of twenty records: cut off at every length, with every bit flipped, with anything behind its end.

Every case is given to what reads a segment; one in so many, and one bit of each byte, to a whole store.
"""

from __future__ import annotations

import pytest

from ..simulation.loop import simulated
from .sound import Sound
from .specimen import Specimen, lines_of, opened, promised, refused, specimen, twenty_records, wrong

PARTS = 4
WHOLE_EVERY = 8


def segment_of(log: Specimen) -> tuple[str, bytes]:
    path = log.path("/log/")
    return path, log.files[path]


def test_a_log_cut_off_anywhere_gives_the_records_before(faults):
    with simulated(1) as (loop, _):
        log = specimen(loop, twenty_records)
        path, data = segment_of(log)
        lines, sound = lines_of(data), Sound(path, data)
        assert lines[-1].entry == len(log.history) == 21
        ends = {line.end + near for line in lines for near in (-1, 0, 1)}
        for length in faults.some(range(len(data) + 1)):
            sound.check_end(data[:length], length, length)
            if length % WHOLE_EVERY and length not in ends:
                continue
            found = opened(loop, log.files | {path: data[:length]}).found
            whole = max((line.entry for line in lines if line.end <= length), default=0)
            assert found == log.state(whole), length


@pytest.mark.parametrize("part", range(PARTS))
def test_every_flipped_bit_of_a_log_is_found_or_has_no_effect_or_looks_like_a_torn_end(faults, part):
    with simulated(1) as (loop, _):
        log = specimen(loop, twenty_records)
        path, data = segment_of(log)
        lines, states, sound = lines_of(data), log.states(), Sound(path, data)
        used = lines[-1].end
        for bit in faults.some(range(part, (used + 100) * 8, PARTS)):
            position = bit // 8
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit % 8
            sound.check(bytes(damaged), bit)
            if (position + bit) % WHOLE_EVERY and position >= sound.header:
                continue
            result = opened(loop, log.files | {path: bytes(damaged)})
            found = result.found
            assert wrong(found, states) == [], bit
            if refused(found):
                continue
            kept = promised(lines, position, position + 1)
            assert any(found == log.state(count) for count in range(kept, len(log.history) + 1)), bit
            if found != log.state():
                assert result.torn, bit
                assert result.torn[0].offset <= position, bit


def test_a_record_that_is_damaged_in_its_own_text_keeps_no_other_session_from_loading(faults):
    with simulated(1) as (loop, _):
        log = specimen(loop, twenty_records)
        path, data = segment_of(log)
        for number in faults.some([0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16]):
            session = ("ann", "ben", "\ud800/é")[number % 3]
            damaged = bytearray(data)
            damaged[data.index(b'":"%d ' % number) + 3] ^= 4
            found = opened(loop, log.files | {path: bytes(damaged)}).found
            assert refused(found) <= {session}
            if session != "ben" or number > 11:  # of the one that was deleted nothing is read any more
                assert refused(found) == {session}
            assert {other: texts for other, texts in found.items() if other != session} == {
                other: texts for other, texts in log.state().items() if other != session
            }


@pytest.mark.parametrize(("kind", "settled"), [("zeros", True), ("garbage", False), ("lines", True)])
def test_nothing_behind_the_last_record_is_taken_for_one(faults, settled, kind):
    with simulated(1) as (loop, _):
        log = specimen(loop, twenty_records, settled=settled)
        path, data = segment_of(log)
        data = data.rstrip(b"\0")
        sound = Sound(path, data)
        for number, length in enumerate(faults.some(range(1, 8193, 8 if kind == "lines" else 1))):
            if kind == "zeros":
                tail = bytes(length)
            elif kind == "garbage":
                tail = faults.rng.randbytes(length)
            else:  # lines that are whole, but stand where they do not belong
                tail = (data[faults.rng.randrange(len(data)) :] * (length // 100 + 1))[:length]
            sound.check_end(data + tail, len(data), length)
            if number % WHOLE_EVERY:
                continue
            result = opened(loop, log.files | {path: data + tail})
            assert result.found == log.state(), length
            assert bool(result.torn) == bool(tail.rstrip(b"\0")), length
