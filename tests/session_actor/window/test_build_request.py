"""Requests: complete keyword arguments, of what is at the head, and a record of each."""

from __future__ import annotations

import pytest

from session_actor import (
    ContextOverflow,
    InvalidArgument,
    KeyConflict,
    NothingToSend,
    RecordTooLarge,
    RequestForgotten,
    ToolCall,
    ValueNotStorable,
)
from session_actor.blocks import Image, Text
from session_actor.commands import (
    AddAssistant,
    AddToolResult,
    AddUser,
    BuildRequest,
    Configure,
    Fork,
    Goto,
    HoldCall,
    Pop,
)
from session_actor.frames import Tool
from session_actor.persistence import encode_record_data
from session_actor.state.decide import decide
from session_actor.window.requests_made import REQUESTS_KEPT

from .asked import MODELS, TOOLS, Asked, messages_of, output_of, same, shown

CALLED = {
    "system": "system prompt takes",
    "tools": "tools take",
    "format": "response format, or what else `extra` brings, takes",
    "ephemeral": "ephemeral part takes",
}

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00\x00\x00\x01\x00\x08\x02\x00\x00\x00"


def test_an_empty_path_has_nothing_to_send(dialect):
    live = Asked(model=None)
    live.refuses(NothingToSend, BuildRequest(dialect, "small"))
    live.do(Configure(system="Be brief.", model="small"))
    live.refuses(NothingToSend, BuildRequest(dialect))
    live.do(AddUser("Hello"))
    assert "Hello" in shown(live.ask(dialect))


def test_a_request_is_complete_and_says_what_it_is(live, dialect):
    live.do(AddUser("Hello"))
    head = live.state.head
    request = live.ask(dialect)
    assert request["model"] == request.model == "small"
    assert (request.dialect, request.head, request.generation) == (dialect, head, 0)
    assert request.seq == live.state.seq
    assert output_of(request) == request.max_output_tokens == 8_000
    assert "Be brief." in shown(request)
    assert '"ls"' in shown(request)
    assert request.pending == request.omitted == request.added == ()


def test_without_a_model_the_refusal_says_what_to_do(dialect):
    live = Asked(model=None)
    live.do(AddUser("Hello"))
    refused = live.refuses(InvalidArgument, BuildRequest(dialect))
    assert "configure(model=" in str(refused)
    assert live.ask(dialect, model="small").model == "small"


@pytest.mark.parametrize(
    "options",
    [
        {"dialect": "telnet"},
        {"dialect": "anthropic", "model": ""},
        {"dialect": "anthropic", "max_output_tokens": 0},
        {"dialect": "anthropic", "max_output_tokens": "many"},
        {"dialect": "anthropic", "extra": ["temperature"]},
        {"dialect": "anthropic", "extra": {"messages": []}},
        {"dialect": "openai_chat", "extra": {"model": "other"}},
        {"dialect": "openai_responses", "extra": {"input": "x"}},
        {"dialect": "gemini", "extra": {"contents": []}},
        {"dialect": "anthropic", "ephemeral": [ToolCall("a", "ls")]},
        {"dialect": "anthropic", "ephemeral": 5},
    ],
)
def test_what_can_never_be_right_is_refused_and_nothing_is_recorded(live, options):
    live.do(AddUser("Hello"))
    seq = live.state.seq
    live.refuses(InvalidArgument, BuildRequest(**options))
    assert live.state.seq == seq


def test_every_level_of_a_request_is_the_caller_s_own(live, dialect):
    live.do(AddUser("Hello"))
    live.do(AddAssistant("Hi", tool_calls=[ToolCall("a", "ls", '{"path": "."}')]))
    live.do(AddToolResult("a", "x.py"))
    first, untouched = live.ask(dialect), live.ask(dialect)

    def spoil(value: object) -> None:
        for inner in (
            list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
        ):
            spoil(inner)
        if isinstance(value, dict):
            value.clear()
        elif isinstance(value, list):
            value.append("spoilt")

    spoil(first)
    assert same(live.ask(dialect), untouched)


def test_asking_again_at_the_same_head_gives_the_same_request_and_a_record_each_time(live, dialect):
    live.do(AddUser("Hello"))
    first = live.ask(dialect)
    hashed = live.asked.hash
    second = live.ask(dialect)
    assert same(first, second)
    assert second.seq == first.seq + 1
    assert live.asked.hash == hashed
    assert live.ask(dialect, max_output_tokens=100).max_output_tokens == 100
    assert live.asked.hash != hashed


def test_output_is_never_asked_for_beyond_what_the_model_writes(live, dialect):
    live.do(AddUser("Hello"))
    assert output_of(live.ask(dialect, max_output_tokens=50)) == 50
    assert output_of(live.ask(dialect, max_output_tokens=1_000_000)) == 8_000


def test_extra_is_merged_last_and_counted(live):
    live.do(AddUser("Hello"))
    plain = live.ask("openai_chat")
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"description": "words " * 200}}}
    request = live.ask("openai_chat", extra={"temperature": 0.5, "response_format": schema})
    assert request["temperature"] == 0.5
    assert request["response_format"] == schema
    assert request["response_format"] is not schema
    assert request.input_tokens > plain.input_tokens + 150


@pytest.mark.parametrize("value", [Image, object(), {1: 2}])
def test_an_extra_that_cannot_be_recorded_is_refused_with_what_to_give_instead(live, dialect, value):
    live.do(AddUser("Hello"))
    refused = live.refuses(ValueNotStorable, BuildRequest(dialect, extra={"config": {"response_format": [value]}}))
    assert "config" in refused.where
    assert "response_format" in refused.where
    assert "model_json_schema()" in str(refused)


def test_what_is_lent_to_one_request_is_shown_last_counted_and_never_recorded(live, dialect):
    live.do(AddUser("Hello"))
    plain = live.ask(dialect)
    hashed = live.asked.hash
    lent = live.ask(dialect, ephemeral="the hour is late " * 50)
    assert "the hour is late" in shown(messages_of(lent)[-1])
    assert lent.input_tokens > plain.input_tokens + 100
    assert live.asked.hash == hashed
    assert all(b"the hour is late" not in data for _, data, _, _ in live.records)
    assert same(live.ask(dialect), plain)
    assert "late" in shown(live.ask(dialect, ephemeral=[Text("late"), "too"]))


def test_what_is_lent_goes_after_the_results_of_a_turn(live, dialect):
    live.do(AddUser("Hello"))
    live.do(AddAssistant("", tool_calls=[ToolCall("a", "ls")]))
    live.do(AddToolResult("a", "x.py"))
    assert "late" in shown(messages_of(live.ask(dialect, ephemeral="late"))[-1])


def test_a_key_gives_the_same_request_again_even_when_the_conversation_went_on(live, dialect):
    live.do(AddUser("Hello"))
    first = live.do(BuildRequest(dialect, ephemeral="late", key="k"))
    seq = live.state.seq
    live.do(AddUser("and more"))
    again = live.do(BuildRequest(dialect, ephemeral="late", key="k"))
    assert same(first, again)
    assert again.seq == first.seq == seq
    assert again.head == first.head
    assert live.state.seq == seq + 1
    live.refuses(KeyConflict, BuildRequest(dialect, key="k"))


def test_a_key_whose_request_is_forgotten_says_so(live):
    live.do(AddUser("Hello"))
    live.do(BuildRequest("anthropic", key="k"))
    for _ in range(REQUESTS_KEPT):
        live.ask()
    live.refuses(RequestForgotten, BuildRequest("anthropic", key="k"))


def test_a_branch_has_requests_of_its_own(live, dialect):
    hello = live.do(AddUser("Hello"))
    live.do(Fork(hello, "idea", "what if", attach=False))
    live.do(AddUser("what else"))
    main, idea = live.ask(dialect), live.ask(dialect, on="idea")
    assert "what else" in shown(main)
    assert "what if" not in shown(main)
    assert "what if" in shown(idea)
    assert "what else" not in shown(idea)
    assert live.asked.on == "idea"
    live.do(Goto("idea"))
    assert same(live.ask(dialect), idea)


def test_pop_and_goto_bring_back_the_request_of_their_time(live, dialect):
    requests = []
    for text in ("one", "two", "three"):
        live.do(AddUser(text))
        requests.append(live.ask(dialect))
        live.do(AddAssistant(f"answer to {text}"))
    live.do(Pop())
    assert same(live.ask(dialect), requests[2])
    live.do(Goto(requests[0].head))
    assert same(live.ask(dialect), requests[0])
    live.do(Goto("main"))
    live.do(Pop(1, "exchange"))
    live.do(Pop())
    assert same(live.ask(dialect), requests[1])


def test_instructions_are_those_of_the_head(live, dialect):
    hello = live.do(AddUser("Hello"))
    live.do(Configure(system="Be long.", tools=[*TOOLS, Tool("cat", "Show a file.", {"type": "object"})]))
    assert "Be long." in shown(live.ask(dialect))
    assert '"cat"' in shown(live.ask(dialect))
    live.do(Goto(hello.id))
    assert "Be brief." in shown(live.ask(dialect))


def test_open_and_held_calls_are_pending(live, dialect):
    live.do(AddUser("Delete it"))
    live.do(AddAssistant("", tool_calls=[ToolCall("a", "ls"), ToolCall("b", "ls")]))
    live.do(HoldCall("b", "approval"))
    request = live.ask(dialect)
    assert [(call.id, call.held) for call in request.pending] == [("a", None), ("b", "approval")]
    assert "approval" in shown(request)
    assert {note.what for note in request.added} == {"interrupted", "held"}


@pytest.mark.parametrize(
    ("change", "options", "part"),
    [
        ({"system": "rule " * 30_000}, {}, "system"),
        ({"tools": [Tool("t", "word " * 25_000, {"type": "object"})]}, {}, "tools"),
        ({}, {"extra": {"response_format": {"type": "json_schema", "x": "word " * 25_000}}}, "format"),
        ({}, {"ephemeral": "word " * 25_000}, "ephemeral"),
    ],
)
def test_a_part_that_is_too_large_is_named_and_nothing_is_recorded(live, change, options, part):
    live.do(AddUser("Hello"))
    if change:
        live.do(Configure(**change))
    seq, marks = live.state.seq, live.state.marks
    overflow = live.refuses(ContextOverflow, BuildRequest("openai_chat", **options))
    assert overflow.part == part
    assert overflow.tokens > overflow.allowance / 2
    assert f"its {CALLED[part]} about {overflow.tokens} tokens" in str(overflow)
    assert (live.state.seq, live.state.marks) == (seq, marks)


def test_a_message_that_is_too_large_is_named(live, dialect):
    live.do(AddUser("Hello"))
    live.do(AddUser("word " * 30_000))
    assert live.refuses(ContextOverflow, BuildRequest(dialect)).part == "messages"
    live.do(Pop())
    assert "Hello" in shown(live.ask(dialect))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": "m" * 5_000},
        {"extra": {"metadata": {"x": "\0" * 5_000}}},
        {"extra": {"metadata": {f"key {number}": [number, "é"] for number in range(500)}}},
    ],
)
def test_the_weight_of_a_request_is_near_what_its_record_takes(live, options):
    live.do(AddUser("Hello"))
    event, weight, _ = decide(live.state, BuildRequest("openai_chat", **options))
    size = len(encode_record_data(event))
    assert size / 8 < weight < 4 * size + 2_048


def test_a_request_that_no_record_can_hold_is_refused(live):
    live.do(AddUser("Hello"))
    live.refuses(RecordTooLarge, BuildRequest("openai_chat", extra={"metadata": {"x": "x" * 70_000_000}}))


def test_an_image_costs_its_pixels_and_not_its_bytes(live):
    live.do(AddUser("Hello"))
    plain = live.ask()
    live.do(AddUser([Image(data=PNG + bytes(300_000), media_type="image/png")]))
    assert live.ask().input_tokens < plain.input_tokens + 5_000


def test_a_profile_of_the_service_wins(live):
    live.state.models = {**MODELS, "gpt-4o": MODELS["tiny"]}
    live.do(AddUser("Hello"))
    assert live.ask(model="gpt-4o").max_output_tokens == 1_000
