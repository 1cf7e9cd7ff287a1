"""Files of a store with everything in it (see `grown`): cut off at every length, with every bit flipped.

The journals hold more than 20 records of every kind and size, and a gap; sealed ones end with an index. The segment of
the log is the newest, behind others, with as many. Every case is given to what reads such a file; one in so many, and
all in headers and snapshots, to a whole store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from session_actor.persistence import FileStore, PersistenceError
from session_actor.persistence.journals.journal import read_journal

from ..scale import Faults
from ..simulation.disk import SimDisk
from ..simulation.life import ROOT
from ..simulation.loop import simulated
from .grown import (
    LARGE,
    REFUSED,
    SESSIONS,
    SIZES,
    Grown,
    Loaded,
    Truth,
    grown,
    judged,
    least,
    loaded,
    opened,
    owner,
    part_of,
    shown_by,
    wrong,
)
from .sound import Sound
from .specimen import image_of

PARTS = 4
RECORDS = 20
WHOLE_EVERY = 40


def damaged(data: bytes, cases: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Of all cases: first each length, then each bit."""
    for case in cases:
        if case < len(data):
            yield case, data[:case]
            continue
        content, bit = bytearray(data), case - len(data)
        content[bit // 8] ^= 1 << bit % 8
        yield case, bytes(content)


# --- journals and snapshots -------------------------------------------------------------------------------------------


def files_of(made: Grown) -> list[str]:
    """A sealed journal, one that is not sealed, one that holds a gap, and both snapshots of a session."""
    journals = {
        session: sorted(path for path in made.files if "/journals/" in path and owner(path) == session)
        for session in SESSIONS
    }
    gap = next(path for path in journals[SESSIONS[3]] if b'"store.gap"' in made.files[path])
    assert b'{"index":' in made.files[gap]
    chosen = [journals["ann"][0], journals["ann"][-1], gap]
    assert all(made.files[path].count(b'{"seq":') > RECORDS for path in chosen)
    snapshots = sorted(path for path in made.files if "/snapshots/" in path and owner(path) == "ann")
    assert len(snapshots) == 2
    return [*chosen, *snapshots]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_mixed_journal_that_is_damaged_anywhere_is_refused_and_a_snapshot_is_passed_over(faults: Faults, part):
    with simulated(1) as (loop, _):
        made = grown(loop, LARGE)
        promised = {session: truth.last for session, truth in made.truths.items()}

        async def damage() -> None:
            image = image_of(made.files)
            disk = SimDisk(image)
            store = FileStore(ROOT, disk=disk, **SIZES)
            await store.open()
            for path in files_of(made):
                data, session, truth = made.files[path], owner(path), made.truths[owner(path)]
                valid = part_of(store, path) if "/journals/" in path else None
                cases = faults.some(range(part, len(data) * 9, PARTS))
                for number, (case, content) in enumerate(damaged(data, cases)):
                    image.file(path).data[:] = content
                    if valid is None:
                        found = await loaded(store, session, snapshots=True)
                        assert isinstance(found, Loaded), (path, case)
                        assert wrong(truth, found, truth.last) == [], (path, case)
                    elif number % WHOLE_EVERY:
                        with pytest.raises(REFUSED):
                            read_journal(disk, path, valid, (session, truth.birth))
                    else:
                        await refused_whole(store, session, truth, promised)
                image.file(path).data[:] = data
            assert await judged(store, made.truths, promised, [True, False]) == []
            store._engine.let_go()

        loop.run(damage())


async def refused_whole(store: FileStore, session: str, truth: Truth, promised: dict[str, int]) -> None:
    """The session is refused, and no frame that is read of it is another."""
    assert isinstance(await loaded(store, session, snapshots=False), PersistenceError)
    assert await judged(store, {session: truth}, promised, []) == []


# --- the log ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(PARTS))
def test_a_mixed_segment_behind_others_that_is_damaged_anywhere_loses_nothing_that_was_shown_to_be_synced(faults, part):
    with simulated(1) as (loop, _):
        made = grown(loop, LARGE)
        shown = shown_by(made)
        path = shown[-1].path
        assert len({line.path for line in shown}) > 1
        segment = Sound(path, made.files[path].rstrip(b"\0"))
        assert len(segment.places) > RECORDS
        cases = faults.some(range(part, len(segment.data) * 9, PARTS))
        for number, (case, content) in enumerate(damaged(segment.data, cases)):
            segment.check(content, case)
            if number % WHOLE_EVERY == 0 or content[: segment.header] != segment.data[: segment.header]:
                files = made.files | {path: content}
                some = {session: made.truths[session] for session in (SESSIONS[3], SESSIONS[number % 3])}
                found = opened(loop, files, some, least(made, shown, files), [number % 2 == 0], quick=True)
                assert isinstance(found, PersistenceError) or found == [], case
