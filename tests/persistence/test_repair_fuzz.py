"""Stores damaged at random: verifying tells, strict loading is never wrong, and repair mends what there is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, PersistenceError, StoreCorrupt
from session_actor.persistence.checking.verify import check
from session_actor.persistence.format.gap import GAP
from session_actor.persistence.repair.repair import repair

from .conformance_tools import opened
from .stores import SMALL, copied, fill

SESSIONS = "abc"


async def contents(root: Path) -> dict[str, object]:
    """Of each session its records by number, or the error that it is refused with."""
    found: dict[str, object] = {}
    try:
        async with opened(FileStore(root, **SMALL), working=False) as store:
            for session in SESSIONS:
                try:
                    loaded = await store.load(await store.acquire(session, create=False), snapshots=False)
                    found[session] = {record.seq: (record.kind, bytes(record.data)) for record in loaded.records}
                except PersistenceError as error:
                    found[session] = error
    except StoreCorrupt as error:
        return dict.fromkeys(SESSIONS, error)
    return found


def spoil(root: Path, chance: random.Random) -> str:
    """Do one thing to one file; returns what."""
    path = chance.choice(sorted(path for path in root.rglob("*") if path.is_file() and path.name != "LOCK"))
    data = bytearray(path.read_bytes())
    what = chance.choice(["flip", "flip", "zeros", "garbage", "cut", "remove", "double", "tail"])
    at = chance.randrange(len(data) or 1)
    match what:
        case "flip" if data:
            data[at] ^= 1 << chance.randrange(8)
        case "zeros":
            data[at : at + 100] = bytes(len(data[at : at + 100]))
        case "garbage":
            data[at : at + 100] = chance.randbytes(len(data[at : at + 100]))
        case "cut":
            del data[at:]
        case "double":
            data[at:at] = data[at : at + 300]
        case "tail":
            data += chance.randbytes(chance.randrange(1, 500))
    path.unlink() if what == "remove" else path.write_bytes(data)
    return f"{what} {path.relative_to(root)} at {at}"


@pytest.mark.parametrize("seed", range(12))
async def test_what_is_damaged_at_random_is_told_refused_and_mended(tmp_path, seed):
    chance = random.Random(seed)
    root = tmp_path / "store"
    await fill(root, SESSIONS, 24, in_log=6)
    whole = await contents(copied(root, "whole"))
    done = [spoil(root, chance) for _ in range(chance.randrange(1, 4))]
    findings = check(root)
    strict = await contents(copied(root, "strict"))
    for session, found in strict.items():
        if isinstance(found, dict):
            assert found.items() <= whole[session].items(), done
            assert list(found) == list(range(1, len(found) + 1)), done
    assert repair(root, write=True, salvage="readable").left == [], done
    assert not check(root).damaged, done
    mended = await contents(root)
    for session, found in mended.items():
        if isinstance(found, dict):
            records = {seq: record for seq, record in found.items() if record[0] != GAP}
            assert records.items() <= whole[session].items(), done
        else:
            assert findings.damaged, (done, found)
