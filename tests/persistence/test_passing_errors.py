"""A disk that refuses now says nothing about what it holds: no such moment may count as damage, or start salvage."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore
from session_actor.persistence.checking.findings import Findings
from session_actor.persistence.checking.verify import check_store
from session_actor.persistence.layout import Layout

from .conformance_snapshots import ids, save, seqs
from .conformance_tools import opened, push
from .disks import TroubledDisk, TroubledFile
from .stores import image
from .test_journal_files import cut_all

ERRORS = (errno.EIO, errno.EMFILE, errno.ENOMEM, errno.EACCES, errno.ESTALE)


class PassingDisk(TroubledDisk):
    """Its nth call that looks at a file fails, once."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.fails_at = fails_at
        self.looked = 0

    def reach(self, call, path=""):
        if call in {"open", "read", "size"}:
            self.looked += 1
            if self.looked == self.fails_at:
                raise OSError(ERRORS[self.fails_at % len(ERRORS)], "asked to fail", path)
        super().reach(call, path)

    def open(self, path, *, write=False, create=False):
        file = super().open(path, write=write, create=create)
        return file if write or create else PassingFile(self, file.file)


class PassingFile(TroubledFile):
    def size(self):
        self.disk.reach("size")
        return super().size()


@pytest.fixture(scope="module")
def pruned(tmp_path_factory) -> Path:
    """A store whose session needs its snapshots."""
    import asyncio

    root = tmp_path_factory.mktemp("passing") / "store"

    async def make() -> None:
        async with opened(small(root), working=False) as store:
            lease = await store.acquire("user-42", create=True)
            push(store, lease, 100)
            await cut_all(store)
            await save(store, lease)
            assert (await store.prune(lease, [(1, 60)])).files > 1
            push(store, lease, 5, first=101)
            await cut_all(store)
            push(store, lease, 5, first=106)
            await store.flush("synced")

    asyncio.run(make())
    return root


def small(root: Path, **options) -> FileStore:
    return FileStore(root, segment_bytes=20_000, journal_bytes=2_000, cut_at_close=0, **options)


def is_asked(error: OSError) -> None:
    assert error.strerror == "asked to fail"


async def seen(store: FileStore):
    """What a session is; a snapshot that cannot be read at present may be passed over for the older one."""
    lease = await store.acquire("user-42", create=False)
    loaded = await store.load(lease)
    assert loaded.snapshot is not None
    assert seqs(loaded) == list(range(loaded.snapshot.seq + 1, loaded.report.seq + 1))
    assert len(loaded.report.rejected) < 2
    archive = store.archive(lease)
    frames = [ids(archive.read([80, 103, 108])), ids(await archive.fetch([80, 103, 108]))]
    return lease.birth, loaded.report.seq, loaded.report.gaps, frames


@pytest.mark.parametrize("recovery", ["strict", "prefix", "readable"])
async def test_an_error_that_passes_is_no_damage_wherever_it_comes(pruned, tmp_path, recovery):
    root = tmp_path / "store"
    shutil.copytree(pruned, root)
    async with opened(small(root), working=False) as store:
        good = await seen(store)
    fails_at, refused = 0, 0
    while True:
        fails_at += 1
        disk = PassingDisk(fails_at)
        try:
            async with opened(small(root, recovery=recovery, disk=disk), working=False) as store:
                try:
                    found = await seen(store)
                except OSError:
                    refused += 1
                    found = await seen(store)
                assert found == good
        except OSError as error:  # at opening
            is_asked(error)
            refused += 1
        if disk.looked < fails_at:
            break
    assert refused > 5
    assert not list(root.glob("aside/*"))


async def test_verifying_takes_an_error_that_passes_for_nothing_but_a_refusal(pruned, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(pruned, root)
    async with opened(small(root), working=False):
        pass
    before, fails_at = image(root), 0
    while True:
        fails_at += 1
        disk, findings = PassingDisk(fails_at), Findings()
        check_store(disk, Layout(root), findings)
        damage = [finding for finding in findings.list if finding.severity != "note"]
        assert {finding.kind for finding in damage} <= {"refused"}
        assert len(damage) <= (disk.looked >= fails_at)  # a slot that is looked at twice may not refuse twice
        if disk.looked < fails_at:
            break
    assert fails_at > 20
    assert image(root) == before
