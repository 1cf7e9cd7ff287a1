"""How long a compaction takes beside its model, how long it holds the event loop, and what it keeps.

Prepared and evaluated is a made conversation of 0.7 MB. What is known of single frames is found once for each of them,
ahead of time: preparing without any of it is shown by itself. Times are of the processor: none of the work waits for
anything, and on a shared machine other processes take the processor away for milliseconds.

Kept is shown for that conversation and for the real session: how many of the user's rules are in the summary that needs
no model, and how many would be in a cut to the same length.
"""

from __future__ import annotations

from statistics import median
from time import thread_time_ns
from typing import TYPE_CHECKING

from bench.compaction_sources import Talk, made, real
from bench.harness import OURS, Options, Report, Sample, percentile, shown, table
from bench.real_calls import SESSION
from bench.targets import exactly, limit
from session_actor.compaction.planning import plan_of, planning
from session_actor.compaction.source import said_in
from session_actor.tokens.estimate import estimate_tokens

if TYPE_CHECKING:
    from session_actor.compaction.plan import Plan, Wanted
    from session_actor.compaction.source import Part

SIZE_BYTES, QUICK_BYTES = 700_000, 300_000
ROUNDS = 7
TOGETHER_MS, HELD_MS = 150.0, 10.0
COLD, PREPARE, EVALUATE = "prepare, nothing known of frames", "prepare", "evaluate"
HELD = "longest step"
BEFORE, AFTER = "tokens before", "tokens after"
RULES, CUT = "rules kept", "a cut to the same length"


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("compaction")
    talk = made(options.pick(SIZE_BYTES, QUICK_BYTES))
    times(report, talk, options.pick(ROUNDS, 1))
    keeps(report, "made", talk, None)
    session = real()
    if session is None:
        report.notes.append(f"nothing kept of a real session: there is none at {SESSION} (REAL_SESSION names another)")
    else:
        keeps(report, "real session", session, None)
        keeps(report, "real session, small window", session, 32_000)
    return report


def times(report: Report, talk: Talk, rounds: int) -> None:
    """Time the parts in turns; the round in which each took least counts."""
    wanted = talk.wanted()
    taken: dict[str, list[list[int]]] = {}
    accepted = 0
    for _ in range(rounds):
        known: dict[int, Part] = {}
        plan = _timed(taken, COLD, wanted, known)
        plan = _timed(taken, PREPARE, wanted, known)
        text = plan.extractive()
        start = thread_time_ns()
        verdict = plan.evaluate(text)
        taken.setdefault(EVALUATE, []).append([thread_time_ns() - start])
        accepted += verdict.ok
    report.judge(exactly("the summary without a model is accepted", accepted, rounds, unit=""))
    size = sum(len(said.text) for frame in wanted.frames for said in said_in(frame))
    report.notes.append(f"{len(wanted.frames):,} frames, {size:,} characters")
    best = {op: min(steps, key=sum) for op, steps in taken.items()}
    for op, steps in best.items():
        _add(report, op, len(wanted.frames), [sum(steps)])
        longest = min(max(steps) for steps in taken[op])
        _add(report, f"{op}: {HELD}", len(wanted.frames), [longest])
    together = (sum(best[PREPARE]) + sum(best[EVALUATE])) / 1e6
    report.judge(limit("prepare and evaluate", together, at_most=TOGETHER_MS, unit=" ms of CPU"))
    for op in (COLD, PREPARE, EVALUATE):
        held = min(max(steps) for steps in taken[op]) / 1e6
        report.judge(limit(f"the longest step of: {op}", held, at_most=HELD_MS, unit=" ms of CPU"))


def _timed(taken: dict[str, list[list[int]]], op: str, wanted: Wanted, known: dict[int, Part]) -> Plan:
    """Make a plan, and note how long each step of it took."""
    work, steps = planning(wanted, known), list[int]()
    taken.setdefault(op, []).append(steps)
    while True:
        start = thread_time_ns()
        try:
            next(work)
        except StopIteration as done:
            steps.append(thread_time_ns() - start)
            plan: Plan | None = done.value
            break
        steps.append(thread_time_ns() - start)
    if plan is None:
        raise RuntimeError("there is nothing to gain in a conversation that is made to be compacted")
    return plan


def _add(report: Report, op: str, depth: int, spent_ns: list[int]) -> None:
    ordered = sorted(spent_ns)
    middle = median(ordered) / 1e3
    report.add(OURS, op, "made", depth, Sample(len(ordered), middle, middle, percentile(ordered, 99) / 1e3))


def keeps(report: Report, name: str, talk: Talk, window: int | None) -> None:
    """Compact without a model, and count what is kept, beside what a cut to the same length would keep."""
    wanted = talk.wanted(window=window)
    plan = plan_of(wanted)
    if plan is None:
        report.notes.append(f"{name}: there is nothing to gain")
        return
    verdict = plan.evaluate(plan.extractive())
    covered = [frame for frame in wanted.frames if frame.id <= plan.covered_frame]
    report.count(OURS, BEFORE, name, len(covered), plan.tokens_before)
    report.count(OURS, AFTER, name, len(covered), plan.tokens_after(verdict.sealed))
    said = "\n".join(said.text for frame in covered for said in said_in(frame))
    newest = newest_part(said, verdict.tokens, wanted.family)
    rules = [rule.text for rule in plan.facts.constraints]
    report.count(OURS, RULES, name, len(rules), held_in(verdict.sealed, rules))
    report.count(CUT, RULES, name, len(rules), held_in(newest, rules))
    report.judge(exactly(f"rules kept: {name}", held_in(verdict.sealed, rules), len(rules), unit=""))


def newest_part(text: str, tokens: int, family: str) -> str:
    """The end of a text that has about so many tokens."""
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if estimate_tokens(text[-middle:], family) > tokens:
            high = middle
        else:
            low = middle
    return text[-low:] if low else ""


def held_in(text: str, rules: list[str]) -> int:
    """How many of the rules are in a text, white space aside."""
    folded = " ".join(text.split())
    return sum(rule in folded for rule in rules)


def tables(report: Report) -> str:
    """Return the times, and what is kept."""
    times_rows = [[one.op, str(one.depth), shown(one.p50_us / 1e3)] for one in report.results if one.p50_us is not None]
    found = {(one.peer, one.op, one.variant): one for one in report.results}
    kept_rows = [
        [
            one.variant,
            f"{one.depth:,}",
            f"{one.n:,}",
            f"{found[OURS, AFTER, one.variant].n:,}",
            f"{found[OURS, RULES, one.variant].depth:,}",
            f"{found[OURS, RULES, one.variant].n:,}",
            f"{found[CUT, RULES, one.variant].n:,}",
        ]
        for one in report.results
        if one.op == BEFORE
    ]
    heads = ["conversation", "frames covered", BEFORE, AFTER, "rules", "kept", CUT]
    return "\n".join([
        table("compaction: times", ["what", "frames", "ms of CPU"], times_rows),
        table("compaction: what is kept without a model", heads, kept_rows),
    ])  # fmt: skip
