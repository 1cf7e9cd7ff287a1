"""Every operation of a stack at seven depths and four levels, beside the BEAM and the raw floors.

What is timed is the public handle on an idle server: `await session.push(…)` and its like, written out as code writes
it, with arguments that were made before. The background writer is drained between the batches; what it costs is in the
bench `overhead`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from bench.beam import Beam, beam
from bench.figures import Figure, beam_disk_p50_us, beam_p50_us, paper_p50_us, peer_p50_us
from bench.floors import ASSISTANT_OUTPUT, ASSUMPTIONS, DECISIONS, USER_INPUT, AwaitFloor, PushFloor
from bench.harness import BEAM, FLOOR, OURS, Options, Plan, Report, Sample, Work, alternate, sample, shown, table
from bench.stores import Subject, disk_service, memory_service
from bench.targets import ratio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence

    from session_actor import Frame, Session
    from session_actor.persistence import Level

DEPTHS = (10, 50, 100, 200, 500, 100_000, 1_000_000)
QUICK_DEPTHS = (10, 500)
LEVELS = ("none", "async", "written", "synced")
READS = frozenset({"get", "stack", "stack_new", "list"})
# A read takes no longer than its floor: a few more rounds, so that both meet the CPU at its best.
READ_ROUNDS = 2
BEAM_DEPTH_MAX = 500
# Ours -> the reference's name of it. Taking and listing the stack are one thing there: it copies the whole list.
BEAM_OPS = {
    "push": "push",
    "pop1": "pop1",
    "pop10": "pop10",
    "fork": "fork",
    "fork_first": "fork_first",
    "checkpoint": "checkpoint",
    "goto": "goto",
    "goto_first": "goto_first",
    "get": "get_call",
    "stack": "get_stack",
}
FLAT_LIMIT = 1.5
Key = tuple[str, str]
Change = Callable[..., Coroutine[Any, Any, object]]


class Fresh:
    """Stacks that nobody has taken yet: one branch each at the head, since a stack taken twice may be remembered."""

    def __init__(self, subject: Subject) -> None:
        """Start without branches."""
        self._subject = subject
        self._names: list[str] = []
        self._next: Iterator[Session] = iter(())

    async def branch(self, count: int) -> None:
        """Make so many branches at the head."""
        session = self._subject.session
        self._names = [f"fresh-{self._subject.depth}-{number}" for number in range(count)]
        for name in self._names:
            await session.fork(self._subject.head, branch=name)
        await session.goto("main")
        await self._subject.drain()

    async def forget(self, count: int) -> None:
        """Change the session, so that stacks that were taken are old, and begin again with the first branch."""
        session = self._subject.session
        await session.push(user_input="more")
        await session.pop(1)
        await self._subject.drain()
        self._next = iter([session.on(name) for name in self._names[:count]])

    def stack(self) -> Awaitable[Sequence[Frame]]:
        """Take the stack of the next branch."""
        return next(self._next).stack()


def at_level(method: Change, durability: Level | None) -> Change:
    """Return a changing method at a level; None: the service's default."""
    return method if durability is None else partial(method, durability=durability)


def works(subject: Subject, fresh: Fresh, level: str) -> dict[str, Work]:
    """Return every operation on a subject at its present depth and at a level."""
    session, depth = subject.session, subject.depth
    durability: Level | None = "written" if level == "written" else "synced" if level == "synced" else None
    names, numbers = list[str](), count(1)
    push, pop, goto = (at_level(method, durability) for method in (session.push, session.pop, session.goto))
    fork, checkpoint = at_level(session.fork, durability), at_level(session.checkpoint, durability)

    async def add(frames: int) -> None:
        for _ in range(frames):
            await session.push(user_input="more")
        await subject.drain()

    async def add_ten_each(calls: int) -> None:
        await add(10 * calls)

    async def name(calls: int) -> None:
        names.extend(f"checkpoint-{level}-{depth}-{next(numbers)}" for _ in range(calls))

    async def take_back(frames: int) -> None:
        await session.pop(frames)
        await subject.drain()

    async def back_to_main(_calls: int) -> None:
        await session.goto("main")
        await subject.drain()

    async def drain(_calls: int) -> None:
        await subject.drain()

    async def listed() -> None:
        list(await fresh.stack())

    def pushed() -> Awaitable[object]:
        return push(
            user_input=USER_INPUT, assistant_output=ASSISTANT_OUTPUT, assumptions=ASSUMPTIONS, decisions=DECISIONS
        )

    near, first = subject.head - 1, subject.first
    return {
        "push": Work(pushed, after=take_back),
        "pop1": Work(lambda: pop(1), before=add, after=drain),
        "pop10": Work(lambda: pop(10), before=add_ten_each, after=drain),
        "fork": Work(lambda: fork(near, user_input="idea"), after=back_to_main),
        "fork_first": Work(lambda: fork(first, user_input="idea"), after=back_to_main),
        "checkpoint": Work(lambda: checkpoint(names.pop()), before=name, after=drain),
        "goto": Work(lambda: goto(near), after=back_to_main),
        "goto_first": Work(lambda: goto(first), after=back_to_main),
        "get": Work(partial(session.get, near)),
        "stack": Work(session.stack),
        "stack_new": Work(fresh.stack, before=fresh.forget),
        "list": Work(listed, before=fresh.forget),
    }


def plan_of(op: str, level: str, depth: int, options: Options) -> Plan:
    """Return how much of an operation to measure: less of what is slow or uses frames up."""
    plan = options.plan
    if op == "list":
        batch = max(1, min(plan.batch, 10_000 // depth))
        return Plan(batch, 3 if depth > BEAM_DEPTH_MAX else plan.batches, 0, min(plan.rounds, 2))
    if level == "synced":
        return options.pick(
            Plan(batch=5, batches=4, singles=10, rounds=2), Plan(batch=2, batches=2, singles=2, rounds=1)
        )
    return plan


def beam_turn(process: Beam, op: str, depth: int, plan: Plan, mode: str = "ets") -> Callable[[], Awaitable[Sample]]:
    """Return the reference's turn at an operation."""
    spare = plan.batch * {"pop1": 1, "pop10": 10}.get(op, 0)

    async def turn() -> Sample:
        return process.measure(BEAM_OPS.get(op, op), depth + spare, plan, mode)

    return turn


def floor_turns(op: str, plan: Plan) -> dict[Key, Callable[[], Awaitable[Sample]]]:
    """Return the raw floor of an operation where it has one."""
    if op == "push":
        floor = PushFloor()
        return {(FLOOR, "push"): partial(sample, Work(floor.push, after=floor.drain), plan)}
    if op in {"get", "stack", "stack_new"}:
        awaited = AwaitFloor()
        call = partial(awaited.get, 1) if op == "get" else awaited.take
        return {(FLOOR, "await"): partial(sample, Work(call), plan)}
    return {}


async def measure_depth(
    depth: int, subjects: list[Subject], process: Beam | None, report: Report, options: Options
) -> None:
    """Grow all subjects to a depth and let all sides take turns at every operation."""
    for subject in subjects:
        await subject.grow(depth)
    made: dict[str, dict[str, Work]] = {}
    for subject in subjects:
        fresh = Fresh(subject)
        await fresh.branch(max(options.plan.batch, options.plan.singles))
        for level in LEVELS[1:] if subject.on_disk else LEVELS[:1]:
            made[level] = works(subject, fresh, level)
    for op in next(iter(made.values())):
        plan = plan_of(op, "async", depth, options)
        sides = floor_turns(op, plan)
        for level, work in made.items():
            if op not in READS or level in {"none", "async"}:
                sides[OURS, level] = partial(sample, work[op], plan_of(op, level, depth, options))
        if process is not None and depth <= BEAM_DEPTH_MAX:
            sides.update(beam_sides(process, op, depth, plan))
        rounds = plan.rounds * (READ_ROUNDS if op in READS and op != "list" else 1)
        for (peer, variant), found in (await alternate(sides, rounds)).items():
            report.add(peer, op, variant, depth, found)


def beam_sides(process: Beam, op: str, depth: int, plan: Plan) -> dict[Key, Callable[[], Awaitable[Sample]]]:
    """Return the reference's sides of an operation; its disk task is measured once."""
    sides: dict[Key, Callable[[], Awaitable[Sample]]] = {}
    if op in BEAM_OPS:
        sides[BEAM, "ets"] = beam_turn(process, op, depth, plan)
    if op == "push" and depth == DEPTHS[0]:
        sides[BEAM, "disk"] = beam_turn(process, op, depth, plan, "disk")
    if op == "get":
        sides[BEAM, "table"] = beam_turn(process, "get_table", depth, plan)
    return sides


async def measure(options: Options) -> Report:
    """Measure everything in one run."""
    report = Report("operations")
    async with AsyncExitStack() as stack:
        process, _ = stack.enter_context(beam())
        memory = await stack.enter_async_context(memory_service())
        disk = await stack.enter_async_context(disk_service(options))
        subjects = [
            Subject(await memory.session("in-memory", create=True), on_disk=False),
            Subject(await disk.session("on-disk", create=True), on_disk=True),
        ]
        depths: tuple[int, ...] = options.pick(DEPTHS, QUICK_DEPTHS)
        for depth in depths:
            await measure_depth(depth, subjects, process, report, options)
    judge(report, depths)
    if process is None:
        report.notes.append("elixir is not installed: nothing was measured on the BEAM")
    return report


def judge(report: Report, depths: tuple[int, ...]) -> None:
    """Add the verdicts on the targets of this bench."""
    for depth in (10, 500):
        for op in BEAM_OPS:
            factor = 1.0 if op == "push" else 0.8
            ours, theirs = report.p50(OURS, op, "async", depth), report.p50(BEAM, op, "ets", depth)
            whose = "the BEAM's" if theirs else "the BEAM's figure, not of this run"
            base = theirs or value_of(beam_p50_us(published_name(op), depth))
            report.judge(ratio(f"{op} at async, depth {depth} / {whose}", ours, base, at_most=factor))
    ours = report.p50(OURS, "push", "async", 10)
    report.judge(ratio("push at async / its floor", ours, report.p50(FLOOR, "push", "push", 10), at_most=2.5))
    for op in ("get", "stack", "stack_new"):
        ours = report.p50(OURS, op, "async", 10)
        report.judge(ratio(f"{op} / an await", ours, report.p50(FLOOR, op, "await", 10), at_most=1.5))
    written, disk = report.p50(OURS, "push", "written", 10), report.p50(BEAM, "push", "disk", 10)
    whose = "the BEAM's push with its disk task" + ("" if disk else ", not of this run")
    base = disk or value_of(beam_disk_p50_us("push"))
    report.judge(ratio(f"push at written / {whose}", written, base, at_most=0.2))
    deepest = depths[-1]
    for op in (*BEAM_OPS, "stack_new"):
        deep, flat = report.p50(OURS, op, "async", deepest), report.p50(OURS, op, "async", 10)
        report.judge(ratio(f"flat: {op} at depth {deepest:,} / at 10", deep, flat, at_most=FLAT_LIMIT))


COLUMNS: tuple[Key, ...] = (
    (FLOOR, "push"),
    (FLOOR, "await"),
    *((OURS, level) for level in LEVELS),
    (BEAM, "ets"),
    (BEAM, "table"),
    (BEAM, "disk"),
)


TO_BEAT = ("BEAM to beat", "with disk", "best Python peer", "published")


def tables(report: Report) -> str:
    """Return one table: a row for each operation and depth, p50 in microseconds, beside the figure to beat."""
    rows: list[list[str]] = []
    seen = dict.fromkeys((result.op, result.depth) for result in report.results)
    for op, depth in sorted(seen, key=lambda key: (list(dict.fromkeys(op for op, _ in seen)).index(key[0]), key[1])):
        name = published_name(op)
        cells = [report.p50(peer, op, variant, depth) for peer, variant in COLUMNS]
        figures = (beam_p50_us(name, depth), beam_disk_p50_us(name), peer_p50_us(name), paper_p50_us(name, depth))
        rows.append([op, f"{depth:,}", *map(shown, cells), *(shown(value_of(figure)) for figure in figures)])
    header = ["op", "depth", *(f"{peer} {variant}" for peer, variant in COLUMNS), *TO_BEAT]
    return table("operations: p50 in us", header, rows)


def published_name(op: str) -> str:
    """Return the name under which an operation's figures to beat are kept."""
    return "get_stack" if op in {"stack", "list"} else op


def value_of(figure: Figure | None) -> float | None:
    """Return a figure's value, None when there is none."""
    return None if figure is None else figure.value


def run(options: Options) -> Report:
    """Run this bench."""
    return asyncio.run(measure(options))
