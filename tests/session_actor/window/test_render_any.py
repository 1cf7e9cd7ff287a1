"""What holds for any valid entries, in every dialect."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_actor.blocks import ToolCall
from session_actor.dialects import DIALECTS
from session_actor.frames import Instructions, Tool
from session_actor.ledger.entries import AssistantEntry, Entry
from session_actor.requests import dialect_of
from session_actor.requests.canonical import START, canonical, chained, sealed
from session_actor.requests.own import owned
from session_actor.validation.validate import validate_request

from .entry_samples import conversations, everything
from .sdk_shapes import shape_problems

MODELS = {
    "anthropic": "claude",
    "gemini": "gemini-3-pro",
    "openai_chat": "gpt-5",
    "openai_responses": "gpt-5",
}
INSTRUCTIONS = Instructions(
    "Be brief.",
    (Tool("look", "Looks.", msgspec.Raw(b'{"type":"object","properties":{"where":{}}}')), Tool("go")),
)

every_dialect = pytest.mark.parametrize("dialect", sorted(DIALECTS))


def flat(chunks: list[list[Entry]]) -> list[Entry]:
    return [entry for chunk in chunks for entry in chunk]


def requested(dialect: str, entries: list[Entry], instructions: Instructions | None = INSTRUCTIONS) -> dict[str, Any]:
    renderer = dialect_of(dialect)
    used = [
        block.name
        for entry in entries
        if isinstance(entry, AssistantEntry)
        for block in entry.blocks
        if isinstance(block, ToolCall)
    ]
    messages = renderer.messages(entries, MODELS[dialect])
    return renderer.assemble(MODELS[dialect], instructions, messages, 1_000, used)


@every_dialect
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_chunks_rendered_apart_are_the_same_messages_as_rendered_together(dialect, data):
    chunks = data.draw(conversations(dialect))
    messages = dialect_of(dialect).messages
    apart = [message for chunk in chunks for message in messages(chunk, MODELS[dialect])]
    assert apart == messages(flat(chunks), MODELS[dialect])


@every_dialect
@settings(max_examples=25, deadline=None)
@given(data=st.data(), with_tools=st.booleans())
def test_what_is_rendered_is_valid_and_of_the_sdks_types(dialect, data, with_tools):
    entries = flat(data.draw(conversations(dialect)))
    request = requested(dialect, entries, INSTRUCTIONS if with_tools else None)
    assert validate_request(dialect, request) == []
    assert shape_problems(dialect, request) == []
    assert canonical(owned(request)) == canonical(request)


@every_dialect
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_hash_of_a_request_is_the_same_whether_its_chain_grew_by_chunks_or_was_made_at_once(dialect, data):
    chunks = data.draw(conversations(dialect))
    renderer, model = dialect_of(dialect), MODELS[dialect]
    rest = renderer.assemble(model, INSTRUCTIONS, [], 1_000)
    chain = START
    for chunk in chunks:
        chain = chained(chain, renderer.messages(chunk, model))
    whole = renderer.messages(flat(chunks), model)
    assert sealed(chain, rest) == sealed(chained(START, whole), rest)
    assert sealed(chained(START, whole[:-1]), rest) != sealed(chain, rest)


@every_dialect
def test_messages_put_in_after_assembling_are_where_assembling_puts_them(dialect):
    renderer, model = dialect_of(dialect), MODELS[dialect]
    messages = renderer.messages(everything(dialect), model)
    later = renderer.assemble(model, INSTRUCTIONS, [], 1_000)
    later[renderer.MESSAGES] += owned(messages)
    assert later == renderer.assemble(model, INSTRUCTIONS, messages, 1_000)


@every_dialect
def test_rendering_the_same_entries_again_gives_equal_messages_that_share_nothing(dialect):
    messages = dialect_of(dialect).messages
    first, second = messages(everything(dialect), "m"), messages(everything(dialect), "m")
    assert first == second
    assert not _containers(first) & _containers(second)


@every_dialect
def test_without_instructions_neither_a_system_prompt_nor_tools_are_sent(dialect):
    entries = [everything(dialect)[0]]
    for nothing in (None, Instructions(), Instructions(" \n")):
        request = requested(dialect, entries, nothing)
        assert not {"system", "instructions", "tools", "tool_choice"} & (
            request.keys() | request.get("config", {}).keys()
        )
        assert len(request[dialect_of(dialect).MESSAGES]) == 1


def _containers(value: Any) -> set[int]:
    """Where the dicts and lists of a value are."""
    if isinstance(value, dict):
        return {id(value)}.union(*map(_containers, value.values()))
    return {id(value)}.union(*map(_containers, value)) if isinstance(value, list) else set()


def test_the_conversation_of_everything_stays_readable_json_but_for_bytes():
    for dialect in DIALECTS:
        assert json.loads(canonical(requested(dialect, everything(dialect))))
