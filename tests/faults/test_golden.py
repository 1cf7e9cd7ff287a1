"""A store of today's form, held by files: it opens and goes on; a newer version of each of its files is refused."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, StoreVersionTooNew
from session_actor.persistence.format.frame_index import frames_of
from session_actor.persistence.format.record import close_line

from ..persistence.conformance_tools import opened, push
from .grown import EVERY_FRAME, SESSIONS, SIZES
from .verified import damage_in

GOLDEN = Path(__file__).parents[1] / "persistence" / "golden"
EXPECTED = json.loads((GOLDEN / "store-v2.json").read_text(encoding="utf-8"))


@pytest.fixture
def root(tmp_path) -> Path:
    """A copy, with its journals, sealed and with an index, snapshots, catalog, log, a gap and a pruned session."""
    return shutil.copytree(GOLDEN / "store-v2", tmp_path / "store")


async def sums(store: FileStore, session: str, *, snapshots: bool) -> tuple[int, dict[str, str]]:
    """After which record the snapshot was taken that was used, and the sums of the records."""
    lease = await store.acquire(session, create=False)
    assert lease.birth == EXPECTED[session]["birth"]
    found = await store.load(lease, snapshots=snapshots)
    return found.report.snapshot_seq, {str(record.seq): record.sum for record in found.records}


async def test_a_store_of_the_second_version_is_opened_read_and_goes_on(root):
    assert damage_in(root) == []
    async with opened(FileStore(root, **SIZES)) as store:
        for session, expected in EXPECTED.items():
            assert await sums(store, session, snapshots=False) == (0, expected["sums"])
            used, behind = await sums(store, session, snapshots=True)
            assert used == max(expected["snapshots"])
            assert behind == {seq: found for seq, found in expected["sums"].items() if int(seq) > used}
            lease = await store.acquire(session, create=False)
            records = store.archive(lease).read(EVERY_FRAME)
            assert {str(record.seq): record.sum for record in records}.items() <= expected["sums"].items()
            assert len([frame for record in records for frame in frames_of(record.kind, record.data)]) >= 25
            await store.load(lease)
            push(store, lease, 20, first=100)
        await store.flush("synced")
    async with opened(FileStore(root, **SIZES)) as store:
        for session, expected in EXPECTED.items():
            _, found = await sums(store, session, snapshots=False)
            assert found.items() >= expected["sums"].items()
            assert len(found) == len(expected["sums"]) + 20
    assert damage_in(root) == []


async def read_all(root: Path, *, snapshots: bool) -> None:
    """Open, and load every session."""
    async with opened(FileStore(root, cut_at_close=0, **SIZES), working=False) as store:
        for session in SESSIONS:
            await sums(store, session, snapshots=snapshots)


def newer(path: Path) -> None:
    """Give a file a version to come."""
    if path.suffix == ".db":
        with contextlib.closing(sqlite3.connect(path)) as catalog:
            catalog.execute("PRAGMA user_version = 99")
        return
    head, end, rest = path.read_bytes().partition(b"\n")
    head = head[: head.rindex(b',"sum":"')].replace(b'"version":1', b'"version":99')
    assert b'"version":99' in head
    assert end
    path.write_bytes(close_line(head)[0] + rest)


@pytest.mark.parametrize("kind", ["FORMAT", "catalog.db", "log", "journals", "snapshots"])
async def test_a_newer_version_of_any_file_of_a_store_is_refused_and_left_as_it_is(root, kind):
    path = root / kind
    paths = [path] if path.is_file() else sorted(path.rglob("*.ndjson"))
    for path in paths:
        newer(path)
    before = {path: path.read_bytes() for path in paths}
    with pytest.raises(StoreVersionTooNew, match=r"version 99") as refusal:
        await read_all(root, snapshots=kind == "snapshots")
    assert any(str(path) in str(refusal.value) for path in paths)
    assert {path: path.read_bytes() for path in paths} == before
