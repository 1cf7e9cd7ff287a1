"""Telling a store from a directory that is somebody else's, by the names in it, before anything is made or changed."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from .checking.tree import FILES, FOLDERS, LEFTOVERS, SHELF_NAME
from .errors import NotAStore
from .files.storage import OsDisk

if TYPE_CHECKING:
    from .files.storage import Disk
    from .layout import Layout

_STORES: Final = FOLDERS | FILES | LEFTOVERS
_HARMLESS: Final = frozenset({"lost+found"})
"""What the root of a file system holds by itself."""
_INSIDE: Final = {
    "log": re.compile(r"[0-9]{1,11}\.ndjson|spare|reserve|takeover|commit"),
    "journals": SHELF_NAME,
    "snapshots": SHELF_NAME,
}
_SHOWN: Final = 3
"""So many strangers are named."""


def check_free(disk: Disk, layout: Layout) -> None:
    """Whether a store may be opened or made there: in one, in what is left of making one, or where there is nothing.

    Blocks. Raises `NotAStore`, OSError.
    """
    names = disk.list(layout.root)
    if set(names) - _HARMLESS and not _is_store(disk, layout, names):
        strangers = [name for name in names if name not in _STORES] or names
        named = ", ".join(strangers[:_SHOWN]) + (", …" if len(strangers) > _SHOWN else "")
        why = f"it holds what is not a store's: {named}; give a directory that is new or empty, or that of a store"
        raise NotAStore(layout.root, why)


def check_store_there(layout: Layout) -> None:
    """Whether there is a store: whole, damaged or half made. Blocks. Raises `NotAStore`, OSError."""
    try:
        names = os.listdir(layout.root)  # noqa: PTH208 - a plain system call
    except FileNotFoundError:
        raise NotAStore(layout.root, "there is no such directory") from None
    except NotADirectoryError:
        raise NotAStore(layout.root, "it is not a directory") from None
    if not _is_store(OsDisk(), layout, names):
        raise NotAStore(layout.root, "it has no FORMAT, nor what a store holds; give the directory of a store")


def _is_store(disk: Disk, layout: Layout, names: list[str]) -> bool:
    """By its FORMAT; without: by holding nothing that is not a store's, or what only a store holds, whatever else."""
    if "FORMAT" in names:
        return True
    found = set(names) - _HARMLESS
    inside = [(name, _INSIDE[name].fullmatch(each)) for name in _INSIDE for each in _list(disk, layout, name)]
    if found and found <= _STORES and all(fits for _, fits in inside):
        return True
    return {"LOCK", "catalog.db"} <= found or {"log", "journals"} <= {name for name, fits in inside if fits}


def _list(disk: Disk, layout: Layout, folder: str) -> list[str]:
    try:
        return disk.list(f"{layout.root}/{folder}")
    except NotADirectoryError:
        return ["no directory"]
