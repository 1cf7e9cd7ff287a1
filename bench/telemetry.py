"""Telemetry: what a push costs that nobody watches, that one and three handlers watch, and OpenTelemetry's SDK.

Beside the last: the least that OpenTelemetry itself takes, which is a push that nobody watches, and then by hand a span
with as many attributes and one measurement of a histogram, exporting nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from bench.floors import USER_INPUT
from bench.harness import FLOOR, OURS, Options, Report, Work, alternate, shown, side, table
from bench.targets import ratio
from session_actor import MemoryStore, SessionService, telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from session_actor import Session

NONE: Final = "none"
OTEL: Final = "OpenTelemetry"
BY_HAND: Final = "OpenTelemetry by hand"
AT_MOST: Final = {"one handler": 5.0, "three handlers": 6.0, "a live feed": 4.0, OTEL: 30.0}
"""How often the time of a push that nobody watches. OpenTelemetry by hand takes about 11 times that time."""
OVER_FLOOR: Final = 2.0
"""How often the time of the same by hand."""
ATTRIBUTES: Final[dict[str, str | int]] = {
    "gen_ai.conversation.id": "user-42",
    "session_actor.durability": "async",
    "session_actor.repeated": False,
    "session_actor.seq": 3,
    "session_actor.kind": "pushed",
    "session_actor.frame": 2,
}
"""Those of a push."""


def hear(name: tuple[str, ...], measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
    """A handler that costs nothing itself."""


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("telemetry")
    asyncio.run(measure(report, options))
    return report


async def measure(report: Report, options: Options) -> None:
    """Push, watched in every way by turns."""
    ways = {NONE: nobody, "one handler": handlers(1), "three handlers": handlers(3), "a live feed": nobody}
    opened = opentelemetry()
    if opened is None:
        report.notes.append("OpenTelemetry is not installed: it is not measured")
    async with SessionService.open(MemoryStore()) as service:
        sides = {
            name: side(pushing(await service.session(name, create=True), way, feed=name == "a live feed"), options.plan)
            for name, way in ways.items()
        }
        if opened is not None:
            attach, by_hand = opened
            sides[OTEL] = side(pushing(await service.session(OTEL, create=True), attach, feed=False), options.plan)
            sides[BY_HAND] = side(told_by_hand(await service.session(BY_HAND, create=True), by_hand), options.plan)
        for name, found in (await alternate(sides, options.plan.rounds)).items():
            report.add(FLOOR if name == BY_HAND else OURS, "push", name, 1, found)
    base = report.p50(OURS, "push", NONE, 1)
    for name, at_most in AT_MOST.items():
        ours = report.p50(OURS, "push", name, 1)
        report.judge(ratio(f"push with {name} / with none", ours, base, at_most=at_most))
    if opened is not None:
        ours, floor = report.p50(OURS, "push", OTEL, 1), report.p50(FLOOR, "push", BY_HAND, 1)
        report.judge(ratio(f"push with {OTEL} / {BY_HAND}", ours, floor, at_most=OVER_FLOOR))


def pushing(session: Session, watch: Callable[[], Callable[[], None]], *, feed: bool) -> Work:
    """Pushes to one session, which are watched from before the first to after the last."""
    watching: list[Any] = []

    async def begin(number: int) -> None:
        watching.append(watch())
        if feed:
            watching.append(session.changes(limit=number + 1))

    async def end(_number: int) -> None:
        if feed:
            await watching.pop().aclose()
        watching.pop()()

    return Work(lambda: session.push(USER_INPUT), begin, end)


def told_by_hand(session: Session, tell: Callable[[], None]) -> Work:
    """Pushes that nobody watches, each of which is told of behind it."""

    async def push() -> None:
        await session.push(USER_INPUT)
        tell()

    return Work(push)


def nobody() -> Callable[[], None]:
    """Attach nobody."""
    return lambda: None


def handlers(number: int) -> Callable[[], Callable[[], None]]:
    """Attach so many handlers."""

    def attach() -> Callable[[], None]:
        detaching = [telemetry.attach(("session_actor",), hear) for _ in range(number)]

        def detach() -> None:
            for one in detaching:
                one()

        return detach

    return attach


def opentelemetry() -> tuple[Callable[[], Callable[[], None]], Callable[[], None]] | None:
    """Attach the bridge to providers of the SDK that export nothing, or tell by hand; None: it is not installed."""
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
    except ModuleNotFoundError:
        return None
    from session_actor import otel

    traces, meters = TracerProvider(), MeterProvider(metric_readers=[InMemoryMetricReader()])
    tracer, took = traces.get_tracer("bench"), meters.get_meter("bench").create_histogram("took", "s")
    labels = {"session_actor.operation": "push"}

    def by_hand() -> None:
        tracer.start_span("session_actor.push", attributes=dict(ATTRIBUTES)).end()
        took.record(0.00001, labels)

    return (lambda: otel.instrument(traces, meters)), by_hand


def tables(report: Report) -> str:
    """Return the times as one table."""
    rows = [
        [result.variant, shown(result.p50_us), shown(result.mean_us), shown(result.p99_us)] for result in report.results
    ]
    return table("telemetry: a push, microseconds", ["watched by", "p50", "mean", "p99"], rows)
