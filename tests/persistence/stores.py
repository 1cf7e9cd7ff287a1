"""Stores on the disk to verify, damage and repair."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from session_actor.persistence import FileStore
from session_actor.persistence.checking.findings import Findings
from session_actor.persistence.checking.verify import check

from .conformance_tools import AT_US, opened

SMALL = {"cut_at_close": 0, "segment_bytes": 20_000, "journal_bytes": 2_000}


def push(store: FileStore, lease, count: int = 1) -> None:
    """Records that add a frame each, as the session floor writes them."""
    for _ in range(count):
        seq = lease.appended_seq + 1
        data = b'{"id":%d,"user_input":"%b"}' % (seq, b"x" * (seq % 97))
        store.append(lease, seq, AT_US + seq, "pushed", data, 200)


async def fill(root: Path, sessions: str = "abc", count: int = 40, *, in_log: int = 5, cut: bool = True) -> None:
    """A store with sealed journal files, snapshots, a deleted session and records in the log.

    Made once by a process; whoever asks for the same again has a copy of it.
    """
    wanted = (sessions, count, in_log, cut)
    if wanted in filled:
        put(root, filled[wanted])
    else:
        await make(root, *wanted)
        filled[wanted] = taken(root)


filled: dict[tuple[object, ...], dict[str, bytes | None]] = {}


def taken(root: Path) -> dict[str, bytes | None]:
    """The content of each file below a folder; None for a folder."""
    paths = sorted(root.rglob("*"))
    return {str(path.relative_to(root)): None if path.is_dir() else path.read_bytes() for path in paths}


def put(root: Path, content: dict[str, bytes | None]) -> None:
    """Write again what was taken, for its user alone."""
    root.mkdir(mode=0o700, exist_ok=True)
    for name, data in content.items():
        if data is None:
            (root / name).mkdir(mode=0o700)
        else:
            (root / name).write_bytes(data)
            (root / name).chmod(0o600)


async def make(root: Path, sessions: str, count: int, in_log: int, cut: bool) -> None:
    async with opened(FileStore(root, **SMALL), working=False) as store:
        leases = [await store.acquire(session, create=True) for session in sessions]
        gone = await store.acquire("gone", create=True)
        for first in range(0, count, 20):
            for lease in leases:
                push(store, lease, min(20, count - first))
            if first == 0:
                push(store, gone)
            await store.flush("synced")
        await store.delete(gone)
        for lease in leases:
            store.save(lease, count - 10, b'{"snapshot":1}')
            await store.saved(lease, count - 10)
            store.save(lease, count - 1, b'{"snapshot":2}')
            await store.saved(lease, count - 1)
    if cut:
        await cut_all(root)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        for session in sessions if in_log else "":
            lease = await store.acquire(session, create=False)
            await store.load(lease)
            push(store, lease, in_log)
        await store.flush("synced")


async def cut_all(root: Path) -> None:
    """Move the log into the journals."""
    async with opened(FileStore(root, **SMALL), working=False) as store:
        while await store._engine.cutter.cut():
            pass


def image(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything that can be seen of a store from outside."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted([root, *root.rglob("*")]):
        stat = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[str(path.relative_to(root))] = (stat.st_mode, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, content)
    return found


def journals(root: Path, session: str = "") -> list[Path]:
    return sorted(
        (root / "journals").glob(f"*/{session}*-*.ndjson"), key=lambda path: int(path.stem.rpartition("-")[2])
    )


def segments(root: Path) -> list[Path]:
    return sorted((root / "log").glob("*.ndjson"))


def flip(path: Path, offset: int, bit: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= bit
    path.write_bytes(data)


def kinds(findings: Findings, severity: str = "damage") -> list[str]:
    return [finding.kind for finding in findings.list if finding.severity == severity]


def verified(root: Path) -> Findings:
    return check(root)


def clean(root: Path) -> bool:
    """Whether there is not even a note."""
    return not check(root).list


def copied(root: Path, name: str) -> Path:
    target = root.with_name(name)
    shutil.copytree(root, target, symlinks=True)
    return target


async def loaded(root: Path, *sessions: str, **options) -> dict[str, list[int]]:
    """The numbers of all records of sessions."""
    async with opened(FileStore(root, **SMALL, **options), working=False) as store:
        found = {}
        for session in sessions:
            lease = await store.acquire(session, create=False)
            found[session] = [record.seq for record in (await store.load(lease, snapshots=False)).records]
        return found


def stale_index(catalog: Path, change: str) -> None:
    """Change rows of the catalog's table of sealed files behind the back of its index."""
    names = "type, name, tbl_name, rootpage, sql"
    with closing(sqlite3.connect(catalog, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        index = connection.execute(f"SELECT {names} FROM sqlite_schema WHERE name = 'files_by_frame'").fetchone()
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'files_by_frame'")
    with closing(sqlite3.connect(catalog, isolation_level=None)) as connection:
        connection.execute(change)
    with closing(sqlite3.connect(catalog, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"INSERT INTO sqlite_schema ({names}) VALUES (?, ?, ?, ?, ?)", index)
