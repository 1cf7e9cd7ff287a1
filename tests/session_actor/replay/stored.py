"""Sessions that were driven without a server, put into a store as a server would."""

from __future__ import annotations

from pathlib import Path

import msgspec

from session_actor.persistence import FileStore

from ..live import Live

SMALL = {"segment_bytes": 20_000, "journal_bytes": 3_000}
"""Sizes at which there are many files."""


async def put(root: Path, live: Live, **options) -> Path:
    """A closed store that holds the records of `live`; returns its directory."""
    store = FileStore(root, **{**SMALL, **options})
    await store.open()
    try:
        lease = await store.acquire(live.state.session, create=True)
        for kind, data, seq, at_us in live.records:
            store.append(lease, seq, at_us, kind, msgspec.Raw(data), len(data))
        await store.flush("synced")
    finally:
        await store.close()
    return root


def image(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything in a directory: names, bytes, times of change."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            path.is_file() and path.read_bytes(),
        )
        for path in sorted(root.rglob("*"))
    }
