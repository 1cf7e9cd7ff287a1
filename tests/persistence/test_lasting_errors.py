"""A file that the disk never reads again: it is told, and nothing else is kept from anybody."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore
from session_actor.persistence.checking.findings import Findings
from session_actor.persistence.checking.tree import LookingDisk
from session_actor.persistence.checking.verify import check_store
from session_actor.persistence.files.names import journal_path, snapshot_path
from session_actor.persistence.layout import Layout
from session_actor.persistence.repair.repair import repair

from .conformance_snapshots import ids, save, seqs
from .conformance_tools import opened, push
from .test_journal_files import cut_all

BAD, GOOD = "bad", "good"


class BadSectors(LookingDisk):
    """Nothing of these files can be read: they cannot be opened, or not be read."""

    def __init__(self, *names: str, call: str = "open") -> None:
        self.names = names
        self.call = call

    def refuses(self, path: str, call: str) -> None:
        if call == self.call and path.endswith(self.names):
            raise OSError(errno.EIO, "asked to fail", path)

    def open(self, path, *, write=False, create=False):
        self.refuses(path, "open")
        file = super().open(path, write=write, create=create)
        return BadFile(self, file, path) if self.call == "read" and path.endswith(self.names) else file


class BadFile:
    def __init__(self, disk: BadSectors, file, path: str) -> None:
        self.disk, self.file, self.path = disk, file, path

    def __getattr__(self, name):
        return getattr(self.file, name)

    def read(self, offset, length):
        raise OSError(errno.EIO, "asked to fail")


def small(root: Path, **options) -> FileStore:
    return FileStore(root, segment_bytes=20_000, journal_bytes=2_000, cut_at_close=0, **options)


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> Path:
    """Two sessions with sealed journals, two snapshots each, and records in the log."""
    import asyncio

    root = tmp_path_factory.mktemp("lasting") / "store"

    async def make() -> None:
        async with opened(small(root), working=False) as store:
            leases = [await store.acquire(session, create=True) for session in (BAD, GOOD)]
            for first in (1, 21, 41):
                for lease in leases:
                    push(store, lease, 20, first=first)
                    if first < 41:
                        await save(store, lease)
                if first < 41:
                    await cut_all(store)
            await store.flush("synced")

    asyncio.run(make())
    return root


@pytest.fixture
def root(grown, tmp_path) -> Path:
    shutil.copytree(grown, tmp_path / "store")
    return tmp_path / "store"


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != "LOCK"}


def findings_of(root: Path, disk: LookingDisk) -> Findings:
    findings = Findings()
    check_store(disk, Layout(root), findings)
    return findings


def damage(findings: Findings) -> list[tuple[str, str | None]]:
    return [(finding.kind, finding.session) for finding in findings.list if finding.severity == "damage"]


@pytest.mark.parametrize("call", ["open", "read"])
@pytest.mark.parametrize("slots", ["a", "b", "ab"])
async def test_a_snapshot_that_cannot_be_read_keeps_its_session_from_nothing(root, slots, call):
    async with opened(small(root), working=False) as store:
        good = await store.load(await store.acquire(BAD, create=False), snapshots=False)
    bad = [snapshot_path(BAD, slot) for slot in slots]
    async with opened(small(root, disk=BadSectors(*bad, call=call)), working=False) as store:
        lease = await store.acquire(BAD, create=False)
        loaded = await store.load(lease)
        assert sorted(loaded.report.rejected) == [f"{root}/snapshots/{name}" for name in bad]
        assert (loaded.snapshot is None) == (slots == "ab")
        assert seqs(loaded) == seqs(good)[0 if loaded.snapshot is None else loaded.snapshot.seq :]
        assert ids(store.archive(lease).read([1, 30, 60])) == [1, 30, 60]


async def test_a_pruned_session_whose_snapshots_cannot_be_read_is_refused_as_the_disk_refuses(root):
    async with opened(small(root), working=False) as store:
        assert (await store.prune(await store.acquire(BAD, create=False), [(1, 20)])).files
    bad = [snapshot_path(BAD, slot) for slot in "ab"]
    async with opened(small(root, disk=BadSectors(*bad), recovery="readable"), working=False) as store:
        lease = await store.acquire(BAD, create=False)
        with pytest.raises(OSError, match="asked to fail"):
            await store.load(lease)
    async with opened(small(root), working=False) as store:
        assert (await store.load(await store.acquire(BAD, create=False))).snapshot is not None


async def test_the_next_snapshot_takes_the_place_of_one_that_cannot_be_read(root):
    async with opened(small(root, disk=BadSectors(snapshot_path(BAD, "b"))), working=False) as store:
        lease = await store.acquire(BAD, create=False)
        await store.load(lease)
        push(store, lease, 1, first=61)
        await save(store, lease)
    async with opened(small(root), working=False) as store:
        loaded = await store.load(await store.acquire(BAD, create=False))
        assert (loaded.snapshot.seq, loaded.report.rejected) == (61, ())


@pytest.mark.parametrize("call", ["open", "read"])
@pytest.mark.parametrize(
    ("name", "session"),
    [(snapshot_path(BAD, "a"), BAD), (snapshot_path(BAD, "b"), BAD), (journal_path(BAD, 1), BAD),
     (journal_path(BAD, 3), BAD), ("/log/00000001.ndjson", None), ("/log/00000002.ndjson", None),
     ("/catalog.db", None), ("/FORMAT", None)],
)  # fmt: skip
def test_verify_tells_what_cannot_be_read_and_looks_at_the_rest(root, name, session, call):
    journal = root / "journals" / journal_path(GOOD, 1)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:1], lines[1].replace(b"T", b"t"), *lines[2:]]))
    before, disk = contents(root), BadSectors(name, call=call)
    expected = {("refused", session)}
    if any(path.endswith(name) for path in map(str, root.rglob("*"))):
        expected |= set() if name == "/catalog.db" else {("journal", GOOD)}
    else:
        expected = {("journal", GOOD)}
    assert set(damage(findings_of(root, disk))) == expected
    told = repair(root, write=True, disk=disk)
    assert {(finding.kind, finding.session) for finding in told.left} == expected
    assert [step for step in told.steps if step.session == BAD] == []
    assert contents(root) == before


def test_salvage_of_others_goes_on_beside_a_session_that_cannot_be_read(root):
    for session in (BAD, GOOD):
        journal = root / "journals" / journal_path(session, 1)
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([*lines[:1], lines[1].replace(b"T", b"t"), *lines[2:]]))
    disk = BadSectors(journal_path(BAD, 2), call="read")
    told = repair(root, write=True, salvage="readable", disk=disk)
    assert {finding.session for finding in told.left} == {BAD}
    assert GOOD in {step.session for step in told.steps}
    assert repair(root, write=True, salvage="readable").left == []
    assert damage(findings_of(root, LookingDisk())) == []
