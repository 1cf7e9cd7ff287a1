"""The bridge to OpenTelemetry: spans with the caller's as parent, metrics without ids, content only when asked for."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.trace import SpanKind, StatusCode

from session_actor import (
    Frame,
    HeadMoved,
    InvalidArgument,
    MemoryStore,
    SessionService,
    Text,
    ToolCall,
    Turn,
    Usage,
    telemetry,
)
from session_actor.commands import AddResponse, AddUser
from session_actor.otel import conventions, instrument
from session_actor.supervisors import resume, suspend

USAGE = Usage(input_tokens=120, output_tokens=30, cache_read_tokens=100, cache_write_tokens=5)
REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5-2026",
    "content": [{"type": "text", "text": "The water stands at 2.31 m."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 20, "output_tokens": 30, "cache_read_input_tokens": 100},
}


class Watched:
    """Providers whose spans and metrics stay in memory."""

    def __init__(self, **options) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider(metric_readers=[self.reader])
        self.tracer = self.provider.get_tracer("caller")
        self.detach = instrument(self.provider, self.meters, **options)

    def spans(self, name: str) -> list:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def points(self, name: str) -> list:
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name or not name
            for point in metric.data.data_points
        ]

    def close(self) -> None:
        self.detach()
        self.provider.shutdown()
        self.meters.shutdown()


@pytest.fixture
def watched():
    made = Watched()
    yield made
    made.close()


@pytest.fixture
def told_all():
    made = Watched(content=True)
    yield made
    made.close()


@pytest.fixture
async def session():
    async with SessionService.open(MemoryStore()) as service:
        yield await service.session("user-42", create=True)


async def chat(session, dialect="anthropic"):
    """One request and its reply."""
    await session.configure(system="You read gauges.", model="claude-sonnet-5")
    await session.add_user("How high is it?")
    request = await session.build_request(dialect)
    if dialect == "anthropic":
        return await session.add_response(REPLY, request=request)
    turn = Turn("assistant", (Text("The water stands at 2.31 m."),), stop_reason="end_turn", dialect=dialect)
    return await session.send(AddResponse(reply=turn, request=request.seq))


async def test_a_span_of_the_caller_is_the_parent_of_an_operation_that_runs_at_once(watched, session):
    with watched.tracer.start_as_current_span("handle request") as caller:
        await session.add_user("hello")
    (span,) = watched.spans("session_actor.add_user")
    assert span.parent.span_id == caller.get_span_context().span_id
    assert span.context.trace_id == caller.get_span_context().trace_id
    assert span.attributes["gen_ai.conversation.id"] == "user-42"
    assert span.attributes["session_actor.frame"] == 1


async def test_a_span_of_the_caller_is_the_parent_of_an_operation_that_waited_in_the_queue(watched, session):
    await suspend(session.ref)
    callers, waiting = [], []
    for number in range(3):
        with watched.tracer.start_as_current_span(f"caller {number}") as caller:
            callers.append(caller.get_span_context().span_id)
            waiting.append(asyncio.ensure_future(session.add_user(str(number))))
            await asyncio.sleep(0)
    with watched.tracer.start_as_current_span("casting") as caller:
        callers.append(caller.get_span_context().span_id)
        session.ref.cast(AddUser("cast"))
    assert watched.spans("session_actor.add_user") == []
    await resume(session.ref)
    await asyncio.gather(*waiting)
    await session.flush("async")
    assert [span.parent.span_id for span in watched.spans("session_actor.add_user")] == callers


async def test_the_trace_goes_on_in_an_operation_that_brings_the_session_back(watched):
    store = MemoryStore()
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        await service._lifetime.population.rest("user-42")
        assert session._cell.state is None
        with watched.tracer.start_as_current_span("handle request") as caller:
            await session.add_user("hello")
        trace_id = caller.get_span_context().trace_id
    (span,) = watched.spans("session_actor.add_user")
    assert span.context.trace_id == trace_id
    assert trace_id in {each.context.trace_id for each in watched.spans("session_actor.session.activation")}


async def test_the_span_of_a_recovery_is_a_child_of_that_of_its_activation(watched, tmp_path):
    for _ in range(2):
        async with SessionService.open(tmp_path / "store") as service:
            with watched.tracer.start_as_current_span("handle request") as caller:
                session = await service.session("user-42", create=True)
                await session.add_user("hello")
    (recovery,) = watched.spans("session_actor.session.recovery")[-1:]
    (activation,) = watched.spans("session_actor.session.activation")[-1:]
    assert recovery.parent.span_id == activation.context.span_id
    assert activation.parent.span_id == caller.get_span_context().span_id
    assert activation.start_time <= recovery.start_time <= recovery.end_time <= activation.end_time


async def test_an_operation_has_the_times_at_which_it_began_and_was_through(watched, session):
    before = time.time_ns()
    await session.add_user("hello")
    (span,) = watched.spans("session_actor.add_user")
    (point,) = watched.points("session_actor.operation.duration")
    assert before - 1_000_000 <= span.start_time < span.end_time <= time.time_ns()
    assert (span.end_time - span.start_time) / 1e9 == pytest.approx(point.sum)


async def test_of_what_is_not_sampled_there_is_no_span_and_all_is_counted(session):
    unsampled = TracerProvider(sampler=sampling.ALWAYS_OFF)
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    unsampled.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider(metric_readers=[reader])
    detach = instrument(unsampled, meters, content=True)
    await session.add_user("hello")
    with pytest.raises(HeadMoved):
        await session.add_user("hello", expect_head=7)
    detach()
    assert exporter.get_finished_spans() == ()
    assert "session_actor.operation.duration" in reader.get_metrics_data().to_json()
    meters.shutdown()


async def test_an_operation_at_a_level_takes_until_its_reply_leaves(watched, tmp_path):
    async with SessionService.open(tmp_path / "store") as service:
        session = await service.session("user-42", create=True)
        with watched.tracer.start_as_current_span("handle request") as caller:
            await session.add_user("hello", durability="synced")
    (span,) = watched.spans("session_actor.add_user")
    assert span.parent.span_id == caller.get_span_context().span_id
    assert span.attributes["session_actor.durability"] == "synced"
    assert {point.attributes["session_actor.level"] for point in watched.points("session_actor.store.lag")} >= {
        "written"
    }


async def test_a_refused_operation_is_a_span_with_the_type_of_its_error(watched, session):
    with pytest.raises(HeadMoved):
        await session.add_user("hello", expect_head=7)
    (span,) = watched.spans("session_actor.add_user")
    assert span.status.status_code == StatusCode.ERROR
    assert span.status.description is None
    assert (span.attributes["error.type"], span.attributes["session_actor.refused"]) == ("HeadMoved", True)
    assert span.events == ()


async def test_a_request_and_its_reply_are_a_span_of_the_conventions(watched, session):
    with watched.tracer.start_as_current_span("handle request") as caller:
        await chat(session)
    (span,) = watched.spans("chat claude-sonnet-5")
    assert span.kind == SpanKind.CLIENT
    assert span.parent.span_id == caller.get_span_context().span_id
    attributes = dict(span.attributes)
    assert attributes.pop("gen_ai.request.max_tokens") > 0
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-5",
        "gen_ai.conversation.id": "user-42",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 30,
        "gen_ai.usage.cache_read.input_tokens": 100,
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "gen_ai.response.model": "claude-sonnet-5-2026",
        "gen_ai.response.finish_reasons": ("end_turn",),
    }


async def test_tokens_and_durations_are_metrics_of_the_conventions(watched, session):
    await chat(session)
    usage = {point.attributes["gen_ai.token.type"]: point for point in watched.points("gen_ai.client.token.usage")}
    assert {kind: (point.count, point.sum) for kind, point in usage.items()} == {"input": (1, 120), "output": (1, 30)}
    assert usage["input"].explicit_bounds[:3] == (1.0, 4.0, 16.0)
    (duration,) = watched.points("gen_ai.client.operation.duration")
    assert duration.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-5",
    }


async def test_what_is_added_without_a_request_counts_its_tokens_too(watched, session):
    await session.add_assistant("hello", usage=USAGE, model="gpt-6", dialect="openai_chat")
    points = watched.points("gen_ai.client.token.usage")
    assert sorted(point.sum for point in points) == [30, 120]
    assert {point.attributes["gen_ai.provider.name"] for point in points} == {"openai"}


async def test_a_request_that_failed_ends_its_span_with_an_error(watched, session):
    await session.configure(model="claude-sonnet-5")
    await session.add_user("hello")
    request = await session.build_request("anthropic")
    await session.request_failed(request, "prompt is too long: 210000 tokens > 200000 maximum")
    (span,) = watched.spans("chat claude-sonnet-5")
    assert (span.status.status_code, span.attributes["error.type"]) == (StatusCode.ERROR, "refused")


async def test_the_id_of_a_session_is_in_no_metric(watched, session):
    await chat(session)
    await session.checkpoint("here")
    assert watched.points("")
    assert "user-42" not in str([dict(point.attributes) for point in watched.points("")])


async def test_what_is_said_is_in_no_span_unless_it_was_asked_for(watched, session):
    await chat(session)
    assert "water" not in str([span.to_json() for span in watched.exporter.get_finished_spans()])
    assert "How high" not in str([span.to_json() for span in watched.exporter.get_finished_spans()])


@pytest.mark.parametrize("dialect", ["anthropic", "openai_chat", "openai_responses", "gemini"])
async def test_what_is_said_is_told_in_the_shape_of_the_conventions_when_asked_for(told_all, session, dialect):
    await session.add_assistant("", tool_calls=[ToolCall("c1", "gauge", '{"at":"Mole"}')])
    await session.add_tool_result("c1", "2.31 m")
    await chat(session, dialect)
    (span,) = told_all.spans("chat claude-sonnet-5")
    assert json.loads(span.attributes["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "The water stands at 2.31 m."}],
            "finish_reason": "end_turn",
        }
    ]
    given = json.loads(span.attributes["gen_ai.input.messages"])
    kinds = {part["type"] for message in given for part in message["parts"]}
    assert kinds >= {"text", "tool_call", "tool_call_response"}
    assert "How high is it?" in str(given)
    if dialect != "openai_chat":  # there it is a message
        assert "You read gauges." in span.attributes["gen_ai.system_instructions"]
    (added,) = told_all.spans("session_actor.add_tool_result")
    assert "2.31 m" in added.attributes["gen_ai.input.messages"]


async def test_content_is_given_to_handlers_that_asked_and_to_no_others(session):
    told = {True: [], False: []}
    detach = [
        telemetry.attach(("session_actor", "operation"), lambda *event, to=to: to.append(event), content=wants)
        for wants, to in told.items()
    ]
    await session.add_user("hello")
    for each in detach:
        each()
    assert [type(metadata.get("content")) for *_, metadata in told[True]] == [type(None), Frame]
    assert [metadata.get("content") for *_, metadata in told[False]] == [None, None]


async def test_events_are_counted_and_noted_at_the_span_in_which_they_happen(watched):
    async with SessionService.open(MemoryStore()) as service:
        with watched.tracer.start_as_current_span("handle request"):
            session = await service.session("user-42", create=True)
            await session.add_user("hello")
            await service.end("user-42")
    (caller,) = watched.spans("handle request")
    assert "session_actor.session.ended" in [event.name for event in caller.events]
    counted = {point.attributes["session_actor.event"] for point in watched.points("session_actor.events")}
    assert counted >= {"session_actor.session.created", "session_actor.session.ended"}


async def test_after_detaching_nothing_is_told_and_a_change_looks_at_nothing(watched, session):
    watched.detach()
    watched.exporter.clear()
    await session.add_user("hello")
    assert watched.exporter.get_finished_spans() == ()
    assert telemetry.heard is False


def test_content_must_be_said_plainly():
    with pytest.raises(InvalidArgument):
        instrument(content="yes")


def test_the_names_are_those_of_the_conventions():
    known = {
        value for module in (gen_ai_attributes, gen_ai_metrics) for value in vars(module).values() if type(value) is str
    }
    used = {value for value in vars(conventions).values() if type(value) is str and value.startswith("gen_ai.")}
    assert len(used) > 15
    assert used - known == set()


def test_no_other_file_of_the_bridge_writes_such_a_name():
    folder = Path(conventions.__file__).parent
    texts = {path.name: path.read_text() for path in folder.glob("*.py") if path.name != "conventions.py"}
    assert [name for name, text in texts.items() if '"gen_ai.' in text] == []
