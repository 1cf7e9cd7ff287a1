"""What lies in the directory of a store: names, kinds of files and modes, without opening anything."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from session_actor.persistence.files.storage import DIRECTORY_MODE, FILE_MODE, OsDisk

from .findings import REPAIR

if TYPE_CHECKING:
    from session_actor.persistence.layout import Layout

    from .findings import Findings

FOLDERS: Final = frozenset({"log", "journals", "snapshots", "aside"})
FILES: Final = frozenset({"FORMAT", "LOCK", "catalog.db", "catalog.db-journal"})
LEFTOVERS: Final = frozenset({"FORMAT.new", "catalog.db.new", "catalog.db.new-journal"})
"""What a first creation or a repair that was not finished leaves behind."""
JOURNAL_NAME: Final = re.compile(r"([a-z0-9_]{1,24})-([0-9a-f]{32})-([1-9][0-9]{0,17})\.ndjson")
JOURNAL_ANEW: Final = re.compile(r"[a-z0-9_]{1,24}-[0-9a-f]{32}-0\.ndjson\.new")
"""A journal file as it is written anew; see `journal_anew`."""
SHELF_NAME: Final = re.compile(r"[0-9a-f]{2}")
"""Folders of journals and of snapshots."""

_RESTORE: Final = "move it away, or restore what was there"
_REPAIR_MODE: Final = f"{REPAIR} makes it private again"


class LookingDisk(OsDisk):
    """The real disk, but for folders that are none, such as symbolic links: they are empty."""

    __slots__ = ()

    def list(self, path: str) -> list[str]:
        """See `Disk`."""
        return super().list(path) if is_folder(path) else []


def is_folder(path: str) -> bool:
    """Whether there is a folder of that name, and not only a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def check_tree(layout: Layout, findings: Findings) -> None:
    """Look at every name in the store. Raises OSError when that of the store itself cannot be looked at."""
    _check_mode(layout.root, Path(layout.root).stat().st_mode, findings)
    for entry in _entries(layout.root, findings):
        name = entry.name
        if name in FOLDERS:
            if _is_folder(entry, findings):
                _check_folder(entry.path, name, findings)
        elif name in FILES:
            _is_file(entry, findings)
        elif name in LEFTOVERS:
            findings.note("leftover", entry.path, "it was never finished", f"{REPAIR} removes it")
        else:
            findings.note("stranger", entry.path, "it is none of the store's", "move it away if it is not wanted")


def _check_folder(path: str, name: str, findings: Findings) -> None:
    if name in {"log", "aside"}:
        for entry in _entries(path, findings):
            if name == "log" or entry.is_file(follow_symlinks=False):  # what is aside may be anything
                _is_file(entry, findings)
        return
    for shelf in _entries(path, findings):
        if SHELF_NAME.fullmatch(shelf.name) is None:
            findings.note("stranger", shelf.path, "it is none of the store's", "move it away if it is not wanted")
        elif _is_folder(shelf, findings):
            for entry in _entries(shelf.path, findings):
                _is_file(entry, findings)


def _entries(path: str, findings: Findings) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        findings.refused(path, error)
        return []


def _is_folder(entry: os.DirEntry[str], findings: Findings) -> bool:
    mode = _mode(entry, findings)
    if mode is None:
        return False
    if stat.S_ISDIR(mode):
        _check_mode(entry.path, mode, findings)
        return True
    findings.damage("not_a_folder", entry.path, "it stands where a folder should", _RESTORE)
    return False


def _is_file(entry: os.DirEntry[str], findings: Findings) -> bool:
    mode = _mode(entry, findings)
    if mode is None:
        return False
    if stat.S_ISREG(mode):
        _check_mode(entry.path, mode, findings)
        return True
    findings.damage("not_a_file", entry.path, "it is no plain file; it was not opened", f"{REPAIR} moves it aside")
    return False


def _mode(entry: os.DirEntry[str], findings: Findings) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_mode
    except OSError as error:
        findings.refused(entry.path, error)
        return None


def _check_mode(path: str, mode: int, findings: Findings) -> None:
    wanted = DIRECTORY_MODE if stat.S_ISDIR(mode) else FILE_MODE
    if stat.S_IMODE(mode) != wanted:
        what = f"its mode is {stat.S_IMODE(mode):04o}, not {wanted:04o}"
        findings.note("mode", path, what, _REPAIR_MODE)
