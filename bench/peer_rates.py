"""Records per second of SQLite and of other libraries' sessions, for the bench `journal`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.floors import ASSISTANT_OUTPUT, USER_INPUT
from bench.harness import FLOOR
from bench.peer_stores import SQLITE, keeper_seconds, peers, sqlite_seconds

if TYPE_CHECKING:
    from bench.harness import Options
    from bench.peer_stores import Row, Synchronous

# SQLite's setting that keeps what a level keeps; nothing that it offers returns before the system has the row.
SYNCHRONOUS: dict[str, Synchronous] = {"written": "NORMAL", "synced": "FULL"}
TURNS = (("user", USER_INPUT), ("assistant", ASSISTANT_OUTPUT))
# Each conversation of openai-agents has a connection of its own.
PEER_SESSIONS = 100


class Spent(NamedTuple):
    """Seconds a record, and of how many records."""

    per_record_s: float
    records: int


Found = dict[tuple[str, str], Spent]


def sqlite_rates(sessions: int, batches: int, level: str, data: bytes, options: Options) -> Found:
    """Measure SQLite at the setting that is like a level: a transaction a row, and a transaction a batch."""
    if level not in SYNCHRONOUS:
        return {}
    setting = SYNCHRONOUS[level]
    rows = [[(f"session-{number}", seq, data) for number in range(sessions)] for seq in range(1, batches + 1)]
    most = options.pick(1_000 if level == "synced" else 5_000, 20)
    some: list[list[Row]] = [[row] for batch in rows for row in batch][:most]
    with tempfile.TemporaryDirectory(prefix="bench-sqlite-", dir=options.directory) as folder:
        directory = Path(folder)
        lone = sqlite_seconds(directory / "rows.db", some, setting, batched=False)
        together = sqlite_seconds(directory / "batches.db", rows, setting, batched=True)
    return {
        (SQLITE, f"a transaction a row at {level}"): Spent(lone / len(some), len(some)),
        (FLOOR, f"sqlite, a transaction a batch at {level}"): Spent(
            together / (sessions * batches), sessions * batches
        ),
    }


async def peer_rates(sessions: int, options: Options) -> Found:
    """Measure the libraries that are installed: a question and an answer in each conversation, one after the other."""
    if sessions > PEER_SESSIONS:
        return {}
    found: Found = {}
    rounds = max(2, options.pick(200, 20) // sessions)
    with tempfile.TemporaryDirectory(prefix="bench-peers-", dir=options.directory) as directory:
        async with peers(Path(directory)) as makers:
            for peer, make in makers.items():
                keepers = [make(f"session-{number}") for number in range(sessions)]
                seconds = await keeper_seconds(keepers, rounds, TURNS)
                for keeper in keepers:
                    await keeper.close()
                found[peer, "a question and an answer at synced"] = Spent(
                    seconds / (rounds * sessions), rounds * sessions
                )
    return found
