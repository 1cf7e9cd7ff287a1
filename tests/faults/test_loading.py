"""What loading a store may run, and who may read what a store makes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from session_actor import FileStore, Session, SessionService
from session_actor.server import snapshots

LOADER = """
import asyncio, json, os, sys
from session_actor import FileStore, Session, SessionService

async def load(folder):
    async with SessionService.open(FileStore(folder, segment_bytes=4_000, journal_bytes=3_000)) as service:
        async for info in service.sessions():
            session = await service.session(info.id)
            for frame in await (await session.stack()).load():
                frame.user_input
            await session.push("goes on", "")
        await session.prune()

asyncio.run(load(sys.argv[1]))
asyncio.run(load(sys.argv[1]))
seen = []
WATCHED = ("import", "exec", "compile", "pickle.find_class", "marshal.loads", "os.system", "subprocess.Popen",
           "os.exec", "os.fork", "ctypes.dlopen", "code.__new__", "socket.connect", "urllib.Request")
sys.addaudithook(lambda event, arguments: event in WATCHED and seen.append([event, str(arguments)[:200]]))
asyncio.run(load(sys.argv[2]))
print(json.dumps(seen))
"""


async def make(folder: Path) -> None:
    """A store with records in the log, in sealed and unsealed journals and in snapshots, and a torn end."""
    for number in range(2):
        store = FileStore(folder, segment_bytes=4_000, journal_bytes=3_000)
        async with SessionService.open(store, durability="synced") as service:
            for name in ("a", "b", "__import__('os').system('true')"):
                await talk(await service.session(name, create=True, metadata={"eval": "__import__('os')"}), number)
            killed = folder.with_name(f"killed {folder.name}")
            engine = store._engine
            async with engine.cutter.lock:  # no segment goes while it is copied
                for thread in (engine.cutter._thread, engine.syncer._thread):
                    await thread.run(lambda: None)
                shutil.copytree(folder, killed)
        shutil.rmtree(folder)
        killed.rename(folder)
        newest = max((folder / "log").glob("*.ndjson"))
        newest.write_bytes(newest.read_bytes().rstrip(b"\0") + b"torn")


async def talk(session: Session, number: int) -> None:
    for _ in range(20):
        await session.push(f"{number} !!python/object/apply:os.system ['true']", "x" * 200)
    await session.checkpoint(f"point {number}")
    await session.pop(5)


async def test_nothing_is_imported_evaluated_or_unpickled_when_a_store_is_loaded(tmp_path, monkeypatch):
    """Asked of the interpreter's own audit events, after a store that is the same was loaded to warm it up."""
    monkeypatch.setattr(snapshots, "EVERY_RECORDS", 10)
    await make(tmp_path / "warm")
    await make(tmp_path / "store")
    command = [sys.executable, "-c", LOADER, tmp_path / "warm", tmp_path / "store"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: ASYNC221
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


async def test_all_that_a_store_makes_is_for_its_user_alone_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "EVERY_RECORDS", 10)
    umask = os.umask(0)
    try:
        await make(tmp_path / "store")
        async with SessionService.open(FileStore(tmp_path / "store", segment_bytes=4_000)) as service:
            session = await service.session("a")
            await session.push("more", "x" * 5000, durability="synced")
            modes = modes_below(tmp_path / "store")
    finally:
        os.umask(umask)
    names = {path.name for path in modes}
    assert {"FORMAT", "LOCK", "catalog.db", "log", "journals", "snapshots", "aside"} <= names
    assert {path.name: oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}


def modes_below(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mode & 0o7777 for path in [folder, *folder.rglob("*")]}
