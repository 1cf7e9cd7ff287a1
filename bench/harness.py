"""Timing on a CPU that changes its speed, result lines and tables.

The processor under a shared machine switches between speeds about twice apart, so that two measurements made one after
the other say little about each other. Everything here is therefore measured in rounds: all sides take turns within one
run, each round gives one median over batches of calls, and the smallest median of a side counts.
"""

from __future__ import annotations

import gc
import json
import math
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from time import perf_counter_ns
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from bench.targets import Verdict

OURS = "session-actor"
FLOOR = "floor"
BEAM = "beam"

Key = TypeVar("Key")
Setting = TypeVar("Setting")
Call = Callable[[], Awaitable[object]]
Between = Callable[[int], Awaitable[None]]


class Sample(NamedTuple):
    """One round: n calls; p50 is the median of the batches' means, p99 of single calls, all in microseconds."""

    n: int
    p50_us: float
    mean_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure: batches of calls for p50 and mean, single calls for p99, rounds to take turns in.

    A batch is shorter than the millisecond after which a background writer begins: what is measured is the call; the
    writing behind it is measured by itself.
    """

    batch: int = 50
    batches: int = 30
    singles: int = 300
    rounds: int = 4

    def of_batch(self, batch: int) -> Plan:
        """Return this plan with another size of batch, for calls that are slow or that use something up."""
        return Plan(batch, self.batches, self.singles, self.rounds)


FULL = Plan()
QUICK = Plan(batch=20, batches=3, singles=20, rounds=1)


@dataclass(frozen=True, slots=True)
class Work:
    """A call to time, with what to do, untimed, before and after n calls of it."""

    call: Call
    before: Between | None = None
    after: Between | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One line of output. A result that counts instead of timing has its count in `n` and None in the times."""

    bench: str
    peer: str
    op: str
    variant: str
    depth: int
    n: int
    p50_us: float | None = None
    mean_us: float | None = None
    p99_us: float | None = None
    ops_per_s: float | None = None

    def line(self) -> str:
        """Return the result as one line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(slots=True)
class Options:
    """What the command line asked for."""

    quick: bool = False
    json: bool = False
    directory: Path = Path()

    @property
    def plan(self) -> Plan:
        """The measuring plan of this run."""
        return QUICK if self.quick else FULL

    def pick(self, full: Setting, quick: Setting) -> Setting:
        """Return the one of two settings that belongs to this run."""
        return quick if self.quick else full


@dataclass(slots=True)
class Report:
    """What a bench found: results and the verdicts on its targets."""

    bench: str
    results: list[Result] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, peer: str, op: str, variant: str, depth: int, sample: Sample) -> Sample:
        """Add a timed result and return its sample."""
        p50, mean, p99 = (round(value, 3) for value in sample[1:])
        rate = round(1e6 / sample.mean_us, 1) if sample.mean_us > 0 else None
        self.results.append(Result(self.bench, peer, op, variant, depth, sample.n, p50, mean, p99, rate))
        return sample

    def rate(self, peer: str, op: str, variant: str, depth: int, *, n: int, seconds: float) -> float:
        """Add a result that is n things in some seconds and return things per second."""
        mean = seconds * 1e6 / n
        self.results.append(
            Result(self.bench, peer, op, variant, depth, n, None, round(mean, 3), None, round(n / seconds, 1))
        )
        return n / seconds

    def count(self, peer: str, op: str, variant: str, depth: int, n: int) -> int:
        """Add a result that is a count and return it."""
        self.results.append(Result(self.bench, peer, op, variant, depth, n))
        return n

    def judge(self, verdict: Verdict | None) -> None:
        """Add a verdict; None (the other side was not measured) is left out."""
        if verdict is not None:
            self.verdicts.append(verdict)

    def p50(self, peer: str, op: str, variant: str, depth: int) -> float | None:
        """Return the p50 of a result that was added, None when there is none."""
        for result in self.results:
            if (result.peer, result.op, result.variant, result.depth) == (peer, op, variant, depth):
                return result.p50_us
        return None


async def sample(work: Work, plan: Plan) -> Sample:
    """Time one round of a piece of work.

    The p50 and mean come from batches, so that the clock's own cost (about 0.1 us) is spread over the batch; the p99
    comes from single calls and contains it.
    """
    gc.collect()
    means = [await _timed(work, plan.batch) / plan.batch for _ in range(plan.batches)]
    singles = await _single_calls(work, plan.singles)
    each = sorted(singles) or means
    n = plan.batch * plan.batches
    return Sample(n, median(means) / 1e3, fmean(means) / 1e3, percentile(each, 99) / 1e3)


async def _timed(work: Work, count: int) -> int:
    """Return the nanoseconds that `count` calls took."""
    if work.before is not None:
        await work.before(count)
    call = work.call
    repeat = range(count)
    start = perf_counter_ns()
    for _ in repeat:
        await call()
    spent = perf_counter_ns() - start
    if work.after is not None:
        await work.after(count)
    return spent


async def _single_calls(work: Work, count: int) -> list[int]:
    """Return the nanoseconds of each of `count` calls."""
    if not count:
        return []
    if work.before is not None:
        await work.before(count)
    call = work.call
    spent: list[int] = []
    for _ in range(count):
        start = perf_counter_ns()
        await call()
        spent.append(perf_counter_ns() - start)
    if work.after is not None:
        await work.after(count)
    return spent


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile of values that are sorted already (nearest rank)."""
    rank = math.ceil(len(ordered) * percent / 100)
    return ordered[max(0, min(len(ordered), rank) - 1)]


async def alternate(sides: Mapping[Key, Callable[[], Awaitable[Sample]]], rounds: int) -> dict[Key, Sample]:
    """Let all sides take turns and return of each side the round with the smallest median."""
    best: dict[Key, Sample] = {}
    for _ in range(rounds):
        for key, side in sides.items():
            found = await side()
            if key not in best or found.p50_us < best[key].p50_us:
                best[key] = found
    return best


def side(work: Work, plan: Plan) -> Callable[[], Awaitable[Sample]]:
    """Return a piece of work as a side for `alternate`."""

    async def turn() -> Sample:
        return await sample(work, plan)

    return turn


def say(text: str = "", *, to_stderr: bool = False) -> None:
    """Print one line at once."""
    stream = sys.stderr if to_stderr else sys.stdout
    stream.write(text + "\n")
    stream.flush()


def shown(value: float | None) -> str:
    """Return a number with about three digits, or a dash."""
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.01 or value == 0 else f"{value:.4f}"


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a plain text table; the first column is left-aligned, the others right-aligned."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]

    def drawn(line: Sequence[str]) -> str:
        cells = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        return "  ".join(cells).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([title, drawn(lines[0]), rule, *(drawn(line) for line in lines[1:]), ""])
