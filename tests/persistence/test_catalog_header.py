"""Each byte of the header of a catalog is changed: it is refused as damaged, or is as it was and takes changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from session_actor.persistence import FileStore
from session_actor.persistence.catalog.catalog import Catalog, CatalogRow
from session_actor.persistence.catalog.catalog_files import VERSION, FileRow
from session_actor.persistence.checking.verify import check
from session_actor.persistence.errors import CatalogCorrupt, StoreVersionTooNew
from session_actor.persistence.files.storage import HEADER_BYTES
from session_actor.persistence.repair.repair import repair

from ..simulation.disk import SimDisk
from ..simulation.image import Folder, Image, Inode
from .conformance_tools import say

BIRTH = "5e0f5e0f5e0f5e0f"
USER_VERSION = range(60, 64)
"""Where SQLite keeps the version that is ours."""


def a_row(seq: int) -> CatalogRow:
    return CatalogRow("user-42", BIRTH, 1_769_851_800_000_001, 1, 4096, seq, "9ae0daaf", 2**32 - 1)


def damaged(whole: bytes) -> list[tuple[int, bytes]]:
    """Each byte of the header changed in several ways, and where."""
    changed = []
    for at in range(HEADER_BYTES):
        values = {0, 2, 3, 255, whole[at] ^ 1, whole[at] ^ 128} - {whole[at]}
        changed += [(at, whole[:at] + bytes([value]) + whole[at + 1 :]) for value in sorted(values)]
    return changed


class OnReal:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "catalog.db"

    def catalog(self) -> Catalog:
        return Catalog(self.path)

    def read(self) -> bytes:
        return self.path.read_bytes()

    def write(self, content: bytes) -> None:
        self.path.write_bytes(content)


class OnSimulated:
    def __init__(self, _: Path) -> None:
        self.image = Image()
        self.image.top.put("store", Folder())

    def catalog(self) -> Catalog:
        disk = SimDisk(self.image)
        disk.trusts_pages = False
        return Catalog("/store/catalog.db", disk)

    def read(self) -> bytes:
        return self.image.file("/store/catalog.db").content()

    def write(self, content: bytes) -> None:
        self.image.folder("/store").put("catalog.db", Inode(content))


@pytest.mark.parametrize("place", [OnReal, OnSimulated])
def test_a_header_that_is_damaged_anywhere_is_refused_or_takes_changes(tmp_path, place):
    disk = place(tmp_path)
    first = disk.catalog()
    first.open(create=True)
    sealed = FileRow("user-42", BIRTH, 1, 1, 5, 1, 2, 900, 800, "9ae0daaf", 7)
    first.commit_cut([a_row(12)], [("gone", BIRTH)], 5, [sealed])
    first.close()
    whole = disk.read()
    refused, taken = 0, 0
    for at, content in damaged(whole):
        disk.write(content)
        try:
            assert changed(disk.catalog()) == ([a_row(12), a_row(13)], {BIRTH}, 5, [sealed])
            taken += 1
        except CatalogCorrupt:
            refused += 1
        except StoreVersionTooNew:
            assert at in USER_VERSION
    assert min(refused, taken) > 100


def changed(catalog: Catalog) -> tuple[Any, ...]:
    """What is in a catalog that was opened, looked through, and changed; its row before and after."""
    catalog.open(create=False)
    try:
        catalog.check()
        catalog.files.check()
        rows = catalog.rows()
        catalog.commit_cut([a_row(13)], [], catalog.first_live_segment())
        files = catalog.files.of("user-42", BIRTH)
        return [*rows, *catalog.rows()], set(catalog.dead_births("gone")), catalog.first_live_segment(), files
    finally:
        catalog.close()


@pytest.mark.parametrize("version", [3, 255])
async def test_a_catalog_that_can_only_be_read_is_told_as_damage_and_made_anew(tmp_path, version):
    """SQLite would open it, and refuse each change as on a disk that is read-only: no segment would ever be cut."""
    folder = tmp_path / "store"
    store = FileStore(folder)
    await store.open()
    lease = await store.acquire("a", create=True)
    say(store, lease, "first")
    await store.close()
    path = folder / "catalog.db"
    whole = path.read_bytes()
    path.write_bytes(whole[:18] + bytes([version]) + whole[19:])

    with pytest.raises(CatalogCorrupt, match=r"write version.*repair"):
        await FileStore(folder).open()
    assert [finding.kind for finding in check(folder).list if finding.severity == "damage"] == ["catalog"]
    repair(folder, write=True)
    assert check(folder).list == []
    again = FileStore(folder)
    await again.open()
    assert len((await again.load(await again.acquire("a", create=False))).records) == 1
    assert int.from_bytes(path.read_bytes()[60:64], "big") <= VERSION
    await again.close()
