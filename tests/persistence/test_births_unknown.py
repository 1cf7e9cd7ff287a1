"""Births of a session that the catalog does not know, since it is older, or knows as dead: what they have is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_actor.persistence import FileStore, PersistenceError
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import repair

from .conformance_tools import opened
from .stores import SMALL, cut_all, flip, journals, loaded, push

JOURNAL = {**SMALL, "journal_bytes": 1 << 20}


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def say(root: Path, count: int, *, salvaged: bool = False) -> None:
    """Records in the log, behind a salvage or not; nothing is cut."""
    async with opened(FileStore(root, **JOURNAL), working=False) as store:
        lease = await store.acquire("a", create=True)
        if salvaged:
            await store.salvage(lease, "readable")
        await store.load(lease, snapshots=False)
        push(store, lease, count)
        await store.flush("synced")


async def delete(root: Path) -> None:
    async with opened(FileStore(root, **JOURNAL), working=False) as store:
        await store.delete(await store.acquire("a", create=False))
    await cut_all(root)


def aside(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((root / "aside").iterdir()))


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)[1:]


async def test_a_copy_of_a_dead_birth_stays_that_is_what_the_log_goes_on_with(root):
    await say(root, 5)
    older = (root / "catalog.db").read_bytes()
    await say(root, 5, salvaged=True)
    (path,) = journals(root)
    whole = path.read_bytes()
    (root / "catalog.db").write_bytes(older)
    with pytest.raises(PersistenceError, match="older"):
        await cut_all(root)
    assert path.read_bytes() == whole
    repair(root, write=True)
    assert await loaded(root, "a") == {"a": list(range(1, 11))}


@pytest.mark.parametrize("salvage", ["prefix", "readable"])
async def test_salvage_keeps_a_birth_that_was_made_after_that_of_an_older_catalog(root, salvage):
    await say(root, 20)
    await cut_all(root)
    older = (root / "catalog.db").read_bytes()
    await delete(root)
    await say(root, 7)
    (root / "catalog.db").write_bytes(older)
    repair(root, write=True, salvage=salvage)
    assert not check(root).damaged
    assert await loaded(root, "a") == {"a": list(range(1, 8))}


async def test_a_copy_that_an_older_catalog_does_not_know_is_kept_when_what_it_was_made_of_is_salvaged(root):
    await say(root, 0)
    older = (root / "catalog.db").read_bytes()
    await say(root, 8)
    await cut_all(root)
    await say(root, 4)
    await say(root, 0, salvaged=True)
    (path,) = journals(root)
    whole = path.read_bytes()
    (root / "catalog.db").write_bytes(older)
    repair(root, write=True, salvage="readable")
    assert not check(root).damaged
    assert whole in aside(root)


@pytest.mark.parametrize("salvage", ["prefix", "readable"])
async def test_what_the_log_has_of_a_salvaged_birth_is_kept_when_its_copy_is_damaged(root, salvage):
    await say(root, 10)
    await say(root, 0, salvaged=True)
    (path,) = journals(root)
    lost = lines(path)[4]
    flip(path, path.read_bytes().index(lost) + 40)
    repair(root, write=True, salvage=salvage)
    assert not check(root).damaged
    assert lost in aside(root)


async def test_what_the_log_has_of_a_deleted_birth_is_not_kept(root):
    await say(root, 10)
    async with opened(FileStore(root, **JOURNAL), working=False) as store:
        await store.delete(await store.acquire("a", create=False))
    await say(root, 3)
    await say(root, 0, salvaged=True)
    (path,) = journals(root)
    lost = lines(path)[1]
    flip(path, path.read_bytes().index(lost) + 40)
    repair(root, write=True, salvage="readable")
    (kept,) = (root / "aside").glob("*.void")
    assert kept.read_bytes() == lost
