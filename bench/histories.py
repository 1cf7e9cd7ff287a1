"""From opening a store to the first push: long histories, many sessions, and a log that was never cut.

Every figure is of a process of its own, which has opened and closed another store before, so that what is imported at
first use does not count. The rounds take turns and the best counts.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from bench import children
from bench.floors import read_and_parse_seconds
from bench.harness import FLOOR, OURS, Options, Report
from bench.prose import some_passages
from bench.stores import Subject
from bench.targets import limit, ratio
from session_actor import SessionService
from session_actor.persistence import FileStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

FIRST_PUSH = "open to first push"
HISTORIES = (1_000, 10_000, 100_000, 1_000_000)
MANY_SESSIONS = 10_000
LOG_MB = (64, 256)
LOG_SESSIONS = (1, 1_000)
SECONDS_PER_64_MB = 0.5
TEXT_BYTES = 500
# What a record of two texts takes in the log, about.
LINE_BYTES = 1_360
FLAT = 2.0
MANY_S = 0.5
CLOSE_S = 600.0


class Opening(msgspec.Struct):
    """Seconds until the store was open, and until the first push was answered."""

    open_s: float
    pushed_s: float


class Uncut(FileStore):
    """A store whose log only grows: everything runs but the cutter."""

    def workers(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """See `FileStore`."""
        return {name: run for name, run in super().workers().items() if name != "cutter"}


async def grow(root: str, frames: int) -> None:
    """Make a store with one long history; a child's part."""
    async with SessionService.open(root, idle_timeout_s=None, close_timeout_s=CLOSE_S) as service:
        await Subject(await service.session("session-0", create=True), on_disk=True).grow(frames)


async def make_many(root: str, sessions: int, frames: int) -> None:
    """Make a store with many short histories; a child's part."""
    async with SessionService.open(root, idle_timeout_s=None, close_timeout_s=CLOSE_S) as service:
        for number in range(sessions):
            await Subject(await service.session(f"session-{number}", create=True), on_disk=False).grow(frames)
        while service.health().store.live_segments > 1:  # noqa: ASYNC110 - the cut is on its way, and has no event
            await asyncio.sleep(0.05)


async def fill_log(root: str, sessions: int, megabytes: int) -> None:
    """Fill a log that is not cut, and die by SIGKILL; a child's part."""
    texts = some_passages(100, TEXT_BYTES)
    async with SessionService.open(Uncut(root), idle_timeout_s=None) as service:
        opened = [await service.session(f"session-{number}", create=True) for number in range(sessions)]
        for number in range(megabytes * 2**20 // LINE_BYTES):
            await opened[number % sessions].push(texts[number % 100], texts[number * 7 % 100])
            if number % 5_000 == 0:
                await opened[number % sessions].flush("written")
        await opened[0].flush("synced")
        os.kill(os.getpid(), signal.SIGKILL)


async def first_push(root: str, *, leave: bool) -> Opening:
    """Open a store, push once, and close it or, to leave it behind as it is, do not; a child's part."""
    await grow(f"{root}-before", 1)
    begin = perf_counter()
    service = SessionService.open(root, close_timeout_s=CLOSE_S)
    await service.start()
    open_s = perf_counter() - begin
    session = await service.session("session-0", timeout_s=None)
    await session.push("One more question.", "One more answer.")
    found = Opening(open_s, perf_counter() - begin)
    if not leave:
        await service.close()
    return found


def measure(report: Report, directory: Path, options: Options) -> None:
    """Measure all, in stores of their own under `directory`."""
    long_histories(report, directory, options)
    many_sessions(report, directory, options)
    for megabytes in options.pick(LOG_MB, (1,)):
        for sessions in options.pick(LOG_SESSIONS, (20,)):
            uncut_log(report, directory, megabytes, sessions, options)


def long_histories(report: Report, directory: Path, options: Options) -> None:
    """Open stores with one history each, and judge whether the shortest and the longest take the same."""
    sizes = options.pick(HISTORIES, (100, 1_000))
    for frames in sizes:
        children.start("grow", directory / f"history-{frames}", frames)
    best: dict[int, float] = {}
    for _ in range(options.pick(5, 1)):
        for frames in sizes:
            spent = opened(directory / f"history-{frames}").pushed_s
            best[frames] = min(spent, best.get(frames, spent))
    for frames, spent in best.items():
        report.rate(OURS, FIRST_PUSH, "one history", frames, n=1, seconds=spent)
    grown = max(best.values()) / min(best.values())
    name = f"{FIRST_PUSH}, histories of {sizes[0]:,} to {sizes[-1]:,} frames: slowest / fastest"
    report.judge(limit(name, grown, at_most=FLAT, unit="x"))


def many_sessions(report: Report, directory: Path, options: Options) -> None:
    """Open a store of many sessions."""
    sessions = options.pick(MANY_SESSIONS, 200)
    children.start("many", directory / "many", sessions, 5)
    found = [opened(directory / "many") for _ in range(options.pick(3, 1))]
    spent = min(one.pushed_s for one in found)
    report.rate(OURS, "open", "many sessions", sessions, n=1, seconds=min(one.open_s for one in found))
    report.rate(OURS, FIRST_PUSH, "many sessions", sessions, n=1, seconds=spent)
    report.judge(limit(f"{FIRST_PUSH}, a store of {sessions:,} sessions", spent, at_most=MANY_S, unit=" s"))


def uncut_log(report: Report, directory: Path, megabytes: int, sessions: int, options: Options) -> None:
    """Open copies of a store that was killed with so much in its log, beside reading and parsing that log."""
    root = directory / f"log-{megabytes}-{sessions}"
    children.start("log", root, sessions, megabytes, killed=True)
    logs = sorted((root / "log").iterdir())
    spent: list[float] = []
    floors: list[float] = []
    lines = 0
    for _ in range(options.pick(2, 1)):
        lines, seconds = read_and_parse_seconds(logs)
        floors.append(seconds)
        copy = shutil.copytree(root, directory / "copy")
        spent.append(opened(copy, leave=True).pushed_s)
        shutil.rmtree(copy)
    size = sum(len(path.read_bytes().rstrip(b"\0")) for path in logs) / 2**20
    variant = f"{megabytes} MB of log, killed"
    report.rate(FLOOR, "read and parse", variant, sessions, n=lines, seconds=min(floors))
    report.rate(OURS, FIRST_PUSH, variant, sessions, n=1, seconds=min(spent))
    name = f"{FIRST_PUSH} after a kill, {size:.0f} MB of log of {sessions:,} sessions"
    report.judge(limit(name, min(spent), at_most=SECONDS_PER_64_MB * max(1.0, size / 64), unit=" s"))
    report.judge(ratio(f"{name} / reading and parsing", min(spent), min(floors), at_most=3.0))
    shutil.rmtree(root)


def opened(root: Path, *, leave: bool = False) -> Opening:
    """Let a child open a store and push."""
    return msgspec.json.decode(children.start("open", root, "leave" if leave else "close"), type=Opening)
