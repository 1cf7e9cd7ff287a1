"""Building requests at three lengths of a conversation, for four providers, beside copying the same request.

What is timed is `await session.build_request(…)` on an idle session in memory: for the first time, again without a
change, and after one more step (a reply with a tool call, and the tool's result). The window is so large that nothing
is left out: all turns are rendered, priced, hashed and copied. The floor makes a request of the caller's own from one
that is there already: JSON and back, by orjson.
"""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, get_args

import orjson

from bench.harness import FLOOR, OURS, Options, Plan, Report, Work, alternate, shown, side, table
from bench.prose import some_passages
from bench.targets import exactly, limit, ratio
from session_actor import MemoryStore, ModelProfile, SessionService, Tool, ToolCall
from session_actor.dialects import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor import Request, Session

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
TURNS, QUICK_TURNS = (50, 500, 5_000), (20, 60)
FIRST, AGAIN, MORE, COPY = "first build", "unchanged", "after one more step", "JSON and back"
TURNS_OF_TARGET, TARGET_MS = 500, 1.0
AS_JSON = {500: 1.0, 5_000: 1.0}
"""What a request may take at most of the time in which JSON copies it, by turns."""
MODEL = "bench"
WINDOW = ModelProfile(name=MODEL, window=100_000_000, max_output=8_000, family="o200k", dialects=DIALECTS)
TEXTS = some_passages(100, 300)
SYSTEM = " ".join(some_passages(5, 400))
TOOL = Tool("look_up", "Look something up.", {"type": "object", "properties": {"what": {"type": "string"}}})


class Talk:
    """A session that grows by steps and builds requests in one dialect."""

    def __init__(self, session: Session, dialect: Dialect) -> None:
        """Take a new session."""
        self.session = session
        self.dialect: Dialect = dialect
        self.calls = count(1)
        self.models = count(1)
        self.text = partial(next, _repeated(TEXTS))
        self.request: Request | None = None

    async def grow(self, turns: int) -> None:
        """Say so many turns: a question, then steps of a call and its result, at times an answer and a question."""
        await self.session.configure(system=SYSTEM, tools=[TOOL], model=MODEL)
        await self.session.add_user(self.text())
        said = 1
        while said < turns:
            await self.step()
            said += 2
            if said % 10 == 1:
                await self.session.add_assistant(self.text(), model=MODEL, dialect=self.dialect)
                await self.session.add_user(self.text())
                said += 2

    async def step(self, _calls: int = 1) -> None:
        """Say one more step."""
        call = ToolCall(f"call_{next(self.calls)}", TOOL.name, dumped({"what": self.text()}).decode())
        await self.session.add_assistant(self.text(), tool_calls=[call], model=MODEL, dialect=self.dialect)
        await self.session.add_tool_result(call.id, self.text())

    async def build(self) -> Request:
        """Build the next request."""
        return await self.session.build_request(self.dialect)

    async def build_first(self) -> None:
        """Build one for a model that none was built for: nothing that was made before is of use."""
        await self.session.build_request(self.dialect, model=f"{MODEL}-{next(self.models)}")

    async def take(self, _calls: int = 1) -> None:
        """Build one to copy, and have all that came last in it."""
        self.request = await self.build()

    async def copy(self) -> None:
        """Copy it."""
        orjson.loads(dumped(self.request))


def dumped(value: object) -> bytes:
    """A value as JSON; Gemini's requests hold bytes, which are sent in base64."""
    return orjson.dumps(value, default=b64encoded)


def b64encoded(data: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode()


def _repeated(texts: list[str]) -> Iterator[str]:
    """Each text again and again, never the same twice."""
    return (f"{number}. {texts[number % len(texts)]}" for number in count())


def works(talk: Talk) -> dict[str, Work]:
    """What is timed."""
    return {
        FIRST: Work(talk.build_first),
        AGAIN: Work(talk.build, talk.take),
        MORE: Work(talk.build, talk.step, talk.take),
        COPY: Work(talk.copy, talk.take),
    }


async def measure(report: Report, turns: int, options: Options) -> None:
    """Measure all dialects at one length, in turns."""
    is_long = turns > TURNS_OF_TARGET
    once = Plan(batch=1, batches=options.pick(4 if is_long else 12, 2), singles=0, rounds=options.pick(4, 1))
    some = once.of_batch(1 if is_long else 5)
    plans = {FIRST: Plan(1, 1 if is_long else 2, 0), AGAIN: some, MORE: once, COPY: some}
    async with SessionService.open(MemoryStore(), idle_timeout_s=None, models={MODEL: WINDOW}) as service:
        sides: dict[tuple[str, Dialect], Any] = {}
        for dialect in DIALECTS:
            talk = Talk(await service.session(dialect, create=True), dialect)
            await talk.grow(turns)
            await talk.take()
            sides |= {(op, dialect): side(work, plans[op]) for op, work in works(talk).items()}
            report.count(OURS, "bytes", dialect, turns, len(dumped(talk.request)))
            report.count(OURS, "levels of two requests that are one", dialect, turns, await shared_levels(talk))
        best = await alternate(sides, once.rounds)
    for (op, dialect), found in best.items():
        report.add(FLOOR if op == COPY else OURS, op, dialect, turns, found)


async def shared_levels(talk: Talk) -> int:
    """How many dicts and lists of a request are also in the next one; none should be: each is the caller's own."""
    one, other = await talk.build(), await talk.build()
    return len(levels(dict(one)) & levels(dict(other)))


def levels(value: object) -> set[int]:
    """The identities of all dicts and lists in a value."""
    found: set[int] = set()
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            found.add(id(one))
            waiting += one.values() if isinstance(one, dict) else one
    return found


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("requests")
    for turns in options.pick(TURNS, QUICK_TURNS):
        asyncio.run(measure(report, turns, options))
    for dialect in DIALECTS:
        spent_us = report.p50(OURS, MORE, dialect, TURNS_OF_TARGET)
        name = f"{dialect}: a request {MORE}, {TURNS_OF_TARGET} turns"
        report.judge(limit(name, None if spent_us is None else spent_us / 1e3, at_most=TARGET_MS, unit=" ms"))
        for turns, at_most in AS_JSON.items():
            spent_us, floor_us = report.p50(OURS, MORE, dialect, turns), report.p50(FLOOR, COPY, dialect, turns)
            name = f"{dialect}: a request {MORE} / {COPY}, {turns:,} turns"
            report.judge(ratio(name, spent_us, floor_us, at_most=at_most))
    shared = sum(one.n for one in report.results if one.op.startswith("levels"))
    report.judge(exactly("levels that two requests share", shared, 0, unit=""))
    return report


def tables(report: Report) -> str:
    """Return the times by dialect and length."""
    sizes = {(one.variant, one.depth): one.n for one in report.results if one.op == "bytes"}

    def cell(peer: str, op: str, dialect: str, turns: int) -> str:
        spent_us = report.p50(peer, op, dialect, turns)
        return shown(None if spent_us is None else spent_us / 1e3)

    rows = [
        [
            dialect,
            f"{turns:,}",
            f"{size / 1e3:,.0f}",
            *(cell(OURS, op, dialect, turns) for op in (FIRST, AGAIN, MORE)),
            cell(FLOOR, COPY, dialect, turns),
        ]
        for (dialect, turns), size in sorted(sizes.items(), key=lambda item: (item[0][1], item[0][0]))
    ]
    return table("requests: milliseconds", ["dialect", "turns", "kB", FIRST, AGAIN, MORE, COPY], rows)
