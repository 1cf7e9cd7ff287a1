"""A sync of a folder is refused and loses names, and later ones say OK over that: nothing is built on such a name."""

from __future__ import annotations

import contextlib
import errno
from random import Random

import pytest

from session_actor.persistence import FileStore, NotDurable, PersistenceError
from session_actor.persistence.log.names import Names

from ..simulation.disk import Fault, SimDisk
from ..simulation.image import Folder, Image, Inode
from ..simulation.life import ROOT, new_image
from ..simulation.loop import simulated
from ..simulation.model import texts_of
from .conformance_tools import say

LOSSES = 30
SEGMENT_BYTES = 4000
REFUSED = frozenset({"sync_dir"})


class Losing(Random):
    """All of what a refused sync was to make durable is lost."""

    def choice(self, seq):
        return seq[0]


def losing_disk(image: Image) -> SimDisk:
    disk = SimDisk(image)
    disk.chance = Losing(0)
    return disk


def refuse(disk: SimDisk) -> None:
    """Syncs of folders are refused from now on."""
    disk.faults.append(Fault(disk.calls + 1, 1_000_000_000, errno.EIO, REFUSED))


def small(disk: SimDisk, journal_bytes: int = 100_000) -> FileStore:
    return FileStore(ROOT, segment_bytes=SEGMENT_BYTES, journal_bytes=journal_bytes, disk=disk)


async def grow(store: FileStore, count: int, level: str = "synced") -> list[str]:
    """What the session holds when so many records more are there."""
    lease = await store.acquire("a", create=True)
    for number in range(count):
        say(store, lease, f"{number} {'x' * 200}")
        await store.flush(level)
    return list(await texts_of(store, lease))


async def after_a_loss_of_power(image: Image, number: int) -> list[str]:
    store = small(SimDisk(image.crash(Random(number))))
    await store.open()
    try:
        return list(await texts_of(store, await store.acquire("a", create=False)))
    finally:
        store._engine.let_go()


async def check(image: Image, held: list[str]) -> None:
    """No loss of power takes any of these records."""
    for number in range(LOSSES):
        assert (await after_a_loss_of_power(image, number))[: len(held)] == held, number


def test_a_name_that_a_refused_sync_lost_stays_lost_until_it_is_made_again():
    folder, first, second = Folder(), Inode(), Inode()
    folder.put("a", first)
    folder.lose(Losing(0))
    folder.put("b", second)
    folder.sync()
    assert folder.names == {"a": first, "b": second}
    assert folder.durable == {"b": second}
    folder.put("c", first, "a")
    folder.sync()
    assert folder.durable == folder.names == {"b": second, "c": first}


def test_a_sync_says_ok_only_of_names_that_were_made_since_the_last_refusal():
    disk = losing_disk(new_image())
    disk.make_dir(ROOT)
    names = Names(disk, ROOT)
    before = names.refusals
    names.sync(before)
    refuse(disk)
    with pytest.raises(OSError, match="Input/output"):
        names.sync(before)
    disk.faults.clear()
    with pytest.raises(OSError, match="an earlier sync of it was refused"):
        names.sync(before)
    names.sync(names.refusals)
    names.sync()


def test_a_segment_whose_name_may_be_lost_is_left_and_all_of_it_is_written_to_another():
    with simulated(1) as (loop, _):

        async def live() -> None:
            image = new_image()
            disk = losing_disk(image)
            store = small(disk)
            await store.open()
            await grow(store, 2, "written")  # the segment was begun, and its name is not on the disk
            refuse(disk)
            await grow(store, 8, "written")  # half full: a spare is prepared, and the folder synced for that
            assert disk.counts["sync_dir"] > 0
            disk.faults.clear()
            with pytest.raises(NotDurable, match="may have lost names"):
                await grow(store, 1)
            with contextlib.suppress(NotDurable):  # another takes over only now
                await grow(store, 1)
            held = await grow(store, 2)
            assert len(held) == 14
            await check(image, held)
            await store.close()

        loop.run(live())


def test_a_full_segment_whose_name_may_be_lost_gives_way_to_another():
    with simulated(1) as (loop, _):

        async def live() -> None:
            image = new_image()
            disk = losing_disk(image)
            store = small(disk)
            await store.open()
            await grow(store, 2, "written")
            refuse(disk)
            lease = await store.acquire("a", create=True)
            for number in range(40):  # more than it can take
                say(store, lease, f"{number} {'y' * 200}")
                with contextlib.suppress(PersistenceError):
                    await store.flush("written")
            disk.faults.clear()
            await store.flush("synced")
            held = list(await texts_of(store, lease))
            assert len(held) == 42
            await check(image, held)
            await store.close()

        loop.run(live())


def test_files_are_pruned_only_behind_a_snapshot_whose_name_is_surely_on_the_disk():
    with simulated(1) as (loop, _):

        async def live() -> None:
            image = new_image()
            disk = losing_disk(image)
            store = small(disk, journal_bytes=1000)
            await store.open()
            held = await grow(store, 30)
            lease = await store.acquire("a", create=False)
            refuse(disk)
            for seq in (20, 30):
                store.save(lease, seq, b'{"texts":%d}' % seq)
                with contextlib.suppress(OSError, PersistenceError):
                    await store.saved(lease, seq)
            disk.faults.clear()
            with contextlib.suppress(OSError, PersistenceError):
                await store.close()
            store = small(SimDisk(image), journal_bytes=1000)  # it was told of no refusal
            await store.open()
            lease = await store.acquire("a", create=False)
            while await store._engine.cutter.cut():
                pass
            pruned = await store.prune(lease, [(1, 1_000_000)])
            for number in range(LOSSES):
                found = await opened_after(image, number)
                assert found in (len(held), 0), number
            assert pruned.files > 0
            await store.close()

        loop.run(live())


async def opened_after(image: Image, number: int) -> int:
    """Loads the session after a loss of power; returns the record after which its snapshot was taken, or how many."""
    store = small(SimDisk(image.crash(Random(number))))
    await store.open()
    try:
        loaded = await store.load(await store.acquire("a", create=False))
        return loaded.report.snapshot_seq or len(loaded.records)
    finally:
        store._engine.let_go()


@pytest.mark.parametrize("first", range(1, 5))
def test_a_store_whose_making_was_refused_is_there_after_a_loss_of_power_once_it_took_records(first):
    with simulated(1) as (loop, _):

        async def live() -> None:
            image = new_image()
            disk = losing_disk(image)
            seen = 0

            def watch(kind: str) -> None:
                nonlocal seen
                seen += kind == "sync_dir"
                if kind == "sync_dir" and seen == first:
                    disk.faults.append(Fault(disk.calls + 1, disk.calls + 1, errno.EIO))

            disk.watch = watch
            store = small(disk)
            with contextlib.suppress(OSError):
                await store.open()
                await store.close()
            store = small(SimDisk(image))
            await store.open()
            held = await grow(store, 3)
            await check(image, held)
            await store.close()

        loop.run(live())
