"""Mixed journals of twenty records: cut off at every length, with every bit flipped, with anything behind the end."""

from __future__ import annotations

import pytest

from session_actor.persistence import JournalTruncated, StoreCorrupt

from ..simulation.loop import simulated
from .specimen import SESSIONS, Living, Specimen, refused, specimen, twenty_records_cut


def journals(cut: Specimen) -> dict[str, str]:
    """The session of each journal, by path."""
    paths = {path: data for path, data in cut.files.items() if "/journals/" in path}
    texts = {session: cut.state()[session][-1].split()[0] for session in SESSIONS}
    found = {
        path: session
        for path, data in paths.items()
        for session, number in texts.items()
        if b'"text":"%b ' % number.encode() in data or b'"$esc":"%b ' % number.encode() in data
    }
    assert sorted(found.values()) == sorted(SESSIONS)
    return found


def test_a_journal_cut_off_anywhere_is_refused_and_no_other(faults):
    with simulated(1) as (loop, _):
        cut = specimen(loop, twenty_records_cut)
        living = Living(loop, cut.files)
        for path, session in journals(cut).items():
            data, other = cut.files[path], next(other for other in SESSIONS if other != session)
            for length in faults.some(range(len(data))):
                living.put(path, data[:length])
                found = living.found(session, other)
                assert isinstance(found[session], JournalTruncated), length
                assert found[other] == cut.state()[other]
            living.put(path, data)
            assert living.found(*SESSIONS) == cut.state()
        living.close()


def test_every_flipped_bit_of_a_journal_is_refused_and_no_other_session(faults):
    with simulated(1) as (loop, _):
        cut = specimen(loop, twenty_records_cut)
        living = Living(loop, cut.files)
        for path, session in journals(cut).items():
            data, other = cut.files[path], next(other for other in SESSIONS if other != session)
            for bit in faults.some(range(len(data) * 8)):
                damaged = bytearray(data)
                damaged[bit // 8] ^= 1 << bit % 8
                living.put(path, bytes(damaged))
                assert refused(living.found(session)) == {session}, bit
                if bit % 16 == 0:
                    assert living.found(other) == {other: cut.state()[other]}
            living.put(path, data)
            assert living.found(*SESSIONS) == cut.state()
        living.close()


@pytest.mark.parametrize("kind", ["zeros", "garbage", "lines"])
def test_what_lies_behind_the_end_of_a_journal_has_no_effect(faults, kind):
    """It is the rest of a cut that was not finished, whatever it is."""
    with simulated(1) as (loop, _):
        cut = specimen(loop, twenty_records_cut)
        living = Living(loop, cut.files)
        path, session = next((path, session) for path, session in journals(cut).items() if session == "ann")
        data, expected = cut.files[path], {session: cut.state()[session]}
        for length in faults.some(range(1, 8193)):
            tail = {"zeros": bytes(length), "garbage": faults.rng.randbytes(length), "lines": data * 10}[kind]
            living.put(path, data + tail[:length])
            assert living.found(session) == expected, length
        living.close()


def test_a_journal_that_is_gone_or_anothers_is_refused(faults):
    with simulated(1) as (loop, _):
        cut = specimen(loop, twenty_records_cut)
        paths = journals(cut)
        living = Living(loop, cut.files)
        for path, session in paths.items():
            for other in paths:
                if other != path:
                    living.put(path, cut.files[other])
                    assert isinstance(living.found(session)[session], StoreCorrupt)
            living.put(path, cut.files[path])
            folder, name = living.image.parent(path)
            node = folder.names.pop(name)
            assert isinstance(living.found(session)[session], JournalTruncated)
            folder.names[name] = node
        assert living.found(*SESSIONS) == cut.state()
        living.close()
