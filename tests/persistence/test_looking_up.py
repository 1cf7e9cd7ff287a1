"""Sessions that are asked for at once are looked up together, and each is told what it would be told alone."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing

import pytest

from session_actor.persistence import CatalogCorrupt, FileStore, Lease, SessionTombstoned, SessionUnknown, StoreClosed
from session_actor.persistence.files.disk_thread import DiskThread
from session_actor.persistence.files.gathering import GROUP, Gathering
from session_actor.persistence.files.storage import OsDisk

from .conformance_tools import opened, push
from .stores import fill


class CountingDisk(OsDisk):
    """Counts the jobs of the thread that reads, and files that are opened."""

    __slots__ = ("jobs", "paths")

    def __init__(self) -> None:
        self.jobs = 0
        self.paths: list[str] = []

    def thread(self, name, loop):
        thread = super().thread(name, loop)
        if name.endswith("read"):
            submit = thread.submit

            class Counting(DiskThread):
                __slots__ = ()

                def submit(_, job, done):  # noqa: N805
                    self.jobs += 1
                    submit(job, done)

            return Counting(name, loop)
        return thread

    def open(self, path, *, write=False, create=False):
        self.paths.append(path)
        return super().open(path, write=write, create=create)


@pytest.fixture
async def thread():
    thread = DiskThread("test", asyncio.get_running_loop())
    yield thread
    thread.end()


@pytest.fixture
async def root(tmp_path):
    await fill(tmp_path / "store", in_log=0)
    return tmp_path / "store"


async def test_questions_of_one_turn_go_in_groups_and_each_gets_its_answer(thread):
    groups: list[int] = []

    def double(numbers: list[int]) -> list[int]:
        groups.append(len(numbers))
        return [2 * number for number in numbers]

    gathering = Gathering(asyncio.get_running_loop(), thread, double)
    answers = await asyncio.gather(*(gathering.ask(number) for number in range(GROUP + 3)))

    assert answers == [2 * number for number in range(GROUP + 3)]
    assert groups == [GROUP, 3]
    assert await gathering.ask(7) == 14


async def test_a_question_that_raises_harms_no_other_of_its_group(thread):
    def invert(numbers: list[int]) -> list[float]:
        return [1 / number for number in numbers]

    gathering = Gathering(asyncio.get_running_loop(), thread, invert)
    answers = await asyncio.gather(*(gathering.ask(number) for number in (1, 0, 2, 0)), return_exceptions=True)

    assert answers[0] == 1
    assert answers[2] == 0.5
    assert isinstance(answers[1], ZeroDivisionError)
    assert isinstance(answers[3], ZeroDivisionError)
    assert answers[1] is not answers[3]


async def test_who_gives_up_the_wait_harms_no_other(thread):
    gathering = Gathering(asyncio.get_running_loop(), thread, list)
    asking = [asyncio.create_task(gathering.ask(name)) for name in "abc"]
    await asyncio.sleep(0)
    asking[1].cancel()

    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert answers[::2] == ["a", "c"]
    assert isinstance(answers[1], asyncio.CancelledError)


async def test_a_thread_that_has_ended_refuses_each_question_by_an_error_of_its_own(thread):
    gathering = Gathering(asyncio.get_running_loop(), thread, list)
    asking = [asyncio.create_task(gathering.ask(name)) for name in "ab"]
    await asyncio.sleep(0)
    thread.end()

    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreClosed] * 2
    assert answers[0] is not answers[1]


async def test_sessions_that_wake_at_once_are_found_in_one_go_each_as_it_is(root):
    disk = CountingDisk()
    async with opened(FileStore(root, disk=disk), working=False) as store:
        disk.jobs = 0
        names = ["a", "b", "gone", "c", "unknown"]
        found = await asyncio.gather(*(store.acquire(name, create=False) for name in names), return_exceptions=True)

        assert disk.jobs == 1
        assert [type(one) for one in found] == [Lease, Lease, SessionTombstoned, Lease, SessionUnknown]
        loaded = [await store.load(lease) for lease in (found[0], found[1], found[3])]
        assert [one.report.seq for one in loaded] == [40, 40, 40]
        assert [one.report.snapshot_seq for one in loaded] == [39, 39, 39]
        assert disk.jobs == 1


async def test_a_damaged_row_of_the_catalog_is_told_to_its_session_alone(root):
    store = FileStore(root)
    await store.open()
    try:
        with closing(sqlite3.connect(root / "catalog.db")) as catalog:
            catalog.execute("UPDATE journals SET seq = seq + 1 WHERE session = ?", (b"b",))
            catalog.commit()
        names = ("a", "b", "c")
        found = await asyncio.gather(*(store.acquire(name, create=False) for name in names), return_exceptions=True)

        assert isinstance(found[1], CatalogCorrupt)
        assert [found[0].session, found[2].session] == ["a", "c"]
    finally:
        await store.close()


async def test_no_snapshot_is_looked_for_where_no_folder_is_of_it(root):
    shutil.rmtree(root / "snapshots")
    disk = CountingDisk()
    async with opened(FileStore(root, disk=disk), working=False) as store:
        disk.paths.clear()
        lease = await store.acquire("a", create=False)
        loaded = await store.load(lease)

        assert (loaded.report.seq, loaded.report.snapshot_seq) == (40, 0)
        assert not [path for path in disk.paths if "/snapshots/" in path]
        assert len([path for path in disk.paths if path.endswith("-1.ndjson")]) == 1
        store.save(lease, 40, b'{"snapshot":3}')
        await store.saved(lease, 40)
        store.release(lease)
        lease = await store.acquire("a", create=False)
        assert (await store.load(lease)).report.snapshot_seq == 40


async def test_a_session_that_is_whole_in_the_log_is_loaded_without_the_disk(tmp_path):
    async with opened(FileStore(tmp_path / "store", cut_at_close=0)) as store:
        push(store, await store.acquire("a", create=True), 5)
    disk = CountingDisk()
    async with opened(FileStore(tmp_path / "store", disk=disk, cut_at_close=0), working=False) as store:
        disk.jobs = 0
        disk.paths.clear()
        loaded = await store.load(lease := await store.acquire("a", create=False))
        assert (loaded.report.log_records, disk.jobs, disk.paths) == (5, 0, [])
        store.save(lease, 5, b'{"snapshot":3}')
        await store.saved(lease, 5)
    async with opened(FileStore(tmp_path / "store", cut_at_close=0), working=False) as store:
        assert (await store.load(await store.acquire("a", create=False))).report.snapshot_seq == 5
