"""A process dies at every single system call: nothing that was acknowledged is lost."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from session_actor.persistence import FileStore, NotDurable, SessionTombstoned, SessionUnknown

from .conformance import opened, say
from .disks import Dead, TroubledDisk
from .test_recovery import texts


async def use(store: FileStore, acknowledged: dict[str, list[str]]) -> None:
    """Everything that a store does: new sessions, many segments, cuts, a deletion, an id made again."""
    for session in ("kept", "deleted"):
        lease = await store.acquire(session, create=True)
        acknowledged.setdefault(session, [])
        for number in range(6):
            text = f"{number} {'x' * 150}"
            say(store, lease, text)
            await store.flush("written")
            acknowledged[session].append(text)
        await store.flush("synced")
        await store._engine.cutter.cut()
    acknowledged["deleted?"] = acknowledged.pop("deleted")
    await store.delete(lease)
    del acknowledged["deleted?"]
    await store._engine.cutter.cut()
    lease = await store.acquire("deleted", create=True)
    say(store, lease, "again")
    await store.flush("synced")
    acknowledged["deleted"] = ["again"]


async def run_until_death(root: Path, dies_at: int | None) -> tuple[TroubledDisk, dict[str, list[str]]]:
    disk = TroubledDisk(dies_at=dies_at)
    store = FileStore(root, segment_bytes=1000, disk=disk)
    acknowledged: dict[str, list[str]] = {}
    try:
        await store.open()
        await use(store, acknowledged)
    except (Dead, NotDurable):
        pass
    finally:
        with contextlib.suppress(NotDurable):
            await store.close()
    return disk, acknowledged


async def test_dying_at_any_system_call_loses_nothing_that_was_acknowledged(tmp_path, faults):
    disk, acknowledged = await run_until_death(tmp_path / "whole", None)
    assert (len(acknowledged["kept"]), acknowledged["deleted"]) == (6, ["again"])
    total = len(disk.calls)
    for dies_at in faults.some(range(1, total + 1)):
        root = tmp_path / str(dies_at)
        _, acknowledged = await run_until_death(root, dies_at)
        for _ in range(1 + (dies_at % 5 == 0)):
            async with opened(FileStore(root, segment_bytes=1000), working=False) as store:
                for session, expected in acknowledged.items():
                    if session == "deleted?":
                        continue
                    found = await texts(store, session) if expected else []
                    assert found[: len(expected)] == expected, (dies_at, session)
                    assert len(found) <= len(expected) + 1
                if {"deleted", "deleted?"} & acknowledged.keys():
                    continue
                # Gone, or made again by a record that was not yet acknowledged.
                with contextlib.suppress(SessionTombstoned, SessionUnknown):
                    assert await texts(store, "deleted") in (["again"], [f"0 {'x' * 150}"]), dies_at
        shutil.rmtree(root, ignore_errors=True)
    assert total > 80
