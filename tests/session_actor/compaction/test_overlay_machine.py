"""Any sequence of changes around compactions: the right one is shown, originals stay, recovery asks the same."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from session_actor import ContextOverflow, InvalidArgument, NothingToSend, SummaryRejected, ToolCall
from session_actor.commands import (
    AddAssistant,
    AddToolResult,
    AddUser,
    CommitCompaction,
    Configure,
    Fork,
    Goto,
    Pin,
    Pop,
    Push,
    Retract,
    Uncompact,
)
from session_actor.compaction.plan import Plan
from session_actor.compaction.preparing import Wish, prepare
from session_actor.errors import Refused
from session_actor.frames import Frame
from session_actor.server.cold import Shelf
from session_actor.server.snapshots import snapshot_of, state_from

from ..live import Archive, picture
from ..live import prune as prune_live
from ..window.asked import DIALECTS, Asked, messages_of, same, settled

LONG = st.sampled_from(["why? " * 60, "все слова " * 60, "See src/a.py, never push it. " * 12, "hi"])
RULE = "Never delete the table of users."
GUESSES = st.sampled_from(["It is small.", "It is  small.", "It is old."])


def stays(messages: list[Any]) -> int:
    """How many messages stay whatever comes: those before the newest step and what follows it."""

    def spoken(message: Any) -> bool:
        said = message.get("role") in {"assistant", "model"}
        return said or message.get("type") in {"function_call", "reasoning"}

    places = [place for place, message in enumerate(messages) if spoken(message)]
    last = places[-1] if places else 0
    while last and spoken(messages[last - 1]):
        last -= 1
    return last


class Overlays(RuleBasedStateMachine):
    """A session, and what must be shown of it by what was committed and taken back."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.live = Asked(model=None)
        self.calls = 0
        self.plans: list[Plan] = []
        self.committed: dict[int, int] = {}
        """The covered frame of each compaction in force."""
        self.frames: dict[int, Frame] = {}
        self.before: dict[tuple[object, ...], tuple[list[Any], int]] = {}
        self.shaken = 0
        """Grows with what changes the view of a path: pins, and compactions that are taken back."""

    def teardown(self) -> None:
        self.loop.close()

    @initialize(compacted=st.booleans())
    def begin(self, compacted: bool) -> None:
        self.live.do(Configure(system="Be brief.", model="tiny"))
        self.live.do(AddUser(f"Mend the store. {RULE}"))
        for number in range(6):
            self.live.do(AddAssistant(f"{number} " + "because " * 120, assumptions=["It is small."]))
            self.live.do(AddUser("why " * 100))
        if compacted:
            self.compact()

    def change(self, command: object) -> bool:
        try:
            self.live.do(command)
        except SummaryRejected:
            raise
        except Refused:
            return False
        return True

    # --- changes ---

    @rule(text=LONG, count=st.integers(1, 4))
    def talk(self, text: str, count: int) -> None:
        for _ in range(count):
            self.change(AddUser(text))
            self.change(AddAssistant(text + " So."))

    @rule(text=LONG)
    def call(self, text: str) -> None:
        self.calls += 1
        self.change(AddAssistant("", tool_calls=[ToolCall(f"c{self.calls}", "ls"), ToolCall(f"d{self.calls}", "ls")]))
        self.change(AddToolResult(f"c{self.calls}", text))

    @rule()
    def answer(self) -> None:
        self.change(AddToolResult(f"d{self.calls}", "done " * 30))

    @rule(n=st.integers(1, 5), unit=st.sampled_from(["frame", "step", "exchange"]))
    def pop(self, n: int, unit: Any) -> None:
        self.change(Pop(n, unit))

    @rule(data=st.data(), kind=st.sampled_from(["goto", "fork", "branch"]))
    def move(self, data: st.DataObject, kind: str) -> None:
        frame = data.draw(st.integers(0, self.live.state.next_id - 1))
        branch = data.draw(st.sampled_from([*self.live.state.branches]))
        command = {"goto": Goto(frame), "fork": Fork(frame, user_input="elsewhere"), "branch": Goto(branch)}[kind]
        self.change(command)

    @rule(guess=GUESSES)
    def guess(self, guess: str) -> None:
        self.change(Push("", "I guess.", assumptions=[guess]))

    @rule(guess=GUESSES)
    def retract(self, guess: str) -> None:
        self.change(Retract(guess))

    @rule(data=st.data(), pinned=st.booleans())
    def pin(self, data: st.DataObject, pinned: bool) -> None:
        self.shaken += self.change(Pin(data.draw(st.integers(1, self.live.state.next_id - 1)), pinned))

    # --- compactions ---

    @rule()
    def plan(self) -> None:
        if self.live.state.instructions() is None:  # popped: no model is known
            return
        plan = self.loop.run_until_complete(prepare(self.live.state, None, Wish()))
        if plan is not None:
            self.plans.append(plan)

    @rule()
    def compact(self) -> None:
        self.plan()
        self.commit()

    @precondition(lambda self: self.plans)
    @rule()
    def commit(self) -> None:
        if not self.plans:
            return
        plan, before = self.plans.pop(), picture(self.live.state)
        if self.change(CommitCompaction(plan, plan.extractive())):
            assert plan.covered_frame in self.live.ids()
            self.committed[self.live.state.generation] = plan.covered_frame
            assert not self.change(CommitCompaction(plan, plan.extractive())), "a plan is used once"
        else:
            assert picture(self.live.state) == before

    @precondition(lambda self: self.committed)
    @rule(data=st.data())
    def uncompact(self, data: st.DataObject) -> None:
        generation = data.draw(st.sampled_from(sorted(self.committed)))
        assert self.change(Uncompact(generation))
        del self.committed[generation]
        self.shaken += 1

    @rule()
    def prune(self) -> None:
        prune_live(self.live)
        table = self.live.state.table
        self.frames = {frame_id: frame for frame_id, frame in self.frames.items() if table.has(frame_id)}
        self.committed = {number: frame for number, frame in self.committed.items() if table.has(frame)}

    # --- what must hold ---

    @rule(dialect=st.sampled_from(DIALECTS))
    def ask(self, dialect: str) -> None:
        ids = self.live.ids()
        try:
            request = self.live.ask(dialect)
        except (NothingToSend, ContextOverflow, InvalidArgument):
            return
        right = [number for number, covered in self.committed.items() if covered in ids]
        assert request.generation == max(right, default=0)
        quote = self.live.asked.quote
        key = (dialect, quote.view, quote.key, self.shaken)
        sent, head = self.before.get(key, ([], 0))
        if head in ids:
            settled_part = sent[: stays(sent)]
            assert messages_of(request)[: len(settled_part)] == settled_part, "the prefix has changed"
        self.before[key] = (messages_of(request), request.head)
        assert same(self.live.again(dialect), request)
        state = state_from(snapshot_of(self.live.state), self.live.state.seq, self.shelf())
        assert same(self.live.again(dialect, settled(state)), request)

    def shelf(self) -> Shelf:
        return Shelf(self.live.state.session, Archive(self.live.records))

    @invariant()
    def originals_stay(self) -> None:
        table = self.live.state.table
        for frame_id in self.live.ids():
            frame = table.get(frame_id)
            assert self.frames.setdefault(frame_id, frame) == frame


Overlays.TestCase.settings = settings(
    max_examples=14, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestOverlays = Overlays.TestCase
