"""Bytes on disk for each byte of conversation, after the store was closed and its log was cut.

The texts are cut from the transcript that the package brings. What counts is every file of the store; `allocated` is
what the file system gives for them, `apparent` their length. A content byte is a byte of UTF-8 that somebody said.
The peers: SQLite with a row a turn, openai-agents with an item a turn, langgraph with a checkpoint a turn.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from bench.harness import FLOOR, OURS, Options, Report, shown, table
from bench.peer_stores import AGENTS, LANGGRAPH, SqliteKeeper, peers
from bench.prose import passages
from bench.targets import limit
from session_actor import SessionService

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bench.peer_stores import Maker
    from session_actor import Session

TURNS = (200, 2_000, 10_000)
SIZES = (1_000, 4_000)
TARGET = 1.2
FLUSH_EVERY = 2_000
# langgraph writes all messages again with each: half a gigabyte is enough of it.
LANGGRAPH_BYTES = 2**29
WAYS = ("a frame a turn", "a frame an exchange")
PEER_WAYS = {FLOOR: "sqlite, a row a turn", AGENTS: "a turn at a time", LANGGRAPH: "a checkpoint a turn"}
WEIGHED = ("allocated", "apparent")
PART = "part [bytes]: "
LINES = "records"
AROUND = "around a record [bytes]"
PARTS = ("texts", "escapes", "around the texts", "headers and indexes", "snapshots", "log", "catalog and marks")


class Talk(NamedTuple):
    """What is said: turns of about `size` bytes."""

    texts: list[str]
    size: int

    @property
    def content(self) -> int:
        """Bytes in UTF-8."""
        return sum(len(text.encode()) for text in self.texts)


class Sizes(NamedTuple):
    """Bytes of the files of one store."""

    apparent: int
    allocated: int


def sizes(paths: Sequence[Path]) -> Sizes:
    """Return what files take."""
    found = [path.stat() for path in paths]
    return Sizes(sum(one.st_size for one in found), sum(one.st_blocks * 512 for one in found))


def files_of(root: Path) -> list[Path]:
    """Return all files of a store."""
    return [path for path in root.rglob("*") if path.is_file()]


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("disk")
    for size in options.pick(SIZES, SIZES[:1]):
        for turns in options.pick(TURNS, TURNS[:1]):
            talk = Talk(list(islice(passages(size), turns)), size)
            with tempfile.TemporaryDirectory(prefix="bench-disk-", dir=options.directory) as directory:
                measure(report, Path(directory), talk)
    return report


def measure(report: Report, directory: Path, talk: Talk) -> None:
    """Keep the same texts by all means and weigh the files."""
    for way, say_all in zip(WAYS, (turn_by_turn, by_exchange), strict=True):
        root = directory / way
        asyncio.run(keep(root, say_all, talk.texts))
        found = weigh(report, OURS, way, talk, files_of(root))
        parts(report, way, talk, root)
        name = f"bytes on disk a byte of content, {len(talk.texts):,} turns of {talk.size:,} B, {way}"
        report.judge(limit(name, found, at_most=TARGET, unit="x"))
    for peer in asyncio.run(keep_elsewhere(directory, talk)):
        weigh(report, peer, PEER_WAYS[peer], talk, list(directory.glob(f"{peer}.db*")))


async def keep(root: Path, talk: Callable[[Session, list[str]], Awaitable[None]], texts: list[str]) -> None:
    """Keep texts in a session of a new store, close it, and open and close it once more, as a restart does."""
    async with SessionService.open(root) as service:
        await talk(await service.session("conversation", create=True), texts)
    async with SessionService.open(root) as service:
        await service.session("conversation")


async def turn_by_turn(session: Session, texts: list[str]) -> None:
    """Add a user's turn and an assistant's turn in turns."""
    for number, text in enumerate(texts):
        await (session.add_assistant if number % 2 else session.add_user)(text)
        if number % FLUSH_EVERY == 0:
            await session.flush("written")


async def by_exchange(session: Session, texts: list[str]) -> None:
    """Push each question with its answer."""
    for number in range(0, len(texts), 2):
        await session.push(*texts[number : number + 2])
        if number % FLUSH_EVERY == 0:
            await session.flush("written")


async def keep_elsewhere(directory: Path, talk: Talk) -> list[str]:
    """Keep the texts at every peer that is there, each in files of its name; return their names."""
    async with peers(directory) as installed:
        makers: dict[str, Maker] = {FLOOR: partial(SqliteKeeper, directory / f"{FLOOR}.db"), **installed}
        if len(talk.texts) * talk.content // 2 > LANGGRAPH_BYTES:
            makers.pop(LANGGRAPH, None)
        for make in makers.values():
            keeper = make("conversation")
            for number, text in enumerate(talk.texts):
                await keeper.add("assistant" if number % 2 else "user", text)
            await keeper.close()
    return list(makers)


def weigh(report: Report, peer: str, way: str, talk: Talk, paths: list[Path]) -> float:
    """Add what files weigh and return the bytes that are allocated for each byte of content."""
    found = sizes(paths)
    variant, turns = f"{way}, {talk.size:,} B", len(talk.texts)
    report.count(peer, "content [bytes]", variant, turns, talk.content)
    report.count(peer, "apparent [bytes]", variant, turns, found.apparent)
    report.count(peer, "allocated [bytes]", variant, turns, found.allocated)
    return found.allocated / talk.content


def parts(report: Report, way: str, talk: Talk, root: Path) -> None:
    """Add where the bytes of our store are: the texts, their escapes, what stands around them, and other files."""
    text = talk.content
    escapes = sum(len(orjson.dumps(one)) - 2 for one in talk.texts) - text
    found: Counter[str] = Counter({"texts": text, "escapes": escapes, "around the texts": -text - escapes})
    for path in files_of(root):
        place = path.relative_to(root).parts[0]
        if place == "journals":
            for line in path.read_bytes().splitlines(keepends=True):
                is_record = line.startswith(b'{"seq":')
                found["around the texts" if is_record else "headers and indexes"] += len(line)
                found[LINES] += is_record
        else:
            found[place if place in {"log", "snapshots"} else "catalog and marks"] += path.stat().st_size
    for part in PARTS:
        report.count(OURS, f"{PART}{part}", f"{way}, {talk.size:,} B", len(talk.texts), found[part])
    report.count(OURS, LINES, f"{way}, {talk.size:,} B", len(talk.texts), found[LINES])


def tables(report: Report) -> str:
    """Return what each keeper takes, and where ours goes, as two tables."""
    found = {(one.peer, one.variant, one.depth, one.op): one.n for one in report.results}
    keys = dict.fromkeys((one.peer, one.variant, one.depth) for one in report.results)
    rows = [
        [
            peer,
            variant,
            f"{turns:,}",
            *(shown(found[peer, variant, turns, f"{what} [bytes]"] / content) for what in WEIGHED),
        ]
        for peer, variant, turns in keys
        if (content := found[peer, variant, turns, "content [bytes]"])
    ]
    ours = [
        [
            variant,
            f"{turns:,}",
            *(
                share(found.get((peer, variant, turns, PART + name), 0), found[peer, variant, turns, "content [bytes]"])
                for name in PARTS
            ),
            f"{found.get((peer, variant, turns, PART + PARTS[2]), 0) / found[peer, variant, turns, LINES]:.0f}",
        ]
        for peer, variant, turns in keys
        if peer == OURS
    ]
    return "\n".join(
        [
            table("disk: bytes for each byte of content", ["peer", "kept as", "turns", *WEIGHED], rows),
            table("disk: where ours goes, apparent, % of the content", ["kept as", "turns", *PARTS, AROUND], ours),
        ]
    )


def share(part: int, content: int) -> str:
    """Return a part as a percentage of the content."""
    return f"{100 * part / content:.1f}"
