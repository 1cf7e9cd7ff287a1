"""Chat Completions as other servers than OpenAI's take it."""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec
import pytest

from session_actor import InvalidArgument, ModelProfile, ToolCall, validate_request
from session_actor.blocks import CallRef
from session_actor.commands import AddAssistant, AddToolResult, AddUser
from session_actor.ledger.wire import WireIds
from session_actor.models import profile_of

from .asked import Asked
from .ledger_talk import Talk, call


@pytest.mark.parametrize("model", ["mistral-large-latest", "deepseek-chat", "Qwen/Qwen3-32B", "llama3.1:8b"])
def test_the_longest_answer_is_called_as_the_server_of_the_model_knows_it(model):
    live = Asked(model=model)
    live.do(AddUser("Hello"))
    request = live.ask("openai_chat")
    assert request["max_tokens"] == request.max_output_tokens
    assert "max_completion_tokens" not in request
    assert validate_request("openai_chat", request) == []


def test_openai_and_who_is_not_known_are_told_in_openais_word():
    for model in ("gpt-5", "nobody-knows-1"):
        live = Asked(model=model)
        live.do(AddUser("Hello"))
        assert "max_completion_tokens" in live.ask("openai_chat")


def test_only_mistral_wants_short_ids():
    assert profile_of("mistral-small-latest").short_call_ids
    assert not profile_of("gpt-5").short_call_ids
    assert not profile_of("deepseek-chat").short_call_ids


def test_calls_and_their_results_have_ids_of_nine_letters_and_digits():
    talk = Talk()
    talk.user("Hi")
    talk.says(calls=[call("call_abc"), call("abcDEF123"), call("abcDEF123")], dialect="openai_chat")
    for index in range(3):
        talk.result(CallRef(2, index), "done")
    chunks = talk.chunks("openai_chat", short_call_ids=True)
    results = [
        result.call_id for chunk in chunks for entry in chunk.entries for result in getattr(entry, "results", ())
    ]
    calls = [block.id for chunk in chunks for entry in chunk.entries for block in entry_calls(entry)]
    assert results == calls == ["000002000", "abcDEF123", "000002002"]


def entry_calls(entry):
    return [block for block in getattr(entry, "blocks", ()) if hasattr(block, "arguments")]


def test_short_ids_are_the_same_each_time_and_never_twice():
    refs = [CallRef(frame, index) for frame in (1, 36, 10**6, 36**6) for index in (0, 1, 35, 36, 46_655, 46_656)]
    made = [WireIds("openai_chat", short=True), WireIds("openai_chat", short=True)]
    first, second = ([ids.give(ref, "call_x", None) for ref in refs] for ids in made)
    assert first == second
    assert len(set(first)) == len(refs)
    assert all(re.fullmatch("[a-z0-9]{9}", given) for given in first)


def limited(most: int) -> ModelProfile:
    return ModelProfile(name="limited", window=1_000_000, max_output=8_000, family="o200k", most_messages=most)


def talks_long(most: int, *, calls: bool) -> list[int]:
    """How many messages each request of a long conversation with a server that counts them has."""
    live = Asked(model="limited")
    live.state.models = {"limited": limited(most)}
    counts = []
    for number in range(150):
        live.do(AddUser(f"Question {number}"))
        if calls and number % 3 == 0:
            frame = live.do(AddAssistant("", tool_calls=[ToolCall(f"c{number}", "ls", "{}")]))
            live.do(AddToolResult(CallRef(frame.id, 0), "a file"))
        request = live.ask("openai_chat")
        counts.append(len(request["messages"]))
        assert request["messages"][0]["role"] == "system"
        assert f"Question {number}" in str(request["messages"])
        live.do(AddAssistant(f"Answer {number}"))
    assert live.state.table.at(live.state.head).depth > 300
    return counts


@pytest.mark.parametrize("calls", [False, True])
def test_a_server_that_counts_messages_gets_no_more_than_it_takes(calls):
    counts = talks_long(100, calls=calls)
    assert max(counts) <= 100
    assert max(counts) > 90
    assert sum(later < before for before, later in pairwise(counts)) < 12  # the prefix stays for long


def test_the_same_conversation_is_shown_whole_where_nobody_counts():
    assert max(talks_long(2**40, calls=False)) == 300


def test_other_dialects_are_not_counted():
    live = Asked(model="limited")
    live.state.models = {"limited": limited(16)}
    for number in range(20):
        live.do(AddUser(f"Question {number}"))
        live.do(AddAssistant(f"Answer {number}"))
    assert len(live.ask("anthropic")["messages"]) > 16


@pytest.mark.parametrize("model", ["azure/gpt-5", "azure:gpt-5", "azure_openai:gpt-4o", "Azure/gpt-4.1-mini"])
def test_azure_takes_so_many_messages_as_it_says(model):
    assert profile_of(model).most_messages == 2_048
    plain = profile_of(re.split("[/:]", model)[1])
    assert plain.most_messages is None
    assert msgspec.structs.replace(profile_of(model), most_messages=None) == plain
    assert profile_of(model) is profile_of(model)


def test_a_profile_of_one_s_own_says_it_itself():
    own = limited(500)
    assert profile_of("azure/mine", {"azure/mine": own}) is own


@pytest.mark.parametrize("wrong", [0, 15, -1, 2.0, True, "2048"])
def test_a_limit_that_can_never_be_right_is_refused(wrong):
    with pytest.raises(InvalidArgument, match="most_messages"):
        limited(wrong)
