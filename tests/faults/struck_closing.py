"""Run as a process of its own: closes a service that is under load, and raises a second Ctrl-C at any line of that.

    python struck_closing.py FOLDER LIVES SEED

A first life is led to learn which lines are run between the first interrupt and the end. Then each life, in a forked
child, is struck at one of them: it must end by itself, and what was acknowledged must be there. Lines of asyncio's loop
and futures are left out: a callback that is lost there is lost for Python. Prints how many ended, as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import mmap
import os
import shutil
import signal
import struct
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from session_actor import SessionService

SESSIONS = 5
COUNT = struct.Struct("<I")
LATEST_S = 60.0
"""Far more than closing takes, on the slowest machine."""
OURS = ("session_actor", "anyio", "asyncio/tasks.py", "asyncio/locks.py", "asyncio/timeouts.py")
Place = tuple[str, int, int]
"""File, line, and the how-manieth time."""


class Striker:
    """Counts the lines that are run, and raises KeyboardInterrupt at one of them."""

    def __init__(self, place: Place | None) -> None:
        self.place = place
        self.seen: Counter[tuple[str, int]] = Counter()

    def begin(self) -> None:
        """From here on, in the callers of this, too."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            frame.f_trace = self.at_line
            frame = frame.f_back
        sys.settrace(self.at_line)

    def at_line(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            line = frame.f_code.co_filename, frame.f_lineno
            self.seen[line] += 1
            if self.place == (*line, self.seen[line]):
                sys.settrace(None)
                self.place = None
                raise KeyboardInterrupt
        return self.at_line


async def serve(folder: Path, striker: Striker, acknowledged: mmap.mmap) -> None:
    """Push in all sessions until the first interrupt comes."""

    async def talk(name: int) -> None:
        session = await service.session(str(name), create=True)
        for number in range(1_000_000):
            await session.push(str(number), "")
            COUNT.pack_into(acknowledged, COUNT.size * name, number + 1)
            await asyncio.sleep(0)

    def interrupt() -> None:
        main.cancel()
        striker.begin()

    main = asyncio.current_task()
    assert main is not None
    async with SessionService.open(folder, durability="written", close_timeout_s=5.0) as service:
        asyncio.get_running_loop().call_later(0.03, interrupt)
        await asyncio.gather(*map(talk, range(SESSIONS)))


def live(folder: Path, striker: Striker, acknowledged: mmap.mmap) -> None:
    """As `asyncio.run` does it."""
    with contextlib.suppress(BaseException), asyncio.Runner() as runner:  # how it ends says nothing here
        runner.run(serve(folder, striker, acknowledged))
    sys.settrace(None)


def ends(folder: Path, place: Place, acknowledged: mmap.mmap) -> bool:
    """Lead a life in a child, and wait for its end."""
    pid = os.fork()
    if pid == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        live(folder, Striker(place), acknowledged)
        os._exit(0)
    until_s = time.monotonic() + LATEST_S
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > until_s:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return False
        time.sleep(0.005)
    return True


async def check(folder: Path, acknowledged: mmap.mmap) -> None:
    """Nothing is missing of what was acknowledged, and nothing in the middle."""
    async with SessionService.open(folder) as service:
        for name in range(SESSIONS):
            (least,) = COUNT.unpack_from(acknowledged, COUNT.size * name)
            if least:
                stack = await (await (await service.session(str(name))).stack()).load()
                texts = [frame.user_input for frame in stack]
                assert texts == [str(number) for number in range(len(texts))], name
                assert len(texts) >= least, f"{len(texts)} of {least} acknowledged ones in {name}"


def main(folder: Path, lives: int, seed: str) -> None:
    chance = Random(seed)
    acknowledged = mmap.mmap(-1, COUNT.size * SESSIONS)
    learning = Striker(None)
    live(folder, learning, acknowledged)
    gc.collect()
    gc.freeze()  # no child need copy all that is there, only because its garbage is looked for there
    lines = sorted((*line, count) for line, count in learning.seen.items() if any(part in line[0] for part in OURS))
    for _ in range(lives):
        shutil.rmtree(folder)
        acknowledged[:] = bytes(len(acknowledged))
        file, line, count = chance.choice(lines)
        place = file, line, chance.randint(1, count)
        assert ends(folder, place, acknowledged), f"it hangs after an interrupt at {place}"
        try:
            asyncio.run(check(folder, acknowledged))
        except BaseException as error:
            error.add_note(f"after an interrupt at {place}")
            raise
    print(json.dumps({"ended": lives, "lines": len(lines)}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
