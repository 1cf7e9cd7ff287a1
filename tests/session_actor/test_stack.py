"""A stack is a value: the path from the root to a head."""

from __future__ import annotations

import pytest

from session_actor.blocks import ToolCall
from session_actor.commands import (
    AddAssistant,
    AddToolResult,
    AddUser,
    Checkpoint,
    Configure,
    DeleteBranch,
    Fork,
    Goto,
    Pop,
    Push,
)
from session_actor.stack import Stack
from session_actor.state.table import Table

from .live import Live, prune


@pytest.fixture
def live() -> Live:
    return Live()


def test_an_empty_stack_is_empty(live):
    stack = live.state.stack()

    assert (len(stack), bool(stack), list(stack), stack.top, stack.head) == (0, False, [], None, None)
    assert stack.turns() == stack.exchanges() == stack.steps() == ()
    with pytest.raises(IndexError):
        stack[-1]


def test_a_stack_lists_its_frames_root_first(live):
    frames = [live.do(Push(text)) for text in "abc"]
    stack = live.state.stack()

    assert list(stack) == frames
    assert [stack[0], stack[-1], stack[1], stack[-2]] == [frames[0], frames[2], frames[1], frames[1]]
    assert stack[1:] == tuple(frames[1:])
    assert list(reversed(stack)) == frames[::-1]
    assert stack.index(frames[1]) == 1
    assert frames[2] in stack
    assert "a" not in stack
    assert len(stack) == 3
    assert stack.top is frames[2]


def test_a_stack_crosses_forks_in_order(live):
    for text in "abc":
        live.do(Push(text))
    live.do(Fork(2, user_input="d"))
    live.do(Push("e"))

    assert [frame.user_input for frame in live.state.stack()] == ["a", "b", "d", "e"]
    assert [frame.user_input for frame in live.state.stack("main")] == ["a", "b", "c"]


def test_taking_a_stack_and_its_length_touch_no_frame():
    class Untouchable(list):
        def __getitem__(self, index):
            raise AssertionError("taking a stack read a frame")

    live = Live()
    for text in "abc":
        live.do(Push(text))
    live.state.table.frames = Untouchable(live.state.table.frames)

    assert live.state.stack().head == 3


def test_a_taken_stack_survives_everything_that_happens_later(live):
    for text in "abcd":
        live.do(Push(text))
    taken = live.state.stack()
    live.do(Pop(3))
    live.do(Push("other"))
    live.do(Goto(1))
    live.do(DeleteBranch("main"))
    live.do(Push("more"))
    prune(live)

    assert [frame.user_input for frame in taken] == ["a", "b", "c", "d"]
    assert live.state.table.get(4) is None


def test_stacks_of_equal_frames_are_equal_also_after_a_restart(live):
    for text in "abc":
        live.do(Push(text))
    taken = live.state.stack()
    live.do(Push("d"))

    assert live.state.stack() == live.replayed().stack()
    assert hash(live.state.stack()) == hash(live.replayed().stack())
    assert taken != live.state.stack()
    assert taken != [1, 2, 3]


def test_a_stack_shows_no_content():
    live = Live()
    live.do(Push("kept private"))

    assert repr(live.state.stack()) == "Stack(1 frames, head=1)"


def test_turns_are_those_of_all_frames(live):
    live.do(Configure("be kind"))
    live.do(Push("a", "b"))
    live.do(AddUser("c"))

    assert [turn.role for turn in live.state.stack().turns()] == ["user", "assistant", "user"]


def test_an_exchange_reaches_from_a_user_turn_to_the_next(live):
    live.do(Configure("be kind"))
    live.do(AddUser("a"))
    live.do(AddAssistant("b"))
    live.do(AddAssistant("c"))
    live.do(Push("d", "e"))

    assert [[frame.id for frame in group] for group in live.state.stack().exchanges()] == [[2, 3, 4], [5]]


def test_a_step_is_an_assistant_turn_with_the_results_of_its_calls(live):
    live.do(AddUser("a"))
    live.do(AddAssistant("b", [ToolCall("1", "t"), ToolCall("2", "t")]))
    live.do(AddToolResult("1", "x"))
    live.do(AddToolResult("2", "y"))
    live.do(AddAssistant("c"))
    live.do(AddUser("d"))
    live.do(AddAssistant("e"))

    assert [[frame.id for frame in group] for group in live.state.stack().steps()] == [[2, 3, 4], [5], [7]]


def test_a_stack_stands_alone():
    live = Live()
    live.do(Push("a"))
    live.do(Checkpoint("here"))
    stack = live.state.stack()
    del live

    assert [frame.user_input for frame in stack] == ["a"]
    assert Stack(Table(), None) == Stack(Table(), None)
