"""A process that writes is killed (SIGKILL) at random moments: what it was told is written must be there afterwards."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from session_actor.persistence import FileStore

from .conformance import opened

CHILD = """
import asyncio, sys
from session_actor.persistence import FileStore

async def main():
    store = FileStore(sys.argv[1], segment_bytes=16384, sync_interval_s=0.01)
    await store.open()
    jobs = [asyncio.ensure_future(job()) for job in store.workers().values()]
    leases = {}
    for session in "abc":
        leases[session] = await store.acquire(session, create=True)
        await store.load(leases[session])
    gone = await store.acquire("gone", create=True)
    print("ready", flush=True)
    number = 0
    while True:
        for session, lease in leases.items():
            seq = lease.appended_seq + 1
            position = store.append(lease, seq, seq, "said", b'{"n":%d,"x":"%b"}' % (seq, b"x" * (seq % 300)), 200)
            store.reach("written")
            if store.written_position < position:
                await store.flush("written", position)
            print(session, seq, flush=True)
        number += 1
        if number % 50 == 0:
            store.append(gone, 1, 1, "said", b"{}", 10)
            await store.delete(gone)
            print("deleted", gone.birth, flush=True)
            gone = await store.acquire("gone", create=True)
        await asyncio.sleep(0)

asyncio.run(main())
"""


def write_until_killed(root: Path, lines: int) -> list[str]:
    """Let a child write, and kill it when it has told about `lines` lines; returns all that it told."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(root)], stdout=subprocess.PIPE, text=True)
    told = [next(child.stdout) for _ in range(lines)]
    child.send_signal(signal.SIGKILL)
    told += child.stdout.readlines()
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    return [line.strip() for line in told if line.endswith("\n")]


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_acknowledged_as_written_is_lost_by_kill_9(tmp_path, seed):
    chance = random.Random(seed)
    acknowledged = dict.fromkeys("abc", 0)
    deleted: set[str] = set()
    for _ in range(2):
        for line in write_until_killed(tmp_path / "store", chance.randrange(1, 600)):
            match line.split():
                case ["deleted", birth]:
                    deleted.add(birth)
                case [session, seq]:
                    acknowledged[session] = int(seq)
        async with opened(FileStore(tmp_path / "store"), working=False) as store:
            infos = {info.id: info async for info in store.sessions()}
            for session, seq in acknowledged.items():
                if not seq and session not in infos:
                    continue
                loaded = await store.load(await store.acquire(session, create=False))
                assert len(loaded.records) >= seq
                assert [record.at_us for record in loaded.records] == list(range(1, len(loaded.records) + 1))
                data = [b'{"n":%d,"x":"%b"}' % (n, b"x" * (n % 300)) for n in range(1, len(loaded.records) + 1)]
                assert [bytes(record.data) for record in loaded.records] == data
            assert "gone" not in infos or infos["gone"].birth not in deleted
