"""Which birth of an id counts when a catalog is made anew: numbers say so, and no clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_actor.persistence import FileStore
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.repair.repair import repair

from .conformance_tools import AT_US, Said, opened

HOUR_US = 3_600_000_000


async def grown(store: FileStore, texts: list[str], at_us: int) -> None:
    """A session with these records, all of which are in its journal."""
    lease = await store.acquire("a", create=True)
    for seq, text in enumerate(texts, 1):
        store.append(lease, seq, at_us + seq, "said", Said(text), len(text))
    await store.flush("synced")
    store._engine.writer.renew()
    store._engine.log.seal()
    while await store._engine.cutter.cut():
        pass


def path_of(root: Path, number: int) -> Path:
    return root / "journals" / journal_path("a", number)


@pytest.mark.parametrize("set_back_us", [0, HOUR_US])
async def test_the_birth_whose_files_begin_later_counts_though_the_clock_was_set_back(tmp_path, set_back_us):
    root = tmp_path / "store"
    async with opened(FileStore(root), working=False) as store:
        await grown(store, ["old"] * 9, AT_US)
        before = path_of(root, 1).read_bytes()
        await store.delete(await store.acquire("a", create=False))
        path_of(root, 1).write_bytes(before)  # as a loss of power may leave it
        await grown(store, ["new"], AT_US + 1000 - set_back_us)
    assert path_of(root, 2).exists()
    assert list((root / "log").glob("*.ndjson")) == []
    (root / "catalog.db").unlink()
    repair(root, write=True)
    async with opened(FileStore(root), working=False) as store:
        lease = await store.acquire("a", create=False)
        assert [record.at_us for record in (await store.load(lease)).records] == [AT_US + 1001 - set_back_us]


async def test_a_birth_whose_beginning_was_removed_does_not_count(tmp_path):
    root = tmp_path / "store"
    async with opened(FileStore(root, journal_bytes=300), working=False) as store:
        await grown(store, ["old" * 50] * 9, AT_US)
        before = {number: path_of(root, number).read_bytes() for number in (3, 4)}
        await store.delete(await store.acquire("a", create=False))
        await grown(store, ["new"], AT_US - HOUR_US)
        for number, content in before.items():
            path_of(root, number).write_bytes(content)
    (root / "catalog.db").unlink()
    repair(root, write=True)
    async with opened(FileStore(root), working=False) as store:
        assert len((await store.load(await store.acquire("a", create=False))).records) == 1
