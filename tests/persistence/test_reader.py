"""Reading a store without its lock: the same records as its owner loads, and never a wrong one, whatever is damaged."""

from __future__ import annotations

import random
import shutil
import threading
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, PersistenceError, SessionTombstoned, SessionUnknown
from session_actor.persistence.catalog.catalog import Catalog, CatalogRow
from session_actor.persistence.catalog.live_catalog import copy_live
from session_actor.persistence.files.storage import OsDisk
from session_actor.persistence.reading.reader import StoreReader

from .conformance_tools import HOSTILE_IDS, opened, say
from .stores import image

GOLDEN = Path(__file__).parent / "golden" / "store-v2"
SESSIONS = ("ann", "ben", "pruned", "\ud800/gap")
EDITS = 90


@pytest.fixture
def root(tmp_path) -> Path:
    return shutil.copytree(GOLDEN, tmp_path / "store")


async def truths(root: Path) -> dict[str, list[object]]:
    """What the store itself gives out."""
    async with opened(FileStore(root), working=False) as store:
        found = {}
        for session in SESSIONS:
            lease = await store.acquire(session, create=False)
            found[session] = list((await store.load(lease, snapshots=False)).records)
        return found


def test_what_a_reader_finds_is_what_the_store_loads(root, tmp_path):
    import asyncio

    before = image(root)
    with StoreReader(root) as reader:
        listed = {info.id: info for info in reader.sessions()}
        found = {session: [placed.record for placed in reader.lines(session).after()] for session in SESSIONS}
        bases = {session: reader.lines(session).base.seq for session in SESSIONS}
        with pytest.raises(SessionTombstoned):
            reader.find("gone")
        with pytest.raises(SessionUnknown):
            reader.find("nobody")
    assert image(root) == before
    wanted = asyncio.run(truths(root))
    assert sorted(listed) == sorted(SESSIONS)
    for session in SESSIONS:
        assert listed[session].seq == wanted[session][-1].seq
        assert [one for one in found[session] if one.seq > bases[session]] == wanted[session]
        assert [one.seq for one in found[session]] == sorted(one.seq for one in found[session])


def test_of_a_store_with_any_edit_a_prefix_is_read_and_what_is_missing_is_said(root, tmp_path):
    with StoreReader(root) as reader:
        wanted = {session: [placed.record for placed in reader.lines(session).after()] for session in SESSIONS}
    files = [path for path in sorted(root.rglob("*.ndjson")) if "aside" not in path.parts]
    choice = random.Random(20261130)
    short = 0
    for number in range(EDITS):
        path = choice.choice(files)
        data = path.read_bytes()
        offset = choice.randrange(len(data.rstrip(b"\0")) or 1)
        changed = edited(choice, data, offset)
        path.write_bytes(changed)
        with StoreReader(root) as reader:
            for session in SESSIONS:
                lines = reader.lines(session)
                found = [placed.record for placed in lines.after()]
                whole = wanted[session]
                assert found == whole[: len(found)], (number, path, offset)
                if len(found) < len(whole):
                    short += 1
                    at_end = path.parent.name == "log" and path == max(
                        files, key=lambda one: (one.parent.name == "log", one)
                    )
                    assert lines.damage is not None or at_end, (number, path, offset)
                    assert (
                        lines.damage is None
                        or lines.damage.seq == (found[-1].seq if found else 0) + 1
                        or session == "pruned"
                    )
        path.write_bytes(data)
    assert short > EDITS / 4


def edited(choice: random.Random, data: bytes, offset: int) -> bytes:
    kind = choice.choice(["flip", "cut", "drop", "double"])
    if kind == "flip":
        return data[:offset] + bytes([data[offset] ^ (1 << choice.randrange(8))]) + data[offset + 1 :]
    if kind == "cut":
        return data[:offset]
    begin, end = data.rfind(b"\n", 0, offset) + 1, data.find(b"\n", offset) + 1 or len(data)
    return data[:begin] + (b"" if kind == "drop" else data[begin:end] * 2) + data[end:]


def test_a_catalog_is_copied_as_it_was_at_one_moment_while_it_is_written(tmp_path):
    path = tmp_path / "catalog.db"
    catalog = Catalog(path)
    catalog.open(create=True)
    stop = threading.Event()

    def write() -> None:
        seq = 0
        while not stop.is_set():
            seq += 1
            rows = [CatalogRow(f"s{number:03d}", "b" * 16, 1, 1, 1, seq, "0" * 8, 0) for number in range(300)]
            catalog.commit_cut(rows, [], seq)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = set()
        for number in range(25):
            folder = tmp_path / str(number)
            folder.mkdir()
            copy = copy_live(OsDisk(), str(path), str(folder))
            try:
                found = {row.seq for row in copy.rows()} or {0}
                assert len(found) == 1
                assert copy.first_live_segment() == max(1, *found)
                seen |= found
            finally:
                copy.close()
    finally:
        stop.set()
        writer.join()
        catalog.close()
    assert len(seen) > 3


async def test_any_id_is_found_and_listed_in_order(tmp_path):
    async with opened(FileStore(tmp_path / "store", cut_at_close=0, segment_bytes=4_000)) as store:
        for session in HOSTILE_IDS:
            say(store, await store.acquire(session, create=True), "one", "two")
        await store.flush("synced")
        store._engine.log.seal()
        while await store._engine.cutter.cut():
            pass
        for session in HOSTILE_IDS[::2]:
            lease = await store.acquire(session, create=False)
            await store.load(lease)
            say(store, lease, "three")
        say(store, await store.acquire("new", create=True), "one")
        await store.flush("written")
        with StoreReader(tmp_path / "store") as reader:
            wanted = {session: 3 - place % 2 for place, session in enumerate(HOSTILE_IDS)} | {"new": 1}
            assert [(info.id, info.seq) for info in reader.sessions()] == sorted(wanted.items())
            for session, seq in wanted.items():
                assert [placed.record.seq for placed in reader.lines(session).after()] == list(range(1, seq + 1))
            assert [info.id for info in reader.sessions("CO")] == ["CON"]


def test_a_store_that_was_never_finished_holds_nothing(tmp_path):
    root = tmp_path / "store"
    for folder in ("log", "journals"):
        (root / folder).mkdir(parents=True)
    with StoreReader(root) as reader:
        assert list(reader.sessions()) == []
        with pytest.raises(PersistenceError):
            reader.find("user-42")
