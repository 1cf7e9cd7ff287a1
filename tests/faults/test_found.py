"""What the simulated lives once found, each by itself."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from session_actor.persistence import FileStore, NotDurable, SessionTombstoned, StoreClosed

from ..persistence.conformance_tools import say
from ..simulation.disk import Fault, SimDisk
from ..simulation.image import Image
from ..simulation.life import FOR_GOOD, ROOT, new_image
from ..simulation.loop import simulated
from ..simulation.model import state_of

EVERYTHING = frozenset({"create", "write", "sync", "preallocate", "rename", "unlink", "sync_dir", "make_dir"})


def store_on(image: Image, **options: Any) -> FileStore:
    return FileStore(ROOT, segment_bytes=1000, disk=SimDisk(image), **options)


def run(scenario: Callable[[Image], Coroutine[Any, Any, None]]) -> None:
    with simulated(1) as (loop, _):
        loop.run(scenario(new_image()))


def without_power(image: Image) -> Image:
    """What is left when nothing that was not synced is kept."""

    class Nothing(Random):
        def choices(self, population, *_, **__):
            return [("none",)]

    return image.crash(Nothing(1))


async def held(image: Image) -> dict[str, tuple[str, ...]]:
    store = store_on(image)
    await store.open()
    found = await state_of(store)
    store._engine.let_go()
    return found


def kill(store: FileStore) -> None:
    store._disk.die()
    store._engine.let_go()


def test_the_names_of_segments_that_a_killed_process_began_are_on_the_disk_when_the_next_is_open():
    async def scenario(image: Image) -> None:
        store = store_on(image)
        await store.open()
        lease = await store.acquire("a", create=True)
        for number in range(5):
            say(store, lease, f"{number} {'x' * 600}")
            await store.flush("written")
        kill(store)
        expected = await held(image)
        assert len(expected["a"]) == 5
        assert await held(without_power(image)) == expected

    run(scenario)


def test_a_store_whose_maker_died_before_its_name_was_synced_is_there_after_a_loss_of_power():
    async def scenario(image: Image) -> None:
        store = store_on(image)
        store._disk.watch = lambda kind: store._disk.die() if store._disk.counts.get("rename") else None
        with pytest.raises(OSError, match="dead"):
            await store.open()
        store = store_on(image)
        await store.open()
        say(store, await store.acquire("a", create=True), "kept")
        await store.flush("synced")
        assert await held(without_power(image)) == {"a": ("kept",)}
        store._engine.let_go()

    run(scenario)


def test_the_folder_of_a_journal_is_on_the_disk_though_the_first_cut_of_it_failed():
    async def scenario(image: Image) -> None:
        store = store_on(image)
        await store.open()
        lease = await store.acquire("a", create=True)
        for number in range(3):
            say(store, lease, f"{number} {'x' * 600}")
        await store.flush("synced")
        store._disk.faults.append(Fault(0, FOR_GOOD, errno.EIO, frozenset({"create"})))
        with pytest.raises(OSError, match="Input/output"):
            await store._engine.cutter.cut()
        store._disk.faults.clear()
        assert await store._engine.cutter.cut()
        expected = await state_of(store)
        assert await held(without_power(image)) == expected
        kill(store)

    run(scenario)


@pytest.mark.parametrize("cut", [False, True])
def test_a_session_whose_deletion_failed_at_first_is_deleted_when_its_tombstone_is_synced(cut):
    async def scenario(image: Image) -> None:
        store = store_on(image)
        await store.open()
        lease = await store.acquire("a", create=True)
        say(store, lease, "x" * 1200)
        await store.flush("synced")
        store._disk.faults.append(Fault(0, FOR_GOOD, errno.EIO, EVERYTHING))
        with pytest.raises(NotDurable):
            await store.delete(lease)
        store._disk.faults.clear()
        await store.flush("synced")
        if cut:
            await store._engine.cutter.cut()
        await asyncio.sleep(1)
        with pytest.raises(SessionTombstoned):
            await store.acquire("a", create=False)
        assert not [path for path in image.files() if "/journals/" in path]
        await store.close()
        assert await held(image) == {}

    run(scenario)


def test_a_session_is_gone_while_its_tombstone_is_queued_though_the_catalog_has_it():
    async def scenario(image: Image) -> None:
        store = store_on(image)
        await store.open()
        say(store, await store.acquire("a", create=True), "first")
        await store.close()
        await store.open()
        deleting = asyncio.ensure_future(store.delete(await store.acquire("a", create=False)))
        await asyncio.sleep(0)
        store._disk.faults.append(Fault(0, FOR_GOOD, errno.EIO, EVERYTHING))
        store.release(await store.acquire("a", create=True))
        with pytest.raises(SessionTombstoned):
            await store.acquire("a", create=False)
        store._disk.faults.clear()
        await asyncio.gather(deleting, return_exceptions=True)
        await store.close()

    run(scenario)


def test_a_later_birth_keeps_its_journal_when_both_are_cut_together():
    async def scenario(image: Image) -> None:
        store = store_on(image)
        await store.open()
        first = await store.acquire("a", create=True)
        say(store, first, "first")
        await store.close()
        await store.open()
        lease = await store.acquire("a", create=False)
        store._disk.faults.append(Fault(0, FOR_GOOD, errno.EIO, frozenset({"query"})))  # nothing is removed yet
        await store.delete(lease)
        say(store, await store.acquire("a", create=True), "second", "x" * 1000, "y" * 1000)
        await store.flush("synced")
        store._disk.faults.clear()
        while await store._engine.cutter.cut():
            pass
        await store.close()
        assert await held(image) == {"a": ("second", "x" * 1000, "y" * 1000)}

    run(scenario)


def test_what_is_written_is_synced_for_who_waits_though_what_follows_cannot_be_written():
    async def scenario(image: Image) -> None:
        store = store_on(image)
        await store.open()
        lease = await store.acquire("a", create=True)
        written = say(store, lease, "x" * 500)
        await store.flush("written")
        say(store, lease, "y" * 500)
        store._disk.faults.append(Fault(0, FOR_GOOD, errno.ENOSPC, frozenset({"write", "preallocate", "create"})))
        with pytest.raises(NotDurable):
            await store.flush("written")
        await asyncio.wait_for(store.flush("synced", written), 60)
        store._disk.faults.clear()
        await store.close()

    run(scenario)


def test_an_error_of_another_call_does_not_make_the_writer_forget_what_it_was_writing():
    async def scenario(image: Image) -> None:
        store = store_on(image)
        await store.open()
        lease = await store.acquire("a", create=True)
        say(store, lease, "x" * 700)
        await store.flush("written")
        store._disk.faults.append(Fault(0, FOR_GOOD, errno.EIO, frozenset({"write", "unlink", "preallocate"})))
        for number in range(4):
            say(store, lease, f"{number} {'x' * 300}")
            with pytest.raises(NotDurable):
                await store.flush("written")
        store._disk.faults.clear()
        await asyncio.sleep(0.001)  # the try that was under way has failed by then, the next is not due
        await asyncio.wait_for(store.flush("synced"), 60)
        await store.close()
        assert len((await held(image))["a"]) == 5

    run(scenario)


def test_a_segment_that_lost_its_header_and_was_gone_on_from_is_no_damage():
    """Power is lost before two segments were ever synced: the next takes over from the first byte of the older one."""

    async def scenario(image: Image) -> None:
        store = store_on(image)
        await store.open()
        lease = await store.acquire("a", create=True)
        say(store, lease, "x" * 1200)
        await store.flush("synced")
        for text in ("lost", "y" * 1000, "z" * 600):
            say(store, lease, text)
            await store.flush("written")
        first, second, third = (inode for path, inode in image.files().items() if "/log/0" in path)
        assert first.durable
        assert third.data
        second.replace(bytes(512) + bytes(second.data[512:]))
        kill(store)
        for text in ("one", "two"):
            store = store_on(image)
            await store.open()
            lease = await store.acquire("a", create=False)
            await store.load(lease)
            say(store, lease, text)
            await store.flush("synced")
            await store._engine.settle()
            kill(store)
            image.locks.clear()
        assert await held(image) == {"a": ("x" * 1200, "one", "two")}

    run(scenario)


def test_a_write_that_ends_after_the_store_was_let_go_asks_nothing_of_its_threads():
    async def scenario(image: Image) -> None:
        store = FileStore(ROOT, segment_bytes=100_000, disk=SimDisk(image, Random(1)))
        await store.open()
        lease = await store.acquire("a", create=True)
        say(store, lease, "first")
        await store.flush("synced")
        say(store, lease, *("x" * 2000 for _ in range(40)))
        store.reach("written")
        await asyncio.sleep(0)
        assert store._engine.writer._busy
        store._engine.let_go()
        await asyncio.sleep(0)
        assert (await held(image))["a"][0] == "first"

    run(scenario)


def test_a_cut_that_goes_on_after_the_store_was_let_go_keeps_no_other_from_ending():
    async def scenario(image: Image) -> None:
        store = store_on(image)
        await store.open()
        lease = await store.acquire("a", create=True)
        for _ in range(3):
            say(store, lease, "x" * 1000)
            await store.flush("synced")
        cutter = store._engine.cutter
        commit = cutter._commit

        async def commit_too_late(*what: Any) -> None:
            store._engine.let_go()
            await commit(*what)

        cutter._commit = commit_too_late
        for _ in range(2):
            with pytest.raises(StoreClosed):
                await asyncio.wait_for(cutter.cut(), 60)

    run(scenario)
