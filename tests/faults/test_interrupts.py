"""Two interrupts, the second one while the first closes the service: it strikes anywhere in the main thread."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time

import pytest

from session_actor import SessionService

from .test_kills import counted, start

STRUCK_LIVES = 48

LOAD = """
import asyncio, sys
from session_actor import SessionService

async def talk(session):
    number = 0
    while True:
        await session.push(str(number), "")
        number += 1
        await asyncio.sleep(0)

async def main():
    async with SessionService.open(sys.argv[1]) as service:
        sessions = [await service.session(str(number), create=True) for number in range(20)]
        print("ready", flush=True)
        await asyncio.gather(*map(talk, sessions))

asyncio.run(main())
"""


def interrupt(root: str, chance: random.Random) -> None:
    """Load a store in a process of its own, and interrupt that twice."""
    command = [sys.executable, "-c", LOAD, root]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.03 + chance.random() * 0.05)
        process.send_signal(signal.SIGINT)
        time.sleep(chance.random() * 0.006)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:  # the second one struck where Python itself cannot end any more
            process.kill()


@pytest.mark.parametrize("run", range(3))
async def test_a_second_interrupt_under_load_leaves_a_store_without_a_gap(tmp_path, run):
    root = str(tmp_path / "store")
    await asyncio.to_thread(interrupt, root, random.Random(run))
    async with SessionService.open(root) as service:
        for number in range(20):
            stack = await (await (await service.session(str(number))).stack()).load()
            assert [frame.user_input for frame in stack] == [str(index) for index in range(len(stack))]


def test_wherever_the_second_one_strikes_the_process_ends_and_nothing_acknowledged_is_lost(tmp_path, faults):
    lives = faults.count(STRUCK_LIVES)
    found = counted(start("struck_closing.py", tmp_path / "store", lives, faults.seed))
    assert found["ended"] == lives
