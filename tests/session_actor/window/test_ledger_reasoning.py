"""Reasoning and native blocks: they go only where they may, and whole."""

from __future__ import annotations

import pytest

from session_actor.blocks import Native, Text, Thinking
from session_actor.ledger.entries import UserEntry

from .ledger_talk import (
    CONTINUE,
    DIALECTS,
    FOUND,
    MODELS,
    REASONING,
    SEARCH,
    Talk,
    call,
    entries_of,
    native,
    reply,
    said,
    text_of,
    words,
)


def test_signed_thinking_goes_back_to_its_own_model_only():
    thinking = Thinking("hm", "c2ln")
    talk = reply("anthropic", thinking, Text("b"))
    assert talk.entries()[1].blocks == (thinking, Text("b"))
    for dialect, model in [("anthropic", "claude-opus-4-1"), ("gemini", "gemini-3-pro"), ("openai_chat", "gpt-5")]:
        assert talk.entries(dialect, model=model)[1].blocks == (Text("b"),)
        assert words(talk.chunks(dialect, model=model), "omitted") == ["thinking"]


@pytest.mark.parametrize(
    ("replied", "is_same"),
    [("claude-sonnet-4-5-20250929", True), ("claude-sonnet-4-5-latest", True), ("claude-sonnet-4", False)],
)
def test_a_reply_that_names_the_dated_version_is_of_the_same_model(replied, is_same):
    talk = reply("anthropic", Thinking("hm", "c2ln"), Text("b"), model=replied)
    assert len(talk.entries()[1].blocks) == 1 + is_same


def test_unsigned_thinking_is_never_sent_to_who_wants_it_signed():
    for dialect in ("anthropic", "gemini", "openai_responses"):
        assert reply(dialect, Thinking("hm", ""), Thinking("hm"), Text("b")).entries(dialect)[1].blocks == (Text("b"),)
    assert len(reply("openai_chat", Thinking("hm"), Text("b")).entries("openai_chat")[1].blocks) == 2
    broken = reply("openai_chat", Thinking("hm"), Text("b"), stop_reason="aborted")
    assert broken.entries("openai_chat")[1].blocks == (Text("b"),)


def test_thinking_that_utf_8_cannot_carry_is_left_out_since_it_must_not_be_changed():
    talk = reply("anthropic", Thinking("hm\ud83c", "c2ln"), Thinking("hm", "\ud83c"), Text("b"))
    assert talk.entries()[1].blocks == (Text("b"),)


def test_thinking_at_the_end_leads_to_nothing_and_is_left_out():
    talk = reply("anthropic", Text("b"), Thinking("hm", "c2ln"), stop_reason="aborted")
    assert talk.entries()[1].blocks == (Text("b"),)
    assert words(talk.chunks(), "omitted") == ["thinking"]


def test_thinking_in_a_turn_of_its_own_belongs_to_the_turn_after_it():
    thinking = Thinking("hm", "c2ln")
    talk = reply("anthropic", thinking)
    assert entries_of(talk.chunks()) == [UserEntry((Text("a"),))]
    assert words(talk.chunks(), "omitted") == ["thinking"]
    talk.says(calls=[call()])
    assert talk.entries()[1].blocks[0] == thinking
    assert words(talk.chunks(), "omitted") == []
    dropped = reply("anthropic", thinking)
    dropped.user("b")
    dropped.says("c")
    assert dropped.entries()[1].blocks == (Text("c"),)


def test_thinking_never_stands_behind_a_text_in_one_message_of_anthropic():
    talk = reply("anthropic", Text("par"), stop_reason="aborted")
    talk.turns(said(Thinking("hm", "c2ln"), call(), dialect="anthropic", model=MODELS["anthropic"]))
    assert talk.entries()[2] == CONTINUE
    assert talk.entries()[3].blocks[0] == Thinking("hm", "c2ln")
    assert words(talk.chunks(), "added") == ["continue", "interrupted"]


def test_server_tools_go_back_verbatim_to_any_model_of_the_dialect_and_nowhere_else():
    talk = reply("anthropic", Text("b"), native("anthropic", SEARCH), native("anthropic", FOUND), model="claude-x")
    blocks = talk.entries()[1].blocks
    assert [block.value for block in blocks[1:]] == [SEARCH, FOUND]
    assert talk.entries("gemini")[1].blocks == (Text("b"),)
    assert words(talk.chunks("gemini"), "omitted") == ["native", "native"]


@pytest.mark.parametrize("left", [SEARCH, FOUND])
def test_half_a_server_tool_is_left_out(left):
    talk = reply("anthropic", Text("b"), native("anthropic", left))
    assert talk.entries()[1].blocks == (Text("b"),)
    assert words(talk.chunks(), "omitted") == ["native"]


@pytest.mark.parametrize("stop_reason", ["max_output_tokens", "incomplete", "cancelled", None])
@pytest.mark.parametrize(
    "left",
    [
        {"type": "web_search_call", "id": "ws_1", "status": "incomplete"},
        {"type": "code_interpreter_call", "id": "ci_1", "status": "interpreting", "code": "1 +", "container_id": "c"},
        {"type": "mcp_call", "id": "mcp_1", "status": "calling", "name": "x", "server_label": "s", "arguments": '{"a'},
    ],
    ids=lambda item: item["type"],
)
def test_an_item_of_responses_that_a_reply_broke_off_in_is_left_out_with_its_reasoning(left, stop_reason):
    items = [native("openai_responses", one) for one in (REASONING, left)]
    talk = reply("openai_responses", Text("b"), *items, stop_reason=stop_reason)
    assert talk.entries("openai_responses")[1].blocks == (Text("b"),)
    assert sorted(words(talk.chunks("openai_responses"), "omitted")) == ["native", "thinking"]


@pytest.mark.parametrize(
    ("item", "stop_reason"),
    [
        ({"type": "web_search_call", "id": "ws_1", "status": "failed", "action": {}}, "max_output_tokens"),
        ({"type": "image_generation_call", "id": "ig_1", "status": "generating", "result": "iVBO"}, None),
        ({"type": "web_search_call", "id": "ws_1", "status": "in_progress", "action": {}}, "completed"),
    ],
)
def test_an_item_of_responses_that_came_to_its_end_goes_back(item, stop_reason):
    talk = reply("openai_responses", Text("b"), native("openai_responses", item), stop_reason=stop_reason)
    assert [block.value for block in talk.entries("openai_responses")[1].blocks[1:]] == [item]


def test_a_server_tools_result_before_its_call_and_a_second_call_of_one_id_are_left_out():
    talk = reply("anthropic", Text("b"), *[native("anthropic", one) for one in (FOUND, SEARCH, FOUND, SEARCH)])
    assert [block.value for block in talk.entries()[1].blocks[1:]] == [SEARCH, FOUND]
    assert words(talk.chunks(), "omitted") == ["native", "native"]


def test_a_reply_with_a_server_tool_that_was_added_twice_shows_it_once():
    talk = reply("anthropic", native("anthropic", SEARCH), native("anthropic", FOUND), Text("b"))
    talk.user("c")
    talk.turns(talk.frames[1].turns[0])
    first, second = talk.entries()[1], talk.entries()[3]
    assert [block.value for block in first.blocks[:2]] == [SEARCH, FOUND]
    assert second.blocks == (Text("b"),)
    assert words(talk.chunks(), "omitted") == ["native", "native"]


def test_reasoning_behind_a_text_in_one_turn_is_left_out_for_anthropic():
    talk = reply("anthropic", Text("b"), Thinking("hm", "c2ln"), Text("c"))
    assert talk.entries()[1].blocks == (Text("b"), Text("c"))
    assert words(talk.chunks(), "omitted") == ["thinking"]


def test_an_item_of_responses_that_was_added_twice_is_shown_once():
    talk = reply("openai_responses", native("openai_responses", REASONING), Text("b"))
    talk.turns(talk.frames[-1].turns[0])
    (_, *shown) = talk.entries("openai_responses")[1].blocks
    assert shown == [Text("b"), Text("b")]
    assert words(talk.chunks("openai_responses"), "omitted") == ["thinking"]


def test_a_turn_of_nothing_but_half_a_server_tool_says_that_it_broke_off():
    talk = reply("anthropic", native("anthropic", SEARCH))
    assert text_of(talk.entries()[1]) == "[This message broke off.]"
    assert "broken_off" in words(talk.chunks(), "added")


def test_plain_text_of_a_foreign_native_is_shown_and_a_thought_is_not():
    cited = {"type": "text", "text": "cited", "citations": [{"type": "web_search_result_location"}]}
    talk = reply("anthropic", native("anthropic", cited))
    assert talk.entries("gemini")[1].blocks == (Text("cited"),)
    hidden = reply("gemini", Text("b"), native("gemini", {"text": "secret", "thought": True}))
    assert hidden.entries("anthropic")[1].blocks == (Text("b"),)
    assert words(hidden.chunks("anthropic"), "omitted") == ["thinking"]


def test_reasoning_of_responses_and_what_it_led_to_is_all_or_none():
    reasoning = native("openai_responses", REASONING)
    whole = reply("openai_responses", reasoning, call("c1"), call("c2"))
    assert len(whole.entries("openai_responses")[1].blocks) == 3
    broken = reply("openai_responses", reasoning, call("c1"), call("c2", arguments='{"a'), stop_reason="incomplete")
    assert [type(block).__name__ for block in broken.entries("openai_responses")[1].blocks] == ["ToolCall"]
    alone = reply("openai_responses", Text("b"), reasoning)
    assert alone.entries("openai_responses")[1].blocks == (Text("b"),)
    other = whole.entries("openai_responses", model="gpt-6")
    assert [type(block).__name__ for block in other[1].blocks] == ["ToolCall", "ToolCall"]


def test_natives_that_want_an_answer_or_hold_what_cannot_be_sent_are_left_out():
    for value in ({"type": "computer_call", "call_id": "x"}, {"type": "x", "y": b"z"}, {"type": "x", "y": "\ud83c"}, 3):
        talk = reply("openai_responses", Text("b"), native("openai_responses", value))
        assert talk.entries("openai_responses")[1].blocks == (Text("b"),)


def test_signatures_of_gemini_go_back_to_the_same_model_only():
    talk = reply("gemini", Text("b", "c2ln"), Text("", "c2lu"), call("", signature="c2lm"))
    text, empty, made = talk.entries("gemini")[1].blocks
    assert (text.signature, empty, made.signature) == ("c2ln", Text("", "c2lu"), "c2lm")
    for dialect, model in [("gemini", "gemini-2.5-pro"), ("anthropic", "claude-sonnet-4-5")]:
        text, made = talk.entries(dialect, model=model)[1].blocks
        assert (text.signature, made.signature) == (None, None)
        assert set(words(talk.chunks(dialect, model=model), "omitted")) == {"thinking"}


@pytest.mark.parametrize(
    ("dialect", "value"),
    [
        ("openai_chat", {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
        (
            "anthropic",
            {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]},
        ),
        ("gemini", {"file_data": {"mime_type": "audio/wav", "file_uri": "https://example.org/a.wav"}}),
    ],
)
def test_a_users_native_part_goes_to_its_own_dialect(dialect, value):
    talk = Talk()
    talk.user("a", native(dialect, value))
    assert talk.entries(dialect)[0].blocks[1].value == value
    other = next(name for name in DIALECTS if name != dialect)
    assert talk.entries(other)[0].blocks == (Text("a"),)
    assert words(talk.chunks(other), "omitted") == ["native"]


def test_a_native_that_only_a_model_says_is_left_out_of_the_users_side():
    talk = Talk()
    talk.user("a", native("anthropic", SEARCH), Native("openai_responses", None, REASONING))
    for dialect in DIALECTS:
        assert talk.entries(dialect)[0].blocks == (Text("a"),)
