"""The pure state against a plain model, over random commands, refusals and replays.

The model keeps a list of texts for each branch and copies it for every fork: no ids, no parents, no table. A branch
that saw a frame of another, a popped frame that came back, or an order that changed would differ from it.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from session_actor.commands import (
    AddUser,
    Checkpoint,
    DeleteBranch,
    DeleteCheckpoint,
    Fork,
    Goto,
    Pop,
    Push,
    RenameBranch,
    RenameCheckpoint,
)
from session_actor.errors import BranchAttached, FrameUnknown, NameTaken, NameUnknown, Refused

from .live import Live, live_frames, picture, prune

NAMES = st.sampled_from(["main", "idea", "other", "here", "there", "b3", "b5"])
FRAMES = st.integers(0, 30)
"""0: the empty stack."""


class StateMachine(RuleBasedStateMachine):
    """`branches`, `checkpoints` and `at` map names and frame ids to lists of texts; `head` is such a list, too."""

    def __init__(self) -> None:
        super().__init__()
        self.live = Live()
        self.branches: dict[str, list[str]] = {"main": []}
        self.checkpoints: dict[str, list[str]] = {}
        self.at: dict[int, list[str]] = {}
        self.attached: str | None = "main"
        self.detached: list[str] = []
        self.taken: list[tuple[object, list[str]]] = []
        self.pushed = 0

    @property
    def head(self) -> list[str]:
        return self.detached if self.attached is None else self.branches[self.attached]

    def names(self) -> set[str]:
        return set(self.branches) | set(self.checkpoints)

    def target(self, frame: int) -> list[str] | None:
        """The path to a frame; None: there is no such frame."""
        return self.at.get(frame) if frame else []

    def fresh(self) -> str:
        self.pushed += 1
        return f"text {self.pushed}"

    def free(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.names():
            number += 1
            name = f"{wanted}-{number}"
        return name

    @rule(add=st.booleans())
    def push(self, add):
        text = self.fresh()
        path = [*self.head, text]
        frame = self.live.do(AddUser(text) if add else Push(text))
        if self.attached is None:
            self.attached = self.free(f"b{frame.id}")
        self.branches[self.attached] = path
        self.at[frame.id] = path

    @rule(n=st.integers(20, 50))
    def push_many(self, n):
        for _ in range(n):
            self.push(add=False)

    @rule(name=NAMES)
    def push_on_a_branch(self, name):
        text = self.fresh()
        if name not in self.branches:
            self.live.refuses(NameUnknown, Push(text, on=name))
            return
        path = [*self.branches[name], text]
        self.at[self.live.do(Push(text, on=name)).id] = path
        self.branches[name] = path

    @rule(n=st.integers(1, 4))
    def pop(self, n):
        path = self.head
        popped = [text_of(frame) for frame in self.live.do(Pop(n))]
        assert popped == path[::-1][:n]
        left = path[: len(path) - len(popped)]
        if self.attached is None:
            self.detached = left
        else:
            self.branches[self.attached] = left

    @rule(n=st.integers(1, 4), name=NAMES)
    def pop_on_a_branch(self, n, name):
        if name in self.branches:
            path = self.branches[name]
            popped = [text_of(frame) for frame in self.live.do(Pop(n, on=name))]
            assert popped == path[::-1][:n]
            self.branches[name] = path[: len(path) - len(popped)]

    @rule(name=NAMES)
    def goto_a_name(self, name):
        if name in self.branches:
            self.live.do(Goto(name))
            self.attached = name
        elif name in self.checkpoints:
            self.live.do(Goto(name))
            self.attached, self.detached = None, self.checkpoints[name]
        else:
            self.live.refuses(NameUnknown, Goto(name))

    @rule(frame=FRAMES)
    def goto_a_frame(self, frame):
        path = self.target(frame)
        if path is not None:
            self.live.do(Goto(frame))
            self.attached, self.detached = None, path
        else:
            self.live.refuses(FrameUnknown, Goto(frame))

    @rule(frame=FRAMES, name=st.none() | NAMES, with_text=st.booleans(), attach=st.booleans())
    def fork(self, frame, name, with_text, attach):
        text = self.fresh() if with_text else ""
        command = Fork(frame, name, text, attach=attach)
        below = self.target(frame)
        if below is None or name in self.names():
            self.live.refuses(Refused, command)
            return
        path = [*below, text] if with_text else below
        made = self.live.do(command)
        if path:
            assert text_of(made) == path[-1]
            assert made.forked_from == ((frame or None) if with_text else self.live.state.table.get(frame).forked_from)
            self.at[made.id] = path
        else:
            assert made is None
        name = name or self.free(f"b{made.id if made else 0}")
        self.branches[name] = path
        if attach:
            self.attached = name

    @rule(name=NAMES, frame=st.none() | FRAMES)
    def checkpoint(self, name, frame):
        path = self.head if frame is None else self.target(frame)
        command = Checkpoint(name) if frame is None else Checkpoint(name, frame)
        if name in self.names() or not path:
            self.live.refuses(Refused, command)
        else:
            self.live.do(command)
            self.checkpoints[name] = path

    @rule(name=NAMES, new=NAMES)
    def rename(self, name, new):
        if name not in self.names():
            self.live.refuses(NameUnknown, RenameBranch(name, new))
        elif new in self.names():
            self.live.refuses(NameTaken, (RenameBranch if name in self.branches else RenameCheckpoint)(name, new))
        elif name in self.checkpoints:
            self.live.do(RenameCheckpoint(name, new))
            self.checkpoints[new] = self.checkpoints.pop(name)
        else:
            self.live.do(RenameBranch(name, new))
            self.branches[new] = self.branches.pop(name)
            self.attached = new if self.attached == name else self.attached

    @rule(name=NAMES)
    def delete(self, name):
        if name in self.checkpoints:
            self.live.do(DeleteCheckpoint(name))
            del self.checkpoints[name]
        elif name not in self.branches:
            self.live.refuses(NameUnknown, DeleteBranch(name))
        elif name == self.attached:
            self.live.refuses(BranchAttached, DeleteBranch(name))
        else:
            self.live.do(DeleteBranch(name))
            del self.branches[name]

    @rule()
    def restart(self):
        replayed = self.live.replayed()
        assert picture(replayed) == picture(self.live.state)
        self.live.state = replayed

    @rule()
    def take_the_stack(self):
        self.taken.append((self.live.state.stack(), self.head))

    @rule()
    def save(self):
        self.live.save()

    @rule(newest=st.booleans())
    def recover(self, newest):
        number = -1 if newest else -2
        recovered = self.live.recovered(number)
        assert picture(recovered) == picture(self.live.state)
        self.live.state = self.live.recovered(number)

    @precondition(lambda self: self.at)
    @rule()
    def prune(self):
        prune(self.live)
        table = self.live.state.table
        live = live_frames(self.live.state)
        assert {frame_id for frame_id in self.at if table.get(frame_id)} == live
        assert {
            frame for path in (self.head, *self.branches.values(), *self.checkpoints.values()) for frame in path
        } == {text_of(table.get(frame)) for frame in live}
        self.at = {frame_id: texts for frame_id, texts in self.at.items() if frame_id in live}

    @invariant()
    def every_path_is_the_model_s(self):
        state = self.live.state
        assert [text_of(frame) for frame in state.stack()] == self.head
        assert state.attached == self.attached
        assert {name: texts_at(state, head) for name, head in state.branches.items()} == self.branches
        assert {name: texts_at(state, head) for name, head in state.checkpoints.items()} == self.checkpoints
        assert len(state.stack()) == len(self.head)

    def teardown(self):
        for stack, texts in self.taken:
            assert [text_of(frame) for frame in stack] == texts
        for frame_id, texts in self.at.items():
            assert texts_at(self.live.state, frame_id) == texts


def text_of(frame) -> str:
    return frame.turns[0].blocks[0].text


def texts_at(state, head) -> list[str]:
    return [text_of(frame) for frame in reversed(state.table.path(head))]


StateMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestStateMachine = StateMachine.TestCase
