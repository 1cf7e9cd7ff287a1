"""pykka's threaded actor, when it is installed: ask and wait for the reply, and tell."""

from __future__ import annotations

import importlib
from statistics import fmean, median
from time import perf_counter_ns
from typing import Any

from bench.harness import Plan, Sample, percentile

PEER = "pykka"


def calls(plan: Plan) -> dict[tuple[str, str, str], Sample]:
    """Measure one round of ask and of tell; nothing when pykka is not installed."""
    try:
        pykka: Any = importlib.import_module("pykka")
    except ModuleNotFoundError:
        return {}

    class Echoer(pykka.ThreadingActor):  # type: ignore[misc]  # the base is known at run time only
        def on_receive(self, message: object) -> object:
            return message

    actor: Any = Echoer.start()
    try:
        return {(PEER, "echo", "ask"): asks(actor, plan), (PEER, "cast", "tell"): tells(actor, plan)}
    finally:
        actor.stop()


def asks(actor: Any, plan: Plan) -> Sample:
    """Measure ask, waiting for each reply."""
    means: list[float] = []
    each: list[float] = []
    for _ in range(plan.batches):
        begin = perf_counter_ns()
        for _ in range(plan.batch):
            actor.ask("echo")
        means.append((perf_counter_ns() - begin) / plan.batch)
    for _ in range(plan.singles):
        begin = perf_counter_ns()
        actor.ask("echo")
        each.append(perf_counter_ns() - begin)
    return summed(means, each, plan)


def tells(actor: Any, plan: Plan) -> Sample:
    """Measure tell, with one ask at the end of each batch."""
    means: list[float] = []
    for _ in range(plan.batches):
        begin = perf_counter_ns()
        for _ in range(plan.batch):
            actor.tell("note")
        actor.ask("echo")
        means.append((perf_counter_ns() - begin) / plan.batch)
    return summed(means, means, plan)


def summed(means: list[float], each: list[float], plan: Plan) -> Sample:
    """Return a round's figures as a sample."""
    worst = percentile(sorted(each), 99)
    return Sample(plan.batch * plan.batches, median(means) / 1e3, fmean(means) / 1e3, worst / 1e3)
