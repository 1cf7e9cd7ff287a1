"""The steps of a repair that salvage sessions: in the store itself, opened for that alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from .errors import PersistenceError, SessionTombstoned, SessionUnknown, StoreCorrupt
from .file_store import FileStore

if TYPE_CHECKING:
    from .mending import Salvage
    from .repairs import Step
    from .storage import Disk
    from .store import RecoveryReport


def run_salvage(root: str, disk: Disk, steps: list[Step], salvage: Salvage) -> list[Step]:
    """Do these steps; returns those that were done, with what came of them. Blocks.

    Raises what opening the store raises, and OSError.
    """
    with ThreadPoolExecutor(1) as thread:  # the caller may have an event loop of its own in this one
        return thread.submit(asyncio.run, _salvage(root, disk, steps, salvage)).result()


async def _salvage(root: str, disk: Disk, steps: list[Step], salvage: Salvage) -> list[Step]:
    log_steps = [step for step in steps if step.kind == "log" or step.path == "log"]
    store = FileStore(root, disk=disk, recovery=salvage if log_steps else "strict", allow_network_fs=True)
    await store.open()
    done = [step for step in log_steps if step.session is None]
    try:
        for step in steps:
            if step.session is not None:
                result = await _one(store, step, salvage)
                done += [] if result is None else [result]
    finally:
        await store.close()
    return done


async def _one(store: FileStore, step: Step, salvage: Salvage) -> Step | None:
    """The step as it was done; None when nothing of the session can be kept."""
    try:
        lease = await store.acquire(step.session or "", create=False)
    except (SessionUnknown, SessionTombstoned, StoreCorrupt):
        return None
    try:
        report = await store.salvage(lease, salvage)
    except PersistenceError:
        return None
    finally:
        store.release(lease)
    return msgspec.structs.replace(step, what=f"{step.what}: {_told(report)}")


def _told(report: RecoveryReport) -> str:
    gaps = ", ".join(f"{gap.first} to {gap.last}" for gap in report.gaps)
    lost = f"; lost: records {gaps}" if gaps else ""
    void = f"; {report.dropped} records do not count any more" if report.dropped else ""
    return f"its newest record is {report.seq}{lost}{void}"
