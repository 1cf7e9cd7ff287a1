"""Entries to render: one conversation of everything, and any valid chunks for Hypothesis."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from session_actor.blocks import CallRef, Document, Image, Native, Text, Thinking, ToolCall
from session_actor.ledger.entries import AssistantEntry, Entry, ResultsEntry, ShownResult, UserEntry

PNG = b"\x89PNG\r\n\x1a\n"
PDF = b"%PDF-1.7"

REASONING = {
    "anthropic": {"type": "redacted_thinking", "data": "c2VjcmV0"},
    "openai_responses": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
    "openai_chat": {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
    "gemini": {"thoughtSignature": "c2Vj", "executableCode": {"language": "PYTHON", "code": "1"}},
}
"""A native block of each dialect, as its provider gives it."""


def native(dialect: str, value: Any) -> Native:
    return Native(dialect, "m", msgspec.Raw(json.dumps(value).encode()))


def result(call: ToolCall, *blocks: Any, is_error: bool = False) -> ShownResult:
    return ShownResult(CallRef(1, 0), call.id, call.name, blocks, is_error)


def media_in_results(dialect: str) -> bool:
    """Whether a result that is no error may hold images and documents."""
    return dialect in {"anthropic", "openai_responses"}


def everything(dialect: str) -> list[Entry]:
    """Text, images, documents, thinking, parallel calls, an error, an image in a result, a final answer."""
    here, there = ToolCall("call_1", "look", '{"where":"here"}'), ToolCall("call_2", "look", '{"where":["there",1]}')
    seen = (Text("a cat"), Image(data=PNG, media_type="image/png")) if media_in_results(dialect) else (Text("a cat"),)
    return [
        UserEntry(
            (
                Text("What is here?"),
                Image(data=PNG, media_type="image/png"),
                Image(url="https://example.org/a.png"),
                Document(data=PDF, media_type="application/pdf", name="a.pdf"),
                Document(data=b"words", media_type="text/plain", name="a.txt"),
                Document(file_id="file-1", dialect=dialect),
            )
        ),
        AssistantEntry((*thinking(dialect), Text("I look."), here, there)),
        ResultsEntry((result(here, *seen), result(there, Text("no light"), is_error=True))),
        UserEntry((Text("And?"),)),
        AssistantEntry((Text("A cat. "),)),
        UserEntry((Text("Continue."),)),
    ]


def thinking(dialect: str, number: int = 1) -> tuple[Any, ...]:
    if dialect == "openai_responses":
        return (native(dialect, REASONING[dialect] | {"id": f"rs_{number}"}),)
    return (Thinking("Where?", "c2ln"), native(dialect, REASONING[dialect]))


# --- any chunks ------------------------------------------------------------------------------------------------------

_texts = st.builds(Text, st.text(min_size=1, max_size=20))
_names = st.text(min_size=1, max_size=12)
_arguments = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(-9, 9) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
).map(json.dumps)
_media = st.one_of(
    st.builds(
        Image,
        data=st.binary(min_size=1, max_size=8),
        media_type=st.sampled_from(["image/png", "image/bmp", "image/gif", "image/heic"]),
    ),
    st.builds(Image, url=st.sampled_from(["https://a.example/b.png", "data:image/png;base64,AAAA", "gs://b/c.png"])),
    st.builds(
        Document,
        data=st.binary(min_size=1, max_size=8),
        media_type=st.sampled_from(["application/pdf", "text/plain", "application/zip", "application/json"]),
        name=st.none() | _names,
    ),
    st.builds(Document, url=st.just("https://a.example/b.pdf")),
)


@st.composite
def chunks(draw: st.DrawFn, dialect: str, number: int) -> list[Entry]:
    """A chunk that is not the first of a view: [assistant, results?, user?]. `number` tells its calls from others'."""
    said: list[Any] = draw(st.lists(_texts, max_size=2))
    if draw(st.booleans()):
        said = [*thinking(dialect, number), *said]
    calls = [
        ToolCall(f"call_{number}_{place}", name, arguments)
        for place, (name, arguments) in enumerate(draw(st.lists(st.tuples(_names, _arguments), max_size=3)))
    ]
    if not calls or not said:
        said.append(draw(_texts))
    entries: list[Entry] = [AssistantEntry((*said, *calls))]
    if calls:
        entries.append(ResultsEntry(tuple(draw(_results(dialect, call)) for call in calls)))
    if not calls or draw(st.booleans()):
        entries.append(draw(users()))
    return entries


@st.composite
def _results(draw: st.DrawFn, dialect: str, call: ToolCall) -> ShownResult:
    is_error = draw(st.booleans())
    may_show = media_in_results(dialect) and not (dialect == "anthropic" and is_error)
    blocks = draw(st.lists(_texts | _media if may_show else _texts, min_size=1, max_size=2))
    return result(call, *blocks, is_error=is_error)


def users() -> st.SearchStrategy[UserEntry]:
    return st.lists(_texts | _media, min_size=1, max_size=3).map(lambda blocks: UserEntry(tuple(blocks)))


@st.composite
def conversations(draw: st.DrawFn, dialect: str) -> list[list[Entry]]:
    """The chunks of a view, the first one [user]."""
    return [[draw(users())], *(draw(chunks(dialect, number)) for number in range(draw(st.integers(0, 3))))]
