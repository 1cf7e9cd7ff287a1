"""Chat Completions as other servers than OpenAI's take it."""

from __future__ import annotations

import re

import pytest

from session_actor import validate_request
from session_actor.blocks import CallRef
from session_actor.commands import AddUser
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
