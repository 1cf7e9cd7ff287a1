"""The steps of a repair that salvage sessions: in the store itself, opened for that alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from session_actor.persistence.errors import PersistenceError, SessionTombstoned, SessionUnknown, StoreCorrupt
from session_actor.persistence.events import Events
from session_actor.persistence.file_store import FileStore
from session_actor.persistence.reserve import is_full

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.store import Recovery

    from .mending import Salvage
    from .repairs import Step


class _Quiet(Events):
    """Nothing is logged."""

    __slots__ = ()

    def _log(self, name: str, values: dict[str, object]) -> None:
        """Whoever repairs is told by the steps; a line of a log would stand between them."""


class _QuietStore(FileStore):
    """A store that logs nothing."""

    def __init__(self, root: str, *, disk: Disk, recovery: Recovery, allow_network_fs: bool) -> None:
        """As `FileStore`."""
        super().__init__(root, disk=disk, recovery=recovery, allow_network_fs=allow_network_fs)
        self._events = _Quiet(root, None)


def run_salvage(root: str, disk: Disk, steps: list[Step], salvage: Salvage) -> list[Step]:
    """Do these steps; returns those that were done, with what came of them. Blocks.

    Raises what opening the store raises, and OSError.
    """
    with ThreadPoolExecutor(1) as thread:  # the caller may have an event loop of its own in this one
        return thread.submit(asyncio.run, _salvage(root, disk, steps, salvage)).result()


async def _salvage(root: str, disk: Disk, steps: list[Step], salvage: Salvage) -> list[Step]:
    log_steps = [step for step in steps if step.kind == "log" or step.path == "log"]
    store = _QuietStore(root, disk=disk, recovery=salvage if log_steps else "strict", allow_network_fs=True)
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
    except OSError as error:
        if is_full(error):
            raise
        return None  # one file that the disk refuses keeps no other session from being salvaged
    finally:
        store.release(lease)
    lost = told(report.seq, ((gap.first, gap.last) for gap in report.gaps), report.dropped)
    return msgspec.structs.replace(step, what=f"{step.what}; {lost}")


def told(newest: int, gaps: Iterable[tuple[int, int]], dropped: int) -> str:
    """What a session keeps and loses: its newest record, the records in gaps, and how many beside do not count."""
    runs = list(gaps)
    kept = f"kept: records up to {newest}"
    lost = sum(last - first + 1 for first, last in runs) + dropped
    if not runs:
        return f"{kept}; lost: {lost}"
    places = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs)
    unfit = f" and {dropped} that fit nowhere" if dropped else ""
    return f"{kept}; lost: {lost} ({places}{unfit})"
