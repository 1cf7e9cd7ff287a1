"""The suite of `conformance` and the model of `conformance_model`, run for every store."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from session_actor.persistence import LEVELS, FileStore, MemoryStore
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.header import decode_journal_header

from ..living import copy_living
from .conformance import StoreConformance
from .conformance_model import check_against_model
from .conformance_tools import HOSTILE_IDS, NewStore, opened, say


class TestMemoryStore(StoreConformance):
    levels = LEVELS[:1]

    @pytest.fixture
    def new_store(self) -> NewStore:
        store = MemoryStore()
        return lambda: store


class TestFileStore(StoreConformance):
    @pytest.fixture
    def new_store(self, tmp_path) -> NewStore:
        return lambda: FileStore(tmp_path / "store")


class TestFileStoreWithoutWorkers(TestFileStore):
    working = False


class TestFileStoreWithSmallSegments(StoreConformance):
    """Every few records the log goes on in another file, and the cut moves what is old."""

    @pytest.fixture
    def new_store(self, tmp_path) -> NewStore:
        return lambda: FileStore(tmp_path / "store", segment_bytes=4096, journal_bytes=2048, sync_interval_s=0.01)


async def test_ids_of_any_text_put_nothing_outside_the_root_and_no_two_in_one_place(tmp_path):
    root = tmp_path / "outer" / "store"
    root.parent.mkdir()
    for texts in (["first"], ["second"]):
        async with opened(FileStore(root, segment_bytes=4096, sync_interval_s=0.01)) as store:
            for session in HOSTILE_IDS:
                say(store, await store.acquire(session, create=texts == ["first"]), *texts, "x" * 2000)
            await store.flush("synced")
            while store.health().live_segments > 1:  # noqa: ASYNC110 - the cutter tells nobody
                await asyncio.sleep(0.005)
    assert list(tmp_path.iterdir()) == [root.parent]
    assert list(root.parent.iterdir()) == [root]
    journals = [path for path in (root / "journals").rglob("*") if path.is_file()]
    assert len({str(path).casefold() for path in journals}) == len(HOSTILE_IDS)
    headers = [decode_journal_header(path.read_bytes().splitlines(keepends=True)[0], str(path)) for path in journals]
    assert sorted(header.session for header in headers) == sorted(HOSTILE_IDS)
    assert all(
        str(path).endswith(journal_path(header.session, 1)) for path, header in zip(journals, headers, strict=True)
    )


class MemoryHome:
    levels = LEVELS[:1]

    def __init__(self) -> None:
        self.store = MemoryStore()

    def new_store(self) -> MemoryStore:
        return self.store

    def crash(self, store: MemoryStore) -> None:
        return None


class FileHome:
    """A directory; a crash goes on with a copy of it, made while the store is open, as a killed process leaves it."""

    levels = LEVELS[1:]

    def __init__(self, roots, segment_bytes: int) -> None:
        self.roots = roots
        self.segment_bytes = segment_bytes
        self.root = next(roots)

    def new_store(self) -> FileStore:
        return FileStore(self.root, segment_bytes=self.segment_bytes, sync_interval_s=0.01)

    async def crash(self, store: FileStore) -> None:
        copy = next(self.roots)
        await copy_living(self.root, copy)
        await store.close()
        self.root = copy


def test_the_memory_store_does_what_the_model_does():
    check_against_model(MemoryHome, examples=10, steps=30)


@pytest.mark.parametrize("segment_bytes", [2048, 8 * 1024 * 1024])
def test_the_file_store_does_what_the_model_does(tmp_path, segment_bytes):
    roots = (tmp_path / str(number) for number in itertools.count())
    check_against_model(lambda: FileHome(roots, segment_bytes), examples=8, steps=30)
