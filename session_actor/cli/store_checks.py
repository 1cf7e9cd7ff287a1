"""What the doctor looks at in a store's directory. Nothing is changed.

The lock is not touched, not even for a try: a server that starts at that moment would find it taken.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from session_actor.persistence.checking.tree import LookingDisk
from session_actor.persistence.errors import NetworkFileSystem, PersistenceError, StoreVersionTooNew
from session_actor.persistence.files.storage import DIRECTORY_MODE, FILE_MODE
from session_actor.persistence.foreign import check_store_there
from session_actor.persistence.layout import VERSION, Layout
from session_actor.persistence.lock import check_local, file_system_of

from .checks import found
from .codes import CANNOT, code_of, counted
from .output import size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .store_lines import DoctorCheck

_SPACE_BYTES: Final = 256 * 1024 * 1024
_FEW_BYTES: Final = 1024 * 1024 * 1024
_FEW_NODES: Final = 1000
_PID_BYTES: Final = 20


class Looked:
    """The checks of one directory, and the exit code of what keeps the store from being read at all."""

    def __init__(self, root: str) -> None:
        """`root`: the directory."""
        self.layout = Layout(root)
        self.code = 0

    def checks(self) -> Iterator[DoctorCheck]:
        """All of them; those that need a store only where there is one."""
        try:
            check_store_there(self.layout)
        except (PersistenceError, OSError) as error:
            self.code = CANNOT
            yield found("store", "problem", str(error), "give the directory that SessionService.open was given")
            return
        yield self._format()
        yield _file_system(self.layout.root)
        yield from _space(self.layout.root)
        yield from _permissions(self.layout)
        yield _lock(self.layout)
        yield self._readable()

    def _format(self) -> DoctorCheck:
        try:
            finished = self.layout.is_finished(LookingDisk())
        except StoreVersionTooNew as error:
            self.code = code_of(error)
            return found("format", "problem", str(error), "upgrade session-actor: pip install -U session-actor")
        except (PersistenceError, OSError) as error:
            self.code = code_of(error)
            return found("format", "problem", str(error), f"session-actor repair {self.layout.root}")
        if not finished:
            return found("format", "note", "the store was never finished", "nothing: opening the store makes it")
        return found("format", "ok", f"version {VERSION}")

    def _readable(self) -> DoctorCheck:
        from session_actor.replay.reading import read_store
        from session_actor.service.reserved import is_reserved

        if self.code:
            return found("sessions", "note", "not looked at", "mend the format first")
        try:
            with read_store(self.layout.root) as reader:
                count = sum(not is_reserved(info.id) for info in reader.sessions())
        except (PersistenceError, OSError) as error:
            self.code = code_of(error)
            return found("sessions", "problem", str(error), f"session-actor verify {self.layout.root}")
        return found("sessions", "ok", f"{counted(count, 'session')} listed (`session-actor verify` reads all)")


def _file_system(root: str) -> DoctorCheck:
    kind = file_system_of(root)
    try:
        check_local(root)
    except NetworkFileSystem as error:
        return found("file system", "problem", str(error), "use a local disk")
    if kind in {"tmpfs", "ramfs"}:
        return found("file system", "note", f"{kind}: in memory, gone after a restart", "use a disk for what must stay")
    return found("file system", "ok", kind or "not known: this system has no mount table")


def _space(root: str) -> Iterator[DoctorCheck]:
    free = shutil.disk_usage(root).free
    told = f"{size(free)} free"
    if free < _SPACE_BYTES:
        advice = "make room: without it changes are refused (StoreDegraded) until there is some"
        yield found("space", "problem", told, advice)
    elif free < _FEW_BYTES:
        yield found("space", "note", told, "make room soon")
    else:
        yield found("space", "ok", told)
    status = os.statvfs(root)
    if status.f_files and status.f_favail < _FEW_NODES:
        advice = "remove small files: each session has at least one of its own"
        yield found("inodes", "problem", f"{status.f_favail:,} free", advice)


def _permissions(layout: Layout) -> Iterator[DoctorCheck]:
    root = Path(layout.root)
    refused = [
        name for name, mode in (("read", os.R_OK), ("write", os.W_OK), ("enter", os.X_OK)) if not os.access(root, mode)
    ]
    if refused:
        advice = f"run as the owner of {root}, or: chown -R USER {root}"
        yield found("access", "problem", f"this user may not {', '.join(refused)}", advice)
    else:
        yield found("access", "ok", "this user may read and write")
    open_to: list[str] = []
    for path in [root, *sorted(root.iterdir())] if "read" not in refused else [root]:
        try:
            status = path.lstat()
        except OSError:
            continue
        private = DIRECTORY_MODE if stat.S_ISDIR(status.st_mode) else FILE_MODE
        if stat.S_IMODE(status.st_mode) & ~private:
            open_to.append(path.name)
    if open_to:
        advice = f"session-actor repair {root} --write makes them private"
        yield found("permissions", "problem", f"others may read or write {', '.join(open_to[:5])}", advice)
    else:
        yield found("permissions", "ok", "readable by the owner only")


def _lock(layout: Layout) -> DoctorCheck:
    try:
        status = Path(layout.lock).stat(follow_symlinks=False)
        pid = _pid_in(layout.lock)
    except FileNotFoundError:
        return found("lock", "ok", "free: no process has the store open")
    except OSError as error:
        return found("lock", "problem", str(error), f"make {layout.lock} readable, or run as its owner")
    held = _is_locked(status)
    if held is None:
        held = pid is not None and Path(f"/proc/{pid}").exists()
        return found(
            "lock", "note", f"maybe held by process {pid}" if held else "not known", "see whether a server runs"
        )
    if not held:
        return found("lock", "ok", "free: no process has the store open")
    advice = (
        "nothing: list, show, tree, replay, diff, tail, export and stats read it; verify and repair need it stopped"
    )
    return found("lock", "ok", f"held by process {pid or '?'}, which has the store open", advice)


def _pid_in(path: str) -> int | None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        text = os.pread(descriptor, _PID_BYTES, 0).strip()
    finally:
        os.close(descriptor)
    return int(text) if text.isdigit() else None


def _is_locked(status: os.stat_result, locks: str = "/proc/locks") -> bool | None:
    """Whether the kernel's list has an flock on this file; None: it cannot be read."""
    try:
        lines = Path(locks).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return any("FLOCK" in line and device in line.split() for line in lines)
