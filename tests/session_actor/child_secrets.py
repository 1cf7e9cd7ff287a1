"""Run as a process of its own: everything that can go wrong with a text that must not be told.

The last line on its standard output is JSON: what was logged, where the text was told, whether logging was configured.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Iterator

import structlog
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.pretty import pretty_repr
from structlog.testing import capture_logs

from session_actor import (
    Hook,
    MemoryStore,
    ModelProfile,
    Session,
    SessionService,
    Text,
    Thinking,
    Tool,
    ToolCall,
    otel,
    telemetry,
)
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
        parts += [str(link), repr(link), repr(link.args), repr(vars(link)), str(getattr(link, "__notes__", ""))]
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return "\n".join(parts)


async def outcome(call: Awaitable[object]) -> tuple[str, str]:
    """What a call returns or raises: its type, and all that is said, also to rich."""
    try:
        value = await call
    except Exception as error:  # noqa: BLE001 - every one is looked at
        return type(error).__name__, said_by(error)
    return type(value).__name__, shown(value)


def shown(value: object) -> str:
    """What is seen of a value, by `repr` and by what structlog prints tracebacks with."""
    return f"{value!r} {value} {pretty_repr(value)} {pretty_repr([value])}"


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


async def summarize(prompt: str, **_: object) -> str:
    """Fails first, and then writes what no gate takes."""
    if "fail" not in told:
        told.append("fail")
        raise ValueError(SECRET)
    return SECRET


told: list[str] = []


async def hook(ctx: object) -> None:
    """Raises what it should keep to itself."""
    raise ValueError(SECRET)


def refuse(_version: int, value: object) -> object:
    """A step of a handover that quotes what it was given."""
    raise ValueError(f"{value!r} {SECRET}")


def fail(*_: object) -> None:
    """A handler of events that quotes."""
    raise ValueError(SECRET)


def around(session: Session, service: SessionService) -> Iterator[Awaitable[object]]:
    """Text in every place where it can be, and what fails with it."""
    model = "small"
    tool = Tool("search", SECRET, {"type": "object", "description": SECRET})
    yield session.configure(system=SECRET, tools=[tool], model=model)
    yield session.instructions()
    yield session.push(SECRET, SECRET, assumptions=[SECRET], decisions=[SECRET], key="k")
    yield session.add_reference(SECRET, source=SECRET)
    yield session.note_artifact("report.md")
    yield session.artifacts()
    yield session.hold_call("c9", SECRET)
    yield session.add_assistant(SECRET, tool_calls=[ToolCall("c9", "t", json.dumps({"q": SECRET}))])
    yield session.hold_call("c9", SECRET)
    yield session.add_tool_result("c9", [Thinking(SECRET)])
    yield session.add_tool_result("c9", [Text(SECRET)])
    yield session.build_request("anthropic", ephemeral=SECRET, extra={"metadata": {"user_id": SECRET}})
    yield session.build_request("openai_chat", ephemeral=SECRET * 20_000)
    yield session.add_response(
        {"role": "assistant", "content": [{"type": SECRET, "text": SECRET}]}, dialect="anthropic"
    )
    yield session.add_response({SECRET: SECRET})
    yield session.request_failed(1, SECRET)
    yield session.retract(SECRET)
    yield session.retract(SECRET * 2, SECRET)
    yield session.contaminated()
    for number in range(30):
        yield session.push(f"{number} {SECRET} " * 200, SECRET)
    yield session.build_request("anthropic")
    for number in range(30):
        yield session.push(f"{number} {SECRET} " * 200, SECRET)
    yield compacting(session, SECRET)
    yield compacting(session, None)
    yield session.branches()
    yield session.usage()
    yield session.budget()
    yield session.swap(pause_s=0.01)
    yield session.prune()
    yield session.add_user(SECRET, durability="synced")
    yield next_change(session)
    yield handing_over(service)


async def compacting(session: Session, text: str | None) -> object:
    """Commit a summary that is refused, and one that is not; give back all that is seen of it."""
    plan = await session.prepare_compaction(SECRET)
    if plan is None:
        return None
    seen = [plan, plan.facts, plan.evaluate(SECRET)]
    return [*seen, await session.commit_compaction(plan, plan.extractive() if text is None else text)]


async def next_change(session: Session) -> object:
    async with session.changes(0) as changes:
        return [changes, *[await anext(changes) for _ in range(40)]]


async def handing_over(service: SessionService) -> object:
    async with SessionService.take(await service.handover(), code_change=refuse) as heir:
        return heir


async def everywhere(folder: str) -> list[tuple[str, str]]:
    """What all of that said."""
    small = ModelProfile(name="small", window=16_000, max_output=2_000, family="o200k")
    hooks = [Hook(phase, hook, phase) for phase in ("created", "activated", "passivated", "after_compaction", "ended")]
    hooks.append(Hook("must", hook, "ended", mandatory=True))
    service = SessionService.open(folder, models={"small": small}, hooks=hooks, summarizer=summarize)
    async with service:
        session = await service.session("user-42", create=True, metadata={"about": SECRET})
        telemetry.attach((), fail)
        said = [await outcome(call) for call in around(session, service)]
        said.append(await outcome(service.fork("user-42", "other", metadata=SECRET)))
        said.append(await outcome(service.end("user-42")))
        await asyncio.sleep(0.05)
        said.append(("reprs", f"{service.hooks.pending()!r} {service.hooks.dead_letters()!r} {service.health()!r}"))
        said.append(await outcome(session.add_user(SECRET)))
    return said


class Watching:
    """All events, spans and metrics of a run."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        traces = TracerProvider()
        traces.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.detach = [
            telemetry.attach((), lambda *event: self.events.append(repr(event))),
            otel.instrument(traces, MeterProvider(metric_readers=[self.reader])),
        ]

    def all(self) -> tuple[list[str], list[str], str]:
        for detach in self.detach:
            detach()
        spans = [span.to_json() for span in self.exporter.get_finished_spans()]
        return self.events, spans, self.reader.get_metrics_data().to_json()


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
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(everything())  # structlog as it is: it prints
        asyncio.run(everywhere(f"{folder}/1"))
        configured = structlog.is_configured()
        watching = Watching()
        with capture_logs() as logs:
            said = asyncio.run(everything()) + asyncio.run(everywhere(f"{folder}/2"))
    watched, spans, metrics = watching.all()
    told = [where for where, text in said if SECRET in text]
    told += [entry["event"] for entry in logs if SECRET in repr(entry)]
    told += [line.replace(SECRET, "…") for line in plain.lines if SECRET in line]
    told += [f"event {event}".replace(SECRET, "…") for event in watched if SECRET in event]
    told += [f"span {span}".replace(SECRET, "…") for span in spans if SECRET in span]
    told += ["metrics"] if SECRET in metrics else []
    told += [f"{entry['event']} with a traceback" for entry in logs if entry.get("exc_info") or "exception" in entry]
    events = sorted({entry["event"] for entry in logs})
    counts = {"watched": len(watched), "spans": len(spans), "metrics": len(metrics)}
    found = {
        "counts": counts,
        "events": events,
        "told": told,
        "configured": configured,
        "said": [where for where, _ in said],
    }
    sys.stdout.write(json.dumps(found) + "\n")


main()
