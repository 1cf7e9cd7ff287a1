"""Copying a store that is in use, as a process that is killed leaves it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path


async def copy_living(root: Path | str, copy: Path | str) -> Path:
    """Copy a store as it is at one moment; taken again when a thread of it changed something meanwhile."""
    while not copied_at_one_moment(root, copy):  # noqa: ASYNC110 - a thread is at work, and tells nobody
        await asyncio.sleep(0.001)
    return Path(copy)


def copied_at_one_moment(root: Path | str, copy: Path | str) -> bool:
    """Copy a directory; False, and no copy, when a thread changed it meanwhile."""
    try:
        before = _state(root)
        shutil.copytree(root, copy)
        if _state(root) == before:
            return True
    except (FileNotFoundError, shutil.Error):
        pass
    shutil.rmtree(copy, ignore_errors=True)
    return False


def _state(root: Path | str) -> list[tuple[str, int, int]]:
    """Names, sizes and times of all files."""
    files = sorted(path for path in Path(root).rglob("*") if path.is_file())
    return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
