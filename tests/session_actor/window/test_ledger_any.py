"""Any conversation: what the entries promise holds for every dialect and view, however the frames are folded."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_actor.blocks import NULL, CallRef, Document, Image, Native, Reference, Text, Thinking, ToolCall, ToolResult
from session_actor.commands import AddToolResult, AddUser, Configure, HoldCall, Pop, Push
from session_actor.errors import Refused
from session_actor.frames import Artifact, Turn
from session_actor.ledger.entries import Chunk, ResultsEntry, ShownResult
from session_actor.ledger.fold import Fold, folded
from session_actor.ledger.view import WHOLE, View
from session_actor.state.calls import calls_in

from .ledger_talk import DIALECTS, MODELS, PNG, Talk, chunks_of, entries_of, target

every_dialect = pytest.mark.parametrize("dialect", DIALECTS)

# --- what can be said ------------------------------------------------------------------------------------------------

TEXTS = st.sampled_from(["", " ", "a", "b\n", "\ud83c", "Ω" * 30, "words " * 60]) | st.text(max_size=8)
MEDIA = st.sampled_from(
    [
        Image(data=PNG, media_type="image/png"),
        Image(url="https://example.org/a.gif"),
        Image(url="data:image/png;base64,AAEC"),
        Image(file_id="f1", dialect="anthropic", media_type="image/png"),
        Document(data=b"%PDF", media_type="application/pdf"),
        Document(data=b"\xffx", media_type="text/csv", name="\ud83c"),
        Document(url="https://example.org/a.pdf"),
        Document(file_id="f2", dialect="openai_responses"),
    ]
)
NATIVES = st.sampled_from(
    [
        ("anthropic", {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        ("anthropic", {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
        ("anthropic", {"type": "redacted_thinking", "data": "c2Vj"}),
        ("anthropic", {"type": "text", "text": "cited", "citations": None}),
        ("anthropic", {"type": "tool_use", "id": "x", "name": "y", "input": {}}),
        ("openai_responses", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2Vj"}),
        (
            "openai_responses",
            {"type": "computer_call", "call_id": "x", "id": "cu_1", "action": {}},
        ),
        ("openai_chat", {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}),
        ("gemini", {"text": "hm", "thought": True}),
        ("gemini", {"executable_code": {"language": "PYTHON", "code": "1"}}),
        ("gemini", {"function_call": {"name": "x"}}),
        ("gemini", {"text": " "}),
    ]
).map(lambda given: Native(given[0], MODELS[given[0]], msgspec.Raw(json.dumps(given[1]).encode())))
SIGNATURES = st.sampled_from([None, "c2ln"])
CALLS = st.builds(
    ToolCall,
    st.sampled_from(["c1", "c2", "toolu_1", "", "x y", "x" * 70, "call_3_0"]),
    st.sampled_from(["look", "functions.go:0", "", "Ω"]),
    st.sampled_from(["{}", "", '{"a": 1}', '{"a', "[1]", '{"a": "\\ud83c"}', '{"a": NaN}']),
    SIGNATURES,
    st.sampled_from([NULL, msgspec.Raw(b'{"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}')]),
)
SAID = st.lists(
    st.builds(Text, TEXTS, SIGNATURES) | st.builds(Thinking, TEXTS, SIGNATURES) | CALLS | CALLS | NATIVES | MEDIA,
    max_size=5,
)
HEARD = st.lists(st.builds(Text, TEXTS) | st.builds(Reference, TEXTS, TEXTS) | MEDIA | NATIVES, max_size=3)
RETURNED = st.lists(st.builds(Text, TEXTS) | MEDIA | NATIVES, max_size=3)
REASONS = st.sampled_from([None, "end_turn", "tool_use", "aborted", "max_tokens", "error", "pause_turn"])
ORIGINS = st.sampled_from([None, *DIALECTS])


@st.composite
def assistant_turns(draw: st.DrawFn) -> Turn:
    dialect = draw(ORIGINS)
    model = draw(st.sampled_from([None, "other", MODELS.get(dialect or "anthropic")]))
    return Turn("assistant", tuple(draw(SAID)), None, model, dialect, draw(REASONS))


@st.composite
def frames_of_turns(draw: st.DrawFn, frame: int) -> tuple[Turn, ...]:
    """Some turns of one frame, with results for its own calls among them."""
    turns: list[Turn] = []
    for kind in draw(st.lists(st.sampled_from(["user", "system", "assistant", "tool"]), max_size=5)):
        if kind == "assistant":
            turns.append(draw(assistant_turns()))
        elif kind != "tool":
            turns.append(Turn(kind, tuple(draw(HEARD))))
        else:
            answered = {block.ref for turn in turns for block in turn.blocks if isinstance(block, ToolResult)}
            own = [ref for ref, _ in calls_in(frame, turns) if ref not in answered]
            refs = draw(st.permutations(own)) if own else []
            results = [ToolResult("", tuple(draw(RETURNED)), draw(st.booleans()), ref) for ref in refs]
            turns.append(Turn("tool", tuple(results[: draw(st.integers(0, 3))])))
    return tuple(turns)


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    """A session after some commands; those that it refuses change nothing."""
    talk = Talk()
    for kind in draw(st.lists(st.sampled_from("uuaaaarrrhhtttcp"), min_size=1, max_size=14)):
        refs = [ref for frame in talk.frames for ref, _ in calls_in(frame.id, frame.turns)]
        ref = draw(st.sampled_from(refs[-4:])) if refs else CallRef(1, 0)
        command: Any = Configure(system="s")
        if kind == "u":
            command = AddUser(content=draw(HEARD))
        elif kind == "a":
            turn = draw(assistant_turns())
            command = Push(turns=(turn,))
        elif kind == "r":
            command = AddToolResult(call=ref, content=draw(RETURNED), is_error=draw(st.booleans()))
        elif kind == "h":
            command = HoldCall(call=ref, reason=draw(st.sampled_from(["approval", "quota"])))
        elif kind == "t":
            command = Push(turns=draw(frames_of_turns(talk.state.next_id)))
        elif kind == "p":
            command = Pop(n=draw(st.integers(1, 2)))
        with contextlib.suppress(Refused):
            talk.do(command)
    return talk


@st.composite
def views(draw: st.DrawFn) -> View:
    kept = draw(st.sets(st.integers(1, 8), max_size=4))
    artifacts = (Artifact("a.py", "read"),) if draw(st.booleans()) else ()
    cut, old, stale = (draw(st.integers(0, 12)) for _ in range(3))
    return View(cut, tuple(sorted(kept)), old, stale, draw(st.booleans()), artifacts)


# --- what holds ------------------------------------------------------------------------------------------------------


@every_dialect
@settings(max_examples=30, deadline=None)
@given(talk=talks(), view=st.just(WHOLE) | views(), cap=st.sampled_from([20, 2_000]), ephemeral=HEARD)
def test_any_view_of_any_conversation_makes_a_valid_request(dialect, talk, view, cap, ephemeral):
    to = target(dialect, result_cap_tokens=cap)
    chunks_of(folded(talk.frames, to, view), tuple(ephemeral))


@every_dialect
@settings(max_examples=25, deadline=None)
@given(talk=talks(), view=st.just(WHOLE) | views())
def test_frames_give_the_same_chunks_however_they_are_folded_and_finished_ones_stay(dialect, talk, view):
    to, frames = target(dialect), talk.frames
    grown = Fold(to, view)
    for number, frame in enumerate(frames, 1):
        before, asked = list(grown.chunks), grown.copy()
        grown.add(frame)
        assert grown.chunks[: len(before)] == before
        assert asked.chunks == before
        asked.open_chunk()
        asked.add(frame)
        whole = folded(frames[:number], to, view)
        for other in (grown, asked):
            assert (other.chunks, other.open_chunk(), other.is_empty) == (
                whole.chunks,
                whole.open_chunk(),
                whole.is_empty,
            )


@every_dialect
@settings(max_examples=25, deadline=None)
@given(talk=talks())
def test_every_call_and_every_result_is_shown_or_noted_as_left_out(dialect, talk):
    chunks = chunks_of(talk.fold(dialect))
    placed = [result for result in results_of(chunks) if result.why in (None, "cut")]
    told = [note for chunk in chunks for note in chunk.added if note.what in {"late_result", "refused_call"}]
    dropped = [note for chunk in chunks for note in chunk.omitted if note.what == "result"]
    refused = [note for chunk in chunks for note in chunk.omitted if note.what == "call"]
    blocks = [block for turn in talk.state.stack().turns() for block in turn.blocks]
    assert len(placed) + len(told) + len(dropped) == sum(isinstance(block, ToolResult) for block in blocks)
    assert len(results_of(chunks)) + len(refused) == sum(isinstance(block, ToolCall) for block in blocks)


@every_dialect
@settings(max_examples=25, deadline=None)
@given(talk=talks())
def test_what_the_session_has_pending_is_shown_as_open_or_held(dialect, talk):
    chunks = chunks_of(talk.fold(dialect))
    shown = {result.ref: result.why for result in results_of(chunks)}
    for call in talk.state.pending_calls():
        if call.ref in shown:
            assert shown[call.ref] in {"held", "interrupted"}
        else:
            assert any(
                note.what == "call" and note.frame == call.ref.frame for chunk in chunks for note in chunk.omitted
            )


def results_of(chunks: list[Chunk]) -> list[ShownResult]:
    found = [entry for entry in entries_of(chunks) if isinstance(entry, ResultsEntry)]
    return [result for entry in found for result in entry.results]
