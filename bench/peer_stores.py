"""What else keeps conversations on a disk: SQLite by itself, and other libraries' sessions when they are installed.

The libraries are the extra `bench`. Both keep their defaults: SQLite in WAL mode with a sync at every commit, which is
what the level `synced` promises.
"""

from __future__ import annotations

import importlib
import sqlite3
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence
    from pathlib import Path

SQLITE = "sqlite"
AGENTS = "openai-agents"
LANGGRAPH = "langgraph"
Synchronous = Literal["NORMAL", "FULL"]
Row = tuple[str, int, bytes]
INSERT = "INSERT INTO records VALUES (?, ?, ?)"


class Keeper(Protocol):
    """A peer's conversation of one id."""

    async def add(self, role: str, text: str) -> None:
        """Add one turn and return when it is committed."""
        ...

    async def close(self) -> None:
        """Let go of its files."""
        ...


Maker: TypeAlias = "Callable[[str], Keeper]"


def open_sqlite(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    """Open a database with one table of records: appended in order, found by session and number."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("CREATE TABLE IF NOT EXISTS records (session TEXT, seq INTEGER, data BLOB)")
    connection.execute("CREATE UNIQUE INDEX IF NOT EXISTS by_session ON records (session, seq)")
    return connection


def sqlite_seconds(path: Path, batches: Iterable[Sequence[Row]], synchronous: Synchronous, *, batched: bool) -> float:
    """Return the seconds for inserting rows, one transaction a row or one a batch, in the calling thread."""
    with closing(open_sqlite(path, synchronous)) as connection:
        begin = perf_counter()
        for batch in batches:
            if batched:
                connection.execute("BEGIN")
                connection.executemany(INSERT, batch)
                connection.execute("COMMIT")
            else:
                for row in batch:
                    connection.execute(INSERT, row)
        return perf_counter() - begin


class SqliteKeeper:
    """A conversation in a table: one transaction a turn, synced."""

    def __init__(self, path: Path, session: str) -> None:
        """Open the database."""
        self._connection = open_sqlite(path, "FULL")
        self._session = session
        self._seq = 0

    async def add(self, role: str, text: str) -> None:
        """See `Keeper`."""
        self._seq += 1
        self._connection.execute(INSERT, (self._session, self._seq, f"{role}: {text}".encode()))

    async def close(self) -> None:
        """See `Keeper`."""
        self._connection.close()


class AgentsKeeper:
    """openai-agents' SQLiteSession."""

    def __init__(self, module: Any, path: Path, session: str) -> None:
        """Open the database."""
        self._session: Any = module.SQLiteSession(session, path)

    async def add(self, role: str, text: str) -> None:
        """See `Keeper`."""
        await self._session.add_items([{"role": role, "content": text}])

    async def close(self) -> None:
        """See `Keeper`."""
        self._session.close()


class LanggraphKeeper:
    """langgraph's AsyncSqliteSaver: a checkpoint a turn, each with all messages so far, as its graphs write them."""

    def __init__(self, saver: Any, base: Any, session: str) -> None:
        """Use a saver that is open."""
        self._saver = saver
        self._base = base
        self._config: Any = {"configurable": {"thread_id": session, "checkpoint_ns": ""}}
        self._messages: list[dict[str, str]] = []

    async def add(self, role: str, text: str) -> None:
        """See `Keeper`."""
        self._messages.append({"role": role, "content": text})
        checkpoint: Any = self._base.empty_checkpoint()
        version = len(self._messages)
        checkpoint["channel_values"] = {"messages": self._messages}
        checkpoint["channel_versions"] = {"messages": version}
        metadata = {"source": "loop", "step": version, "parents": {}}
        self._config = await self._saver.aput(self._config, checkpoint, metadata, {"messages": version})

    async def close(self) -> None:
        """See `Keeper`: the saver is closed by who opened it."""


@asynccontextmanager
async def peers(directory: Path) -> AsyncIterator[dict[str, Maker]]:
    """Open the libraries that are installed, each with a file of its own; yield what makes a conversation of an id."""
    agents, saver = found("agents"), found("langgraph.checkpoint.sqlite.aio")
    async with AsyncExitStack() as stack:
        makers: dict[str, Maker] = {}
        if agents is not None:
            makers[AGENTS] = partial(AgentsKeeper, agents, directory / f"{AGENTS}.db")
        if saver is not None:
            path = str(directory / f"{LANGGRAPH}.db")
            opened = await stack.enter_async_context(saver.AsyncSqliteSaver.from_conn_string(path))
            makers[LANGGRAPH] = partial(LanggraphKeeper, opened, found("langgraph.checkpoint.base"))
        yield makers


def found(module: str) -> Any:
    """Return a module, None when it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return None


async def keeper_seconds(keepers: Sequence[Keeper], rounds: int, turns: Sequence[tuple[str, str]]) -> float:
    """Return the seconds for adding the same turns to each conversation, one after the other, so many times."""
    begin = perf_counter()
    for _ in range(rounds):
        for keeper in keepers:
            for role, text in turns:
                await keeper.add(role, text)
    return perf_counter() - begin
