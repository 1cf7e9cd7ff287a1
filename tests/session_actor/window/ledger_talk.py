"""Conversations for the ledger's tests, made by commands as a session makes them, and what must hold of their folds."""

from __future__ import annotations

import json
from typing import Any

from session_actor.blocks import CallRef, Document, Image, Native, Text, Thinking, ToolCall
from session_actor.commands import AddAssistant, AddToolResult, AddUser, Command, Configure, HoldCall, Push
from session_actor.events import Created
from session_actor.frames import Frame, Turn
from session_actor.ledger.entries import AssistantEntry, Chunk, Entry, ResultsEntry, Target, UserEntry
from session_actor.ledger.fold import Fold, folded, tail
from session_actor.ledger.notes import ADDED, OMITTED
from session_actor.ledger.view import WHOLE, View
from session_actor.requests import dialect_of
from session_actor.state.apply import apply
from session_actor.state.decide import decide
from session_actor.state.state import State
from session_actor.validation.validate import validate_request

MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-pro",
    "openai_chat": "gpt-5",
    "openai_responses": "gpt-5",
}
DIALECTS = sorted(MODELS)
CONTINUE = UserEntry((Text("Continue."),))
PNG = b"\x89PNG\r\n\x1a\n"


def target(dialect: str, **fields: Any) -> Target:
    given = {"model": MODELS[dialect], "family": "o200k", "result_cap_tokens": 2_000, **fields}
    return Target(dialect=dialect, **given)


class Talk:
    """A session's state, without a session around it."""

    def __init__(self) -> None:
        self.state = State()
        apply(self.state, Created(session="s"), 1, 0)

    def __repr__(self) -> str:
        """What was said, for a failing case."""
        lines = [
            f"{frame.id} {turn.role} {turn.stop_reason} {turn.dialect} {[shown(block) for block in turn.blocks]}"
            for frame in self.frames
            for turn in frame.turns
        ]
        return "\n".join(["Talk:", *lines])

    def do(self, command: Command) -> Any:
        decision = decide(self.state, command)
        if not isinstance(decision, tuple):
            return decision.reply
        event, _, found = decision
        return apply(self.state, event, self.state.seq + 1, 1_000_000, found)

    def user(self, *content: Any) -> Frame:
        return self.do(AddUser(content=content[0] if len(content) == 1 and isinstance(content[0], str) else content))

    def says(self, *blocks: Any, calls: Any = (), **fields: Any) -> Frame:
        return self.do(AddAssistant(content=blocks, tool_calls=calls, **fields))

    def result(self, call: str | CallRef, *content: Any, is_error: bool = False) -> Frame:
        return self.do(AddToolResult(call=call, content=content, is_error=is_error))

    def hold(self, call: str | CallRef, reason: str = "approval") -> Frame:
        return self.do(HoldCall(call=call, reason=reason))

    def configure(self, **fields: Any) -> Frame:
        return self.do(Configure(**fields))

    def turns(self, *turns: Turn) -> Frame:
        return self.do(Push(turns=turns))

    @property
    def frames(self) -> tuple[Frame, ...]:
        return self.state.stack().frames()

    def fold(self, dialect: str = "anthropic", view: View = WHOLE, **fields: Any) -> Fold:
        return folded(self.frames, target(dialect, **fields), view)

    def chunks(self, dialect: str = "anthropic", view: View = WHOLE, **fields: Any) -> list[Chunk]:
        return chunks_of(self.fold(dialect, view, **fields))

    def entries(self, dialect: str = "anthropic", view: View = WHOLE, **fields: Any) -> list[Entry]:
        return entries_of(self.chunks(dialect, view, **fields))


def shown(block: Any) -> str:
    fields = {name: getattr(block, name) for name in block.__struct_fields__}
    return f"{type(block).__name__}{ {name: value for name, value in fields.items() if value is not None} }"


def chunks_of(fold: Fold, ephemeral: Any = ()) -> list[Chunk]:
    """The chunks of a request; they are checked on the way."""
    chunks = [*fold.chunks, tail(fold.open_chunk(), fold.target, ephemeral)]
    if not fold.is_empty:
        check(chunks, fold.target)
    return chunks


def entries_of(chunks: list[Chunk]) -> list[Entry]:
    return [entry for chunk in chunks for entry in chunk.entries]


def call(call_id: str = "c1", name: str = "look", arguments: str = "{}", **fields: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments, **fields)


def said(*blocks: Any, **fields: Any) -> Turn:
    return Turn("assistant", blocks, **fields)


def native(dialect: str, value: Any, model: str | None = None) -> Native:
    return Native(dialect, model or MODELS[dialect], value)


def words(chunks: list[Chunk], side: str) -> list[str]:
    return [note.what for chunk in chunks for note in getattr(chunk, side)]


def text_of(entry: Entry) -> str:
    if isinstance(entry, ResultsEntry):
        return "\n".join(block.text for result in entry.results for block in result.blocks if type(block) is Text)
    return "\n".join(block.text for block in entry.blocks if type(block) is Text)


# --- replies of a provider --------------------------------------------------------------------------------------------

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CONTENT = [{"type": "text", "text": "x"}]
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2Vj"}


def reply(dialect: str, *blocks, model: str | None = None, **fields) -> Talk:
    talk = Talk()
    talk.user("a")
    talk.turns(said(*blocks, dialect=dialect, model=model or MODELS[dialect], **fields))
    return talk


# --- what must hold --------------------------------------------------------------------------------------------------


def check(chunks: list[Chunk], to: Target) -> None:
    """What the docstrings of the entries promise, of a whole request."""
    for place, chunk in enumerate(chunks):
        kinds = [type(entry) for entry in chunk.entries]
        first = [UserEntry] if place == 0 else [AssistantEntry]
        assert kinds in ([*first, *rest] for rest in ([], [ResultsEntry], [UserEntry], [ResultsEntry, UserEntry]))
        assert place > 0 or kinds == [UserEntry]
        assert chunk.paused <= (place == len(chunks) - 1)
        assert {note.what for note in chunk.omitted} <= OMITTED.keys()
        assert {note.what for note in chunk.added} <= ADDED.keys()
    entries = entries_of(chunks)
    assert chunks[-1].paused or not isinstance(entries[-1], AssistantEntry)
    for entry, after in zip(entries, [*entries[1:], None], strict=True):
        assert type(entry) is not type(after)
        check_entry(entry, after, to)
    ids = [one.id for one in calls_of(entries) if one.id]
    assert len(ids) == len(set(ids))
    found = problems(entries, to)
    assert not found, found


def check_entry(entry: Entry, after: Entry | None, to: Target) -> None:
    if isinstance(entry, ResultsEntry):
        assert entry.results
        for result in entry.results:
            check_blocks(result.blocks, Text | Image | Document | Native)
            if to.dialect in {"openai_chat", "gemini"}:
                assert all(type(block) is Text for block in result.blocks)
        return
    if isinstance(entry, UserEntry):
        check_blocks(entry.blocks, Text | Image | Document | Native)
        return
    check_blocks(entry.blocks, Text | Thinking | ToolCall | Native)
    calls = calls_of([entry])
    results = after.results if isinstance(after, ResultsEntry) else ()
    assert [one.id for one in calls] == [result.call_id for result in results]
    assert [one.name for one in calls] == [result.name for result in results]
    assert all(type(json.loads(one.arguments)) is dict for one in calls)
    for block in entry.blocks:
        if isinstance(block, Thinking | Native):
            assert not isinstance(block, Native) or block.dialect == to.dialect
            assert not isinstance(block, Thinking) or to.dialect != "openai_responses"
        elif block.signature is not None:
            assert to.dialect == "gemini" or (isinstance(block, ToolCall) and to.dialect == "openai_chat")


def check_blocks(blocks: Any, kinds: Any) -> None:
    assert blocks
    assert all(isinstance(block, kinds) for block in blocks)
    for block in blocks:
        if type(block) is Text:
            block.text.encode()
            assert block.text.strip() or (block.signature and len(blocks) > 1)


def calls_of(entries: list[Entry]) -> list[ToolCall]:
    said = [entry for entry in entries if isinstance(entry, AssistantEntry)]
    return [block for entry in said for block in entry.blocks if isinstance(block, ToolCall)]


def problems(entries: list[Entry], to: Target) -> list[str]:
    """What the validator says of the request that a renderer makes of them."""
    renderer = dialect_of(to.dialect)
    used = [one.name for one in calls_of(entries)]
    request = renderer.assemble(to.model, None, renderer.messages(entries, to.model), 1_000, used)
    return validate_request(to.dialect, request)
