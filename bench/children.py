"""Child processes of the benches, so that a kill or a fresh memory is a real one.

`python -m bench.children kill LEVEL FRAMES ROOT`, `… build SESSIONS FRAMES ROOT EXPECTED clean|kill`,
`… ask SESSIONS EXCHANGES ROOT EXPECTED clean|kill`,
`… idle SESSIONS`, `… loaded ROOT SESSIONS`, `… press ROOT BACKLOG_BYTES`, `… grow ROOT FRAMES`,
`… many ROOT SESSIONS FRAMES`, `… log ROOT SESSIONS MEGABYTES` and `… open ROOT close|leave`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import msgspec
import structlog

from bench.stores import memory_service, pusher
from session_actor import SessionService
from session_actor.persistence import Level

ROOT = Path(__file__).parent.parent
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ChildFailed(Exception):
    """A child process ended in another way than it should; its own message is on stderr."""


def start(*arguments: object, killed: bool = False) -> str:
    """Run a child, wait for it, and return what it printed.

    Raises:
        ChildFailed: It failed, or it was to be killed and was not.

    """
    command = [sys.executable, "-m", "bench.children", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    wanted = -signal.SIGKILL if killed else 0
    if done.returncode != wanted:
        raise ChildFailed(
            f"{' '.join(command)} ended with {done.returncode} instead of {wanted}; run it by hand to see why"
        )
    return done.stdout


async def push_and_die(level: Level, frames: int, root: str) -> None:
    """Push so many frames at a level and die by SIGKILL right after the last acknowledgement."""
    async with SessionService.open(root) as service:
        session = await service.session("kill", create=True)
        await session.flush("synced")
        push = pusher(session, level)
        for _ in range(frames):
            await push()
        os.kill(os.getpid(), signal.SIGKILL)


async def build_conversations(sessions: int, frames: int, root: str, expected: str, end: str) -> None:
    """Make conversations, write down what they hold, and end the service cleanly or by SIGKILL."""
    from bench.conversations import build, encode_expected

    async with SessionService.open(root, idle_timeout_s=None) as service:
        found = [one async for one in build(service, sessions, frames)]
        keep(Path(expected), encode_expected(found))
        if end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)


async def hold_conversations(sessions: int, exchanges: int, root: str, expected: str, end: str) -> None:
    """Let agents talk, write down what each would ask next, and end the service cleanly or by SIGKILL."""
    from bench import semantics

    async with SessionService.open(root, idle_timeout_s=None, models=semantics.MODELS) as service:
        found = [one async for one in semantics.build(service, sessions, exchanges)]
        keep(Path(expected), msgspec.json.encode(found))
        if end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)


def keep(path: Path, data: bytes) -> None:
    """Write a file for the parent."""
    path.write_bytes(data)


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES


async def idle_sessions(sessions: int) -> None:
    """Start so many empty sessions over a memory store; print the bytes of each and the seconds for all."""
    async with memory_service() as service:
        kept = [await service.session(f"warm-{number}", create=True) for number in range(100)]
        gc.collect()
        before, start_s = resident_bytes(), perf_counter()
        for number in range(sessions - len(kept)):
            await service.session(f"session-{number}", create=True)
        spent = perf_counter() - start_s
        await asyncio.sleep(0)
        gc.collect()
        grown = resident_bytes() - before
        sys.stdout.write(f"{grown / (sessions - len(kept))} {spent}\n")
        sys.stdout.flush()
        os._exit(0)  # closing 100,000 sessions is not what is measured


async def loaded_sessions(root: str, sessions: int) -> None:
    """Load so many sessions that a store on disk holds, and leave them alone; print the bytes of each.

    None of their records is in memory but what loading needs: a snapshot, and the newest frame.
    """
    async with SessionService.open(root, idle_timeout_s=None) as service:
        first = sessions // 10  # what all of them share is in memory then
        for number in range(first):
            await service.session(f"session-{number}")
        gc.collect()
        before = resident_bytes()
        for number in range(first, sessions):
            await service.session(f"session-{number}")
        gc.collect()
        sys.stdout.write(f"{(resident_bytes() - before) / (sessions - first)}\n")


def tell(found: object) -> None:
    """Print what was found as JSON for the parent."""
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


def main() -> None:
    """Do what the arguments say."""
    # Standard output is for the parent.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    name, *rest = sys.argv[1:]
    if name == "kill":
        level, frames, root = rest
        asyncio.run(push_and_die(msgspec.convert(level, Level), int(frames), root))
    elif name in {"build", "ask"}:
        make = build_conversations if name == "build" else hold_conversations
        sessions, size, root, expected, end = rest
        asyncio.run(make(int(sessions), int(size), root, expected, end))
    elif name == "idle":
        asyncio.run(idle_sessions(int(rest[0])))
    elif name == "loaded":
        asyncio.run(loaded_sessions(rest[0], int(rest[1])))
    elif name == "press":
        from bench import pressure

        root, backlog_bytes = rest
        tell(asyncio.run(pressure.press(root, int(backlog_bytes))))
    else:
        main_histories(name, rest)


def main_histories(name: str, rest: list[str]) -> None:
    """Make or open a store of the bench `histories`."""
    from bench import histories

    root, *sizes = rest
    if name == "open":
        tell(asyncio.run(histories.first_push(root, leave=sizes == ["leave"])))
        sys.stdout.flush()
        os._exit(0)  # what was not closed stays as it is
    numbers = list(map(int, sizes))
    if name == "grow":
        asyncio.run(histories.grow(root, *numbers))
    elif name == "many":
        asyncio.run(histories.make_many(root, *numbers))
    else:
        asyncio.run(histories.fill_log(root, *numbers))


if __name__ == "__main__":
    main()
