"""Run as a process of its own: everything that can go wrong with a text that must not be told.

The last line on its standard output is JSON: what was logged, where the text was told, whether logging was configured.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import traceback
from collections.abc import Awaitable, Iterator

import structlog
from structlog.testing import capture_logs

from session_actor import MemoryStore, Session, SessionService, ToolCall
from session_actor.commands import Push
from session_actor.persistence import Lease, LoadedSession
from session_actor.supervisors import Call

SECRET = "1537-arbez"[::-1]  # never as it is in the source: a traceback shows lines of it


class Leaking(MemoryStore):
    """Raises, as careless code does, errors that quote what they were given, with causes that quote it, too."""

    fails_to_load = 0

    def append(self, lease: Lease, seq: int, at_us: int, kind: str, data: object, weight: int) -> int:
        if kind in {"pushed", "added"} and getattr(data, "assistant_output", "") == "crash":
            raise ValueError(f"cannot store {data!r} {SECRET}") from KeyError(SECRET)
        return super().append(lease, seq, at_us, kind, data, weight)

    async def load(self, lease: Lease, **options) -> LoadedSession:
        if self.fails_to_load:
            self.fails_to_load -= 1
            raise ValueError(f"cannot load {SECRET}")
        return await super().load(lease, **options)


class Unknown(Call[None]):
    """No session knows this message."""

    def __repr__(self) -> str:
        return SECRET


def said_by(error: BaseException) -> str:
    """All that a program which logs an error would write, and all that it carries along."""
    parts = ["".join(traceback.format_exception(error))]
    link: BaseException | None = error
    while link is not None:
        parts += [str(link), repr(link), repr(link.args), repr(vars(link))]
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return "\n".join(parts)


async def outcome(call: Awaitable[object]) -> tuple[str, str]:
    """What a call returns or raises: its type, and all that is said."""
    try:
        value = await call
    except Exception as error:  # noqa: BLE001 - every one is looked at
        return type(error).__name__, said_by(error)
    return type(value).__name__, repr(value)


def calls(session: Session, store: Leaking) -> Iterator[Awaitable[object]]:
    """One after another: refusals, a crash inline, one in the queue, a failed restart, quarantine."""
    yield session.push(SECRET, "")
    yield session.add_user(SECRET)
    yield session.stack()
    yield session.push(SECRET, "", decisions=[object()])
    yield session.push(SECRET, "", key="once")
    yield session.push(SECRET * 2, "", key="once")
    yield session.push(SECRET, "", expect_head=99)
    yield session.add_assistant(SECRET, tool_calls=[ToolCall("c1", "search", json.dumps({"q": SECRET}))])
    yield session.pending_calls()
    yield session.add_tool_result("c1", SECRET)
    yield session.add_tool_result("c1", SECRET * 2)
    yield session.add_tool_result("c2", SECRET)
    yield session.ref.call(Unknown())
    yield session.push(SECRET, "crash")
    yield session.push(SECRET, "")
    session.ref.cast(Unknown())
    session.ref.cast(Push(SECRET, "crash"))
    yield session.push(SECRET, "")
    store.fails_to_load = 1
    yield session.push(SECRET, "crash")
    yield session.push(SECRET, "")
    yield session.push(SECRET, "crash")
    yield session.push(SECRET, "")


async def everything() -> list[tuple[str, str]]:
    """What all calls said."""
    store = Leaking()
    async with SessionService.open(store, max_restarts=4) as service:
        session = await service.session("user-42", create=True, metadata={"about": SECRET})
        said = [await outcome(call) for call in calls(session, store)]
        said.append(await outcome(service.session("other", create=True, metadata={"a": [SECRET, object()]})))
        said.append(("reprs", f"{session!r} {service!r} {session.recovery!r} {service.health()!r} {session.ref!r}"))
    async with SessionService.open(store) as service:
        store.fails_to_load = 1
        said.append(await outcome(service.session("user-42")))  # the first load: there is nothing to wait for
    return said


class Everything(logging.Handler):
    """Keeps what the standard library's loggers say."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def main() -> None:
    plain = Everything()
    logging.getLogger().addHandler(plain)
    logging.getLogger().setLevel(logging.DEBUG)
    asyncio.run(everything())  # structlog as it is: it prints
    configured = structlog.is_configured()
    with capture_logs() as logs:
        said = asyncio.run(everything())
    told = [where for where, text in said if SECRET in text]
    told += [entry["event"] for entry in logs if SECRET in repr(entry)]
    told += [line.replace(SECRET, "…") for line in plain.lines if SECRET in line]
    events = sorted({entry["event"] for entry in logs})
    found = {"events": events, "told": told, "configured": configured, "said": [where for where, _ in said]}
    sys.stdout.write(json.dumps(found) + "\n")


main()
