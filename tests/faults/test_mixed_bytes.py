"""Files of a store with everything in it (see `grown`): cut off at every length, with every bit flipped.

The journals hold records of every kind and size, and a gap; sealed ones end with an index. The segment of the log is
the newest, behind others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from session_actor.persistence import FileStore, PersistenceError

from ..simulation.disk import SimDisk
from ..simulation.life import ROOT
from ..simulation.loop import simulated
from .conftest import Faults
from .grown import SESSIONS, SIZES, Grown, Loaded, grown, judged, least, loaded, opened, shown_by
from .specimen import image_of
from .test_random_edits import owner

PARTS = 4


def damaged(data: bytes, cases: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Of all cases: first each length, then each bit."""
    for case in cases:
        if case < len(data):
            yield case, data[:case]
            continue
        content, bit = bytearray(data), case - len(data)
        content[bit // 8] ^= 1 << bit % 8
        yield case, bytes(content)


def files_of(made: Grown) -> list[str]:
    """A sealed journal, one that is not sealed, one that holds a gap, and both snapshots of a session."""
    journals = {
        session: sorted(path for path in made.files if "/journals/" in path and owner(path) == session)
        for session in SESSIONS
    }
    gap = next(path for path in journals[SESSIONS[3]] if b'"store.gap"' in made.files[path])
    assert b'{"index":' in made.files[gap]
    snapshots = sorted(path for path in made.files if "/snapshots/" in path and owner(path) == "ann")
    assert len(snapshots) == 2
    return [journals["ann"][0], journals["ann"][-1], gap, *snapshots]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_mixed_journal_that_is_damaged_anywhere_is_refused_and_a_snapshot_is_passed_over(faults: Faults, part):
    with simulated(1) as (loop, _):
        made = grown(loop)
        promised = {session: truth.last for session, truth in made.truths.items()}

        async def damage() -> None:
            image = image_of(made.files)
            store = FileStore(ROOT, disk=SimDisk(image), **SIZES)
            await store.open()
            for path in files_of(made):
                data, session = made.files[path], owner(path)
                is_journal = "/journals/" in path
                for case, content in damaged(data, faults.some(range(part, len(data) * 9, PARTS))):
                    image.file(path).data[:] = content
                    found = await loaded(store, session, snapshots=not is_journal)
                    assert isinstance(found, PersistenceError if is_journal else Loaded), (path, case)
                    problems = await judged(store, {session: made.truths[session]}, promised, [not is_journal])
                    assert problems == [], (path, case)
                image.file(path).data[:] = data
            assert await judged(store, made.truths, promised, [True, False]) == []
            store._engine.let_go()

        loop.run(damage())


@pytest.mark.parametrize("part", range(PARTS))
def test_a_mixed_segment_behind_others_that_is_damaged_anywhere_loses_nothing_that_was_shown_to_be_synced(faults, part):
    with simulated(1) as (loop, _):
        made = grown(loop)
        shown = shown_by(made)
        path = shown[-1].path
        data = made.files[path].rstrip(b"\0")
        for number, (case, content) in enumerate(damaged(data, faults.some(range(part, len(data) * 9, PARTS)))):
            files = made.files | {path: content}
            some = {session: made.truths[session] for session in (SESSIONS[3], SESSIONS[number % 3])}
            found = opened(loop, files, some, least(made, shown, files), [number % 2 == 0], quick=True)
            assert isinstance(found, PersistenceError) or found == [], case
