"""A real session on a real store against a plain model, over random operations, crashes and recoveries.

The model keeps, for each branch, the list of texts that were pushed on it: nothing of the library's own structure. A
branch that saw a frame of another, a frame that came back, or an order that changed would differ from it.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from session_actor import SessionService
from session_actor.service_errors import SessionCrashed

from .conftest import Poison

LEVELS = st.sampled_from(["async", "async", "written", "synced"])
RESTART_WINDOW_S = 0.001
"""So short that no crash is taken for one in a row."""
TEXTS = st.text(st.characters(), max_size=8)


class SessionMachine(RuleBasedStateMachine):
    """Rules are sync; one runner drives the session's coroutines."""

    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.paths: dict[int, tuple[str, ...]] = {}
        self.branches: dict[str, int | None] = {"main": None}
        self.checkpoints: dict[str, int] = {}
        self.head: int | None = None
        self.attached: str | None = "main"
        self.parents: dict[int, int | None] = {}
        self.frames = 0
        self.named = 0

    def do(self, coroutine):
        """Run one coroutine on the machine's loop."""
        return self.runner.run(coroutine)

    @initialize()
    def open(self) -> None:
        self.service = SessionService.open(Path(self.folder.name) / "store", restart_window_s=RESTART_WINDOW_S)
        self.do(self.service.start())
        self.session = self.do(self.service.session("user", create=True))

    def teardown(self) -> None:
        if hasattr(self, "service"):
            self.do(self.service.close())
        self.runner.close()
        self.folder.cleanup()

    # --- the model's side ---

    def grow(self, parent: int | None, text: str) -> int:
        """One more frame on `parent`."""
        self.frames += 1
        self.paths[self.frames] = (*(self.paths[parent] if parent else ()), text)
        self.parents[self.frames] = parent
        return self.frames

    def move(self, frame: int | None) -> None:
        """The head goes to `frame`, and the attached branch with it."""
        self.head = frame
        if self.attached is not None:
            self.branches[self.attached] = frame

    def below(self, frame: int | None, n: int) -> int | None:
        """The frame `n` below."""
        for _ in range(n):
            frame = self.parents[frame] if frame else None
        return frame

    # --- operations ---

    @rule(text=TEXTS, level=LEVELS)
    def push(self, text: str, level: str) -> None:
        frame = self.do(self.session.push(text, "x", durability=level))
        parent = self.head
        if self.attached is None:
            self.attached = f"b{frame.id}"
            assert self.attached not in self.branches
        self.move(self.grow(parent, text))
        assert frame.id == self.head

    @rule(n=st.integers(1, 4))
    def pop(self, n: int) -> None:
        expected = list(reversed(self.paths.get(self.head or 0, ())))[:n]
        popped = self.do(self.session.pop(n))
        assert [frame.user_input for frame in popped] == expected
        self.move(self.below(self.head, n))

    @rule(data=st.data())
    @precondition(lambda self: self.frames)
    def goto_frame(self, data) -> None:
        frame = data.draw(st.integers(1, self.frames))
        self.do(self.session.goto(frame))
        self.head, self.attached = frame, None

    @rule(data=st.data())
    def goto_branch(self, data) -> None:
        branch = data.draw(st.sampled_from(sorted(self.branches)))
        self.do(self.session.goto(branch))
        self.head, self.attached = self.branches[branch], branch

    @rule(data=st.data())
    @precondition(lambda self: self.checkpoints)
    def goto_checkpoint(self, data) -> None:
        name = data.draw(st.sampled_from(sorted(self.checkpoints)))
        self.do(self.session.goto(name))
        self.head, self.attached = self.checkpoints[name], None

    @rule(data=st.data(), text=TEXTS, grows=st.booleans())
    @precondition(lambda self: self.frames)
    def fork(self, data, text: str, grows: bool) -> None:
        at = data.draw(st.integers(1, self.frames))
        self.named += 1
        name = f"fork-{self.named}"
        if grows:
            frame = self.do(self.session.fork(at, branch=name, user_input=text, assistant_output="x"))
            assert (frame.parent, frame.forked_from) == (at, at)
            tip = self.grow(at, text)
        else:
            tip = at
            self.do(self.session.fork(at, branch=name))
        self.branches[name] = self.head = tip
        self.attached = name

    @rule()
    @precondition(lambda self: self.head)
    def checkpoint(self) -> None:
        self.named += 1
        name = f"point-{self.named}"
        self.do(self.session.checkpoint(name))
        self.checkpoints[name] = self.head

    @rule(data=st.data(), text=TEXTS)
    def push_on_another_branch(self, data, text: str) -> None:
        branch = data.draw(st.sampled_from(sorted(self.branches)))
        self.do(self.session.on(branch).push(text, "x"))
        parent = self.branches[branch]
        tip = self.grow(parent, text)
        self.branches[branch] = tip
        if self.attached == branch:
            self.head = tip

    # --- what happens to a session ---

    @rule()
    def crash(self) -> None:
        with pytest.raises(SessionCrashed):
            self.do(self.session.send(Poison("x")))
        self.do(asyncio.sleep(RESTART_WINDOW_S))

    @rule()
    def reopen(self) -> None:
        self.do(self.service.close())
        self.open()

    # --- what must hold ---

    @invariant()
    def every_branch_is_as_it_was_made(self) -> None:
        if not hasattr(self, "service"):
            return
        assert self.do(self.session.branches()) == self.branches
        assert self.do(self.session.checkpoints()) == self.checkpoints
        assert self.do(self.session.head()) == self.head
        assert self.do(self.session.branch()) == self.attached
        for branch, tip in self.branches.items():
            stack = self.do(self.session.on(branch).stack())
            assert tuple(frame.user_input for frame in stack) == self.paths.get(tip or 0, ())


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
