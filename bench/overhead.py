"""What persistence adds to each frame: no persistence, memory table, table and disk, as the reference design has it.

Beside the latency of a push there is its whole cost: the push and the background writing of it, which the reference's
figures leave out. The share of a model turn of 1,200 ms is counted from the whole cost.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from bench.beam import Beam, beam
from bench.figures import MODEL_TURN_US, OVERHEAD_SHARE_PERCENT, PAPER_OVERHEAD_US
from bench.floors import ListFloor
from bench.harness import BEAM, FLOOR, OURS, Options, Plan, Report, Sample, Work, alternate, sample, shown, table
from bench.operations import BEAM_OPS, beam_turn
from bench.stores import Subject, disk_service, memory_service, pusher
from bench.targets import limit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

DEPTH = 100
COLUMNS = ("no persistence", "memory table", "table and disk")
MODES = dict(zip(COLUMNS, ("none", "ets", "disk"), strict=True))
OPS = ("push", "pop1", "get", "stack")


def works(subject: Subject | ListFloor) -> dict[str, Work]:
    """Return the four operations of the reference's table."""
    if isinstance(subject, ListFloor):
        return {
            "push": Work(subject.push, after=subject.pop_many),
            "pop1": Work(subject.pop, before=subject.push_many),
            "get": Work(partial(subject.get, DEPTH - 1)),
            "stack": Work(subject.stack),
        }
    session = subject.session
    push = pusher(session)

    async def pop_many(count: int) -> None:
        await session.pop(count)
        await subject.drain()

    async def push_many(count: int) -> None:
        for _ in range(count):
            await push()
        await subject.drain()

    async def drain(_count: int) -> None:
        await subject.drain()

    return {
        "push": Work(push, after=pop_many),
        "pop1": Work(partial(session.pop, 1), before=push_many, after=drain),
        "get": Work(partial(session.get, subject.head)),
        "stack": Work(session.stack),
    }


def whole_cost(subject: Subject, plan: Plan) -> Callable[[], Awaitable[Sample]]:
    """Return the side that pushes a batch and waits until the writer has written it: the cost of one frame in all."""
    push = pusher(subject.session)

    async def turn() -> Sample:
        async def batch() -> None:
            for _ in range(plan.batch):
                await push()
            await subject.drain()

        async def take_back(_count: int) -> None:
            await subject.session.pop(plan.batch)
            await subject.drain()

        one = Plan(1, plan.batches, 0, 1)
        _, p50, mean, p99 = await sample(Work(batch, after=take_back), one)
        return Sample(plan.batch * plan.batches, p50 / plan.batch, mean / plan.batch, p99 / plan.batch)

    return turn


async def measure(options: Options) -> Report:
    """Measure all columns in one run."""
    report = Report("overhead")
    async with AsyncExitStack() as stack:
        process, _ = stack.enter_context(beam())
        memory = await stack.enter_async_context(memory_service())
        disk = await stack.enter_async_context(disk_service(options))
        table_only = Subject(await memory.session("table", create=True), on_disk=False)
        with_disk = Subject(await disk.session("disk", create=True), on_disk=True)
        for subject in (table_only, with_disk):
            await subject.grow(DEPTH)
        made = {
            "no persistence": works(ListFloor(DEPTH)),
            "memory table": works(table_only),
            "table and disk": works(with_disk),
        }
        for op in OPS:
            for (peer, column), found in (
                await alternate(sides_of(op, made, process, options.plan), options.plan.rounds)
            ).items():
                report.add(peer, op, column, DEPTH, found)
        plan = options.plan
        whole = (await alternate({0: whole_cost(with_disk, plan)}, plan.rounds))[0]
        report.add(OURS, "push and write", "table and disk", DEPTH, whole)
    judge(report, whole)
    return report


def sides_of(
    op: str, made: dict[str, dict[str, Work]], process: Beam | None, plan: Plan
) -> dict[tuple[str, str], Callable[[], Awaitable[Sample]]]:
    """Return ours and the reference's sides of one operation, one per column."""
    sides: dict[tuple[str, str], Callable[[], Awaitable[Sample]]] = {
        (peer_of(column), column): partial(sample, work[op], plan) for column, work in made.items()
    }
    if process is not None and op in BEAM_OPS:
        for column, mode in MODES.items():
            if (op, mode) != ("get", "none"):  # without a table there is nothing to get from
                sides[BEAM, column] = beam_turn(process, op, DEPTH, plan, mode)
    return sides


def peer_of(column: str) -> str:
    """Return whose figures a column holds, beside the reference's: without persistence there is nothing of ours."""
    return FLOOR if column == COLUMNS[0] else OURS


def judge(report: Report, whole: Sample) -> None:
    """Add the verdict on the share of a model turn."""
    share = 100 * whole.mean_us / MODEL_TURN_US
    report.judge(
        limit("push and write, share of a 1,200 ms model turn", share, at_most=OVERHEAD_SHARE_PERCENT, unit=" %")
    )


def tables(report: Report) -> str:
    """Return the three columns of both sides, beside the published ones."""
    rows: list[list[str]] = []
    for op in (*OPS, "push and write"):
        for peer in (OURS, BEAM):
            whose = dict.fromkeys(COLUMNS, BEAM) if peer == BEAM else {column: peer_of(column) for column in COLUMNS}
            cells = [report.p50(whose[column], op, column, DEPTH) for column in COLUMNS]
            if any(cells):
                share = (cells[-1] or 0) / MODEL_TURN_US * 100
                rows.append([op, peer, *(shown(cell) for cell in cells), f"{share:.4f} %"])
        if op in PAPER_OVERHEAD_US:
            published = PAPER_OVERHEAD_US[op]
            rows.append(
                [
                    op,
                    "as published",
                    *(shown(value) for value in published),
                    f"{published[-1] / MODEL_TURN_US * 100:.4f} %",
                ]
            )
    return table(f"overhead at depth {DEPTH}: p50 in us", ["op", "peer", *COLUMNS, "of a model turn"], rows)


def run(options: Options) -> Report:
    """Run this bench."""
    return asyncio.run(measure(options))
