"""Any sequence of changes: every request is valid, fits, keeps its prefix, and is the same after a recovery."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from session_actor import ContextOverflow, InvalidArgument, NothingToSend, ToolCall
from session_actor.blocks import Document, Image, Native, Text, Thinking, ToolResult
from session_actor.commands import (
    AddAssistant,
    AddReference,
    AddResponse,
    AddToolResult,
    AddUser,
    BuildRequest,
    Configure,
    Fork,
    Goto,
    HoldCall,
    NoteArtifact,
    Pop,
    Push,
    RequestFailed,
)
from session_actor.errors import Refused
from session_actor.frames import Tool, Turn, Usage
from session_actor.requests import limits
from session_actor.requests.limits import limits_of
from session_actor.window import long_history, rendered

from .asked import DIALECTS, MODELS, TOOLS, Asked, messages_of, same, settled
from .test_image_limits import png

WORDS = st.sampled_from(["", "hi", "why? " * 40, "все слова " * 60, "本を読む" * 50, "x" * 900, "\ud800 half", " \n "])
MODEL = st.sampled_from([*MODELS, "gpt-4o", "claude-sonnet-4-5"])
REAL = {
    "anthropic": "claude-sonnet-4-5",
    "openai_chat": "gpt-4o",
    "openai_responses": "gpt-5",
    "gemini": "gemini-2.5-pro",
}
NOTHING = (NothingToSend, ContextOverflow, InvalidArgument)
"""Why there may be no request: nothing is said, it cannot fit, no model is configured."""
ARGUMENTS = st.sampled_from(["{}", '{"path": "a"}', '{"path', "[]", ""])
MEDIA = st.sampled_from(
    [
        Image(url="https://example.com/a.png"),
        *(Image(data=png(*size)) for size in ((10, 10), (2_001, 10), (100, 100, 200_000))),
        Document(data=b"%PDF-1.7" + bytes(150_000), media_type="application/pdf"),
        Document(data=b"A text.", media_type="text/plain"),
        Native("anthropic", None, {"type": "image", "source": {"type": "url", "url": "https://example.com/b.png"}}),
    ]
)
NATIVES = {
    "anthropic": {"type": "redacted_thinking", "data": "c2VjcmV0"},
    "openai_responses": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
}


class Window(RuleBasedStateMachine):
    """A session in front of a service: what it was asked, and what it asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(rendered, "_STOP_CHUNKS", 2)  # so that pops go back to remembered places
        few = {dialect: limits_of(dialect)._replace(images=9, many=4, megabytes=1) for dialect in DIALECTS}
        self.patch.setattr(limits, "_BY_DIALECT", few)  # so that media have no room
        self.patch.setattr(limits, "_ANTHROPIC_SMALL", few["anthropic"])
        self.patch.setattr(long_history, "FRAMES", 6)  # so that what is far below is passed over
        self.patch.setattr(long_history, "_CHARACTERS_A_TOKEN", 3)
        self.live = Asked(model=None)
        self.calls = 0
        self.before: dict[tuple[object, ...], tuple[list[Any], int]] = {}

    def teardown(self) -> None:
        self.patch.undo()

    @initialize(model=st.sampled_from(["small", "tiny"]))
    def begin(self, model: str) -> None:
        self.live.do(Configure(system="Be brief.", tools=TOOLS, model=model))

    def change(self, command: object) -> bool:
        try:
            self.live.do(command)
        except Refused:
            return False
        return True

    # --- changes ---

    @rule(text=WORDS)
    def user(self, text: str) -> None:
        self.change(AddUser(text))

    @rule(text=WORDS, media=st.lists(MEDIA, min_size=1, max_size=4))
    def media(self, text: str, media: list[Any]) -> None:
        self.change(AddUser([text, *media]))

    @rule(text=WORDS)
    def reference(self, text: str) -> None:
        self.change(AddReference(text, "a page"))

    @rule(text=WORDS, answer=WORDS, pinned=st.booleans())
    def push(self, text: str, answer: str, pinned: bool) -> None:
        self.change(Push(text, answer, pinned=pinned))

    @rule(
        text=WORDS,
        dialect=st.sampled_from(DIALECTS),
        own=st.booleans(),
        arguments=st.lists(ARGUMENTS, max_size=3),
        reasoning=st.sampled_from([None, "signed", "unsigned", "native"]),
        stop=st.sampled_from([None, "end_turn", "tool_use", "aborted", "pause_turn", "max_tokens"]),
        repeats=st.booleans(),
    )
    def answer(self, text, dialect, own, arguments, reasoning, stop, repeats) -> None:
        blocks: list[Any] = []
        model = REAL[dialect] if own else "small"
        if reasoning == "native" and dialect in NATIVES:
            blocks.append(Native(dialect, model, NATIVES[dialect]))
        elif reasoning is not None:
            blocks.append(Thinking("hm", "c2lnbmVk" if reasoning == "signed" else None))
        if text:
            blocks.append(Text(text))
        for given in arguments:
            self.calls += 1
            blocks.append(ToolCall("same" if repeats else f"call_{self.calls}", "ls", given))
        turn = Turn("assistant", tuple(blocks), None, model, dialect, stop)
        self.change(AddResponse(turn))

    @rule(count=st.integers(1, 8), text=WORDS, asks=st.booleans(), dialect=st.sampled_from(DIALECTS))
    def work(self, count: int, text: str, asks: bool, dialect: str) -> None:
        for _ in range(count):
            self.calls += 1
            call = f"call_{self.calls}"
            self.change(AddAssistant(text, tool_calls=[ToolCall(call, "ls")], dialect=dialect))
            self.change(AddToolResult(call, text * 3))
            if asks:
                self.request(dialect, None)

    @rule(text=WORDS, number=st.integers(0, 3), wrong=st.booleans(), media=st.lists(MEDIA, max_size=2))
    def result(self, text: str, number: int, wrong: bool, media: list[Any]) -> None:
        calls = self.live.state.pending_calls()
        if calls:
            self.change(AddToolResult(calls[number % len(calls)].ref, [text * 20, *media], is_error=wrong))

    @rule(words=st.lists(WORDS, min_size=1, max_size=4), asks=st.booleans(), pinned=st.booleans())
    def steps_in_a_frame(self, words: list[str], asks: bool, pinned: bool) -> None:
        """The results of open calls, and the next turns, in one frame."""
        turns = [Turn("tool", (ToolResult(call.id, (Text("done"),)),)) for call in self.live.state.pending_calls()[:1]]
        for text in words:
            self.calls += 1
            if asks and text:
                turns.append(Turn("user", (Text(text),)))
            turns.append(Turn("assistant", (ToolCall(f"call_{self.calls}", "ls", "{}"),), dialect="anthropic"))
            if text != words[-1]:
                turns.append(Turn("tool", (ToolResult(f"call_{self.calls}", (Text(text * 3 or "ok"),)),)))
        self.change(Push(turns=turns, pinned=pinned))

    @rule(text=WORDS, frame=st.integers(1, 60), index=st.integers(0, 1))
    def late_result(self, text: str, frame: int, index: int) -> None:
        from session_actor.blocks import CallRef

        self.change(AddToolResult(CallRef(frame, index), text))

    @rule()
    def hold(self) -> None:
        calls = self.live.state.pending_calls()
        if calls:
            self.change(HoldCall(calls[-1].ref, "approval"))

    @precondition(lambda self: self.live.state.next_id > 6)
    @rule(unit=st.sampled_from(["frame", "step", "exchange"]))
    def pop(self, unit: str) -> None:
        self.change(Pop(1, unit))

    @rule(back=st.integers(0, 12), fork=st.booleans())
    def leave(self, back: int, fork: bool) -> None:
        frame = max(0, self.live.state.next_id - 1 - back)
        self.change(Fork(frame) if fork else Goto(frame))

    @rule(name=st.sampled_from(["main", "b3", "b7", "b12"]))
    def come_back(self, name: str) -> None:
        self.change(Goto(name))

    @rule(system=WORDS, model=MODEL, more=st.booleans())
    def configure(self, system: str, model: str, more: bool) -> None:
        tools = [*TOOLS, Tool("cat", "Show a file.", {"type": "object"})] if more else []
        self.change(Configure(system=system, tools=tools, model=model))

    @rule(how=st.sampled_from(["read", "modified"]), number=st.integers(0, 5))
    def artifact(self, how: str, number: int) -> None:
        self.change(NoteArtifact(f"file{number}.py", how))

    @rule()
    def save(self) -> None:
        self.live.save()

    # --- requests ---

    def ask(self, dialect: str, model: str | None = None) -> Any:
        try:
            return self.live.ask(dialect, model=model)
        except NOTHING:
            return None

    @rule(dialect=st.sampled_from(DIALECTS), model=st.none() | MODEL)
    def request(self, dialect: str, model: str | None) -> None:
        request = self.ask(dialect, model)
        if request is None:
            return
        made = self.live.asked
        assert same(self.ask(dialect, model), request), "asking again gives another request"
        assert self.live.asked.hash == made.hash
        assert self.live.asked.made is None, "a trim is followed by another at the same head"
        self.keep_prefix(request, made)

    def keep_prefix(self, request: Any, made: Any) -> None:
        """Unless a mark was made, a request on top of another begins as that one does, but for its last entries."""
        key = (made.quote.key, made.quote.view)
        messages = messages_of(request)
        old = self.before.get(key)
        if old is not None and made.made is None:
            then, head = old
            path = {frame.id for frame in self.live.state.stack()}
            if head in path:
                settled_part = then[: self._settled(then)]
                assert messages[: len(settled_part)] == settled_part, "the prefix changed"
        self.before[key] = (messages, made.quote.head)

    @staticmethod
    def _settled(messages: list[Any]) -> int:
        """How many messages stay whatever comes: those before the newest step and what follows it."""

        def spoken(message: Any) -> bool:
            said = message.get("role") in {"assistant", "model"}
            return said or message.get("type") in {"reasoning", "function_call"}

        place = len(messages)
        while place and not spoken(messages[place - 1]):
            place -= 1
        while place and spoken(messages[place - 1]):
            place -= 1
        return place

    @rule(dialect=st.sampled_from(DIALECTS), error=st.floats(0.7, 1.4), text=WORDS, calls=st.integers(0, 2))
    def respond(self, dialect: str, error: float, text: str, calls: int) -> None:
        request = self.ask(dialect)
        if request is None:
            return
        blocks: list[Any] = [Text(text)] if text else []
        for _ in range(calls):
            self.calls += 1
            blocks.append(ToolCall(f"call_{self.calls}", "ls", "{}"))
        usage = Usage(input_tokens=int(request.input_tokens * error), output_tokens=5)
        turn = Turn("assistant", tuple(blocks), usage, request.model, dialect)
        self.change(AddResponse(turn, request.seq))

    @rule(dialect=st.sampled_from(DIALECTS), figures=st.booleans())
    def too_long(self, dialect: str, figures: bool) -> None:
        request = self.ask(dialect)
        if request is None:
            return
        tokens = request.input_tokens * 5 // 4 if figures else None
        self.live.do(RequestFailed(request.seq, tokens=tokens))
        shorter = self.ask(dialect)
        if shorter is not None:
            assert shorter.seq > request.seq

    # --- recovery ---

    def recovered(self) -> list[Any]:
        return [self.live.replayed(), self.live.recovered()]

    @precondition(lambda self: self.live.state.head)
    @rule(dialect=st.sampled_from(DIALECTS))
    def crash(self, dialect: str) -> None:
        from session_actor.state.decide import decide

        outcomes = []
        for state in [self.live.state, *self.recovered()]:
            try:
                event, _, request = decide(settled(state), BuildRequest(dialect))
            except NOTHING as refused:
                outcomes.append(str(refused))
            else:
                outcomes.append((event.hash, event.quote, event.made, request.omitted, request.added))
        assert outcomes[0] == outcomes[1] == outcomes[2]

    @invariant()
    def what_is_rendered_is_what_would_be_rendered_anew(self) -> None:
        state = self.live.state
        window, state.window = state.window, None
        try:
            fresh = self._hash(state)
        finally:
            state.window = window
        assert self._hash(state) == fresh

    @staticmethod
    def _hash(state: Any) -> object:
        from session_actor.state.decide import decide

        try:
            return decide(state, BuildRequest("anthropic", "small"))[0].hash
        except NOTHING as refused:
            return str(refused)


Window.TestCase.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestWindow = Window.TestCase
