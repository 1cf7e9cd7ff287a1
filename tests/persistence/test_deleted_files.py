"""Which files go with a session that is deleted: all of its birth, whoever counts them, and no other's."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, PersistenceError
from session_actor.persistence.checking.verify import check
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.header import JournalHeader, RecordRef, encode_journal_header
from session_actor.persistence.repair.repair import repair

from .conformance_tools import opened
from .disks import Dead, TroubledDisk
from .stores import SMALL, copied, cut_all, flip, journals, push
from .test_cut_refused import Refusing

OTHER = "00000000000000ff"


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def cut_until_done(store: FileStore) -> None:
    store._engine.log.seal()
    for _ in range(4):
        with contextlib.suppress(OSError):
            await store._engine.cutter.cut_all()


async def begun(store: FileStore, count: int = 10):
    lease = await store.acquire("a", create=True)
    await store.load(lease, snapshots=False)
    push(store, lease, count)
    await store.flush("synced")
    return lease


async def grown(root: Path, count: int = 10) -> None:
    async with opened(FileStore(root, **SMALL), working=False) as store:
        await begun(store, count)
    await cut_all(root)


async def deleted(root: Path, *, cut: bool = True) -> None:
    async with opened(FileStore(root, **SMALL), working=False) as store:
        await store.delete(await store.acquire("a", create=False))
    if cut:
        await cut_all(root)


async def sessions(root: Path) -> list[str]:
    async with opened(FileStore(root, **SMALL), working=False) as store:
        return [info.id async for info in store.sessions()]


def put(root: Path, number: int, birth: str, lines: bytes = b"", copies: str | None = None) -> Path:
    """A file of the session that nobody counts."""
    path = root / "journals" / journal_path("a", number)
    header = JournalHeader("a", birth, number, RecordRef(0, "00000000"), copies=copies)
    path.write_bytes(encode_journal_header(header)[0] + lines)
    path.chmod(0o600)
    return path


def birth_of(root: Path) -> str:
    header = journals(root, "a")[0].read_bytes().split(b'"birth":"')[1]
    return header[:16].decode()


@pytest.mark.parametrize("refusals", [2, 4])
@pytest.mark.parametrize("call", ["sync", "write"])
async def test_a_file_that_the_disk_refused_goes_with_its_session_and_never_comes_back(root, call, refusals):
    """The session went on in later files, and no catalog ever counted that one."""
    disk = Refusing("-1.ndjson", call)
    disk.on = False
    async with opened(FileStore(root, **SMALL, disk=disk), working=False) as store:
        lease = await begun(store)
        disk.on = True
        for _ in range(refusals):
            await cut_until_done(store)
        disk.on = False
        assert len(journals(root)) == 2
        await store.delete(lease)
        assert journals(root) == []
        await cut_until_done(store)
    (root / "catalog.db").unlink()
    repair(root, write=True)
    assert await sessions(root) == []


async def test_files_behind_a_hole_go_too(root):
    await grown(root, 60)
    birth = birth_of(root)
    put(root, 40, birth)
    await deleted(root)
    assert journals(root) == []
    assert check(root).list == []


async def test_what_a_salvage_that_died_had_copied_goes_too(root):
    """Else a lost catalog would bring it back."""
    await grown(root, 60)
    flip(journals(root)[1], 500)
    for dies_at in range(60, 130, 10):
        at = copied(root, str(dies_at))
        with contextlib.suppress(Dead, PersistenceError):
            async with opened(FileStore(at, **SMALL, disk=TroubledDisk(dies_at=dies_at)), working=False) as store:
                await store.salvage(await store.acquire("a", create=False), "readable")
        await deleted(at)
        assert journals(at) == [], dies_at
        (at / "catalog.db").unlink()
        repair(at, write=True)
        assert await sessions(at) == [], dies_at


async def test_a_copy_of_a_deleted_birth_goes_and_a_file_of_another_birth_or_session_stays(root):
    await grown(root, 5)
    birth = birth_of(root)
    copy = put(root, 2, OTHER, copies=birth)
    other = put(root, 3, OTHER)
    stranger = put(root, 4, birth)
    stranger.write_bytes(encode_journal_header(JournalHeader("b", birth, 4))[0])
    await deleted(root)
    assert not copy.exists()
    assert other.exists()
    assert stranger.exists()


async def test_a_file_whose_header_is_damaged_goes_with_the_only_birth(root):
    await grown(root, 5)
    damaged = put(root, 9, birth_of(root), b"text\n")
    flip(damaged, 5)
    await deleted(root)
    assert not damaged.exists()


async def test_a_file_whose_header_is_damaged_stays_where_another_birth_lives(root):
    await grown(root, 5)
    gone = birth_of(root)
    await deleted(root)
    await grown(root, 5)
    damaged = put(root, 9, gone)
    flip(damaged, 5)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        store._engine.cutter._remover.remove("a", gone)
    assert damaged.exists()


async def test_a_tombstone_that_an_older_catalog_meets_removes_no_file_of_a_later_birth(root):
    await grown(root, 5)
    older = (root / "catalog.db").read_bytes()
    await deleted(root, cut=False)
    tombstone = {path.name: path.read_bytes() for path in (root / "log").iterdir()}
    await grown(root, 30)
    files = {path: path.read_bytes() for path in journals(root)}
    for path in (root / "log").iterdir():
        path.unlink()
    for name, data in tombstone.items():
        (root / "log" / name).write_bytes(data)
        (root / "log" / name).chmod(0o600)
    (root / "catalog.db").write_bytes(older)
    await cut_all(root)
    assert {path: path.read_bytes() for path in journals(root)} == files
