"""The rules of the stack: fork, pop, and a handle of its own on one branch."""

from __future__ import annotations

import pytest

from session_actor.commands import (
    AddAssistant,
    AddUser,
    Checkpoint,
    Configure,
    Fork,
    Goto,
    Pin,
    Pop,
    Push,
)
from session_actor.errors import (
    BranchUnknown,
    EmptyStack,
    FrameUnknown,
    InvalidArgument,
    NameTaken,
)
from session_actor.state.decide import decide

from .live import Live, picture

# --- rule 4: fork ---


def test_fork_adds_one_frame_and_attaches_its_branch(live):
    frame = live.do(Fork(1, user_input="x", branch="idea"))

    assert (frame.id, frame.parent, frame.forked_from, frame.depth) == (4, 1, 1, 2)
    assert (live.state.attached, live.state.head) == ("idea", 4)
    assert live.state.branches == {"main": 3, "idea": 4}
    assert live.ids() == [1, 4]


def test_fork_without_push_fields_only_makes_the_branch(live):
    assert live.do(Fork(2)).id == 2

    assert (live.state.attached, live.state.head, live.state.next_id) == ("b2", 2, 4)
    assert live.state.branches == {"main": 3, "b2": 2}


@pytest.mark.parametrize(
    "fields",
    [
        {"user_input": "x"},
        {"assistant_output": "x"},
        {"assumptions": ["x"]},
        {"decisions": ["x"]},
        {"turns": []},
        {"pinned": True},
    ],
)
def test_any_push_field_makes_fork_add_a_frame(live, fields):
    assert live.do(Fork(2, **fields)).id == 4
    assert live.state.attached == "b4"


def test_fork_without_a_frame_forks_from_the_head(live):
    assert live.do(Fork(user_input="x")).forked_from == 3
    Live().refuses(EmptyStack, Fork(user_input="x"))


def test_fork_accepts_any_frame_by_id_object_or_name(live):
    live.do(Checkpoint("here", 2))
    live.do(Pop(3))
    assert live.do(Fork("here", user_input="x")).parent == 2
    assert live.do(Fork(live.state.table.get(3), user_input="y")).parent == 3
    live.refuses(FrameUnknown, Fork(9))
    live.refuses(EmptyStack, Fork("main"))


def test_fork_without_attaching_leaves_the_session_where_it_is(live):
    live.do(Fork(1, branch="idea", attach=False))
    live.do(Fork(1, user_input="x", branch="other", attach=False))

    assert (live.state.attached, live.state.head) == ("main", 3)
    assert live.state.branches == {"main": 3, "idea": 1, "other": 4}


def test_a_fork_keeps_the_order_of_its_frames(live):
    live.do(Fork(2, user_input="x"))
    live.do(Push("y"))
    live.do(Fork(user_input="z"))

    assert [frame.user_input for frame in live.replayed().stack()] == ["a", "b", "x", "y", "z"]


# --- 0: the empty stack ---


def test_a_fork_at_0_begins_a_stack_of_its_own(live):
    frame = live.do(Fork(0, user_input="x", branch="anew"))

    assert (frame.id, frame.parent, frame.forked_from, frame.depth) == (4, None, None, 1)
    assert (live.state.attached, live.state.branches) == ("anew", {"main": 3, "anew": 4})
    assert live.ids() == [4]


def test_a_fork_at_0_without_push_fields_makes_an_empty_branch(live):
    assert live.do(Fork(0)) is None
    assert (live.state.attached, live.state.head, live.state.branches) == ("b0", None, {"main": 3, "b0": None})
    assert live.do(Fork(0)) is None
    assert live.state.attached == "b0-2"
    assert live.do(Push("x")).parent is None
    assert live.state.branches == {"main": 3, "b0": None, "b0-2": 4}


def test_a_fork_at_0_without_attaching_leaves_the_session_where_it_is(live):
    live.do(Fork(0, "empty", attach=False))
    live.do(Fork(0, "anew", "x", attach=False))
    live.do(Fork(0, "aside", "y", on="main"))

    assert (live.state.attached, live.state.head) == ("main", 3)
    assert live.state.branches == {"main": 3, "empty": None, "anew": 4, "aside": 5}
    live.refuses(NameTaken, Fork(0, "empty"))
    live.refuses(InvalidArgument, Fork(0, "other", turns="no"))


def test_an_empty_or_detached_session_can_be_forked_at_0():
    live = Live()
    live.do(Fork(0, "idea"))
    live.do(Goto(0))
    assert live.do(Fork(0, "other", "x")).id == 1
    assert live.state.branches == {"main": None, "idea": None, "other": 1}
    assert picture(live.replayed()) == picture(live.state)


def test_from_before_any_frame_is_from_its_parent_or_0(live):
    for number, frame in enumerate(live.state.stack().frames(), 4):
        edited = live.do(Fork(frame.parent or 0, user_input="edited"))
        assert (edited.id, edited.parent, edited.depth) == (number, frame.parent, frame.depth)


@pytest.mark.parametrize("command", [Fork(None), Fork(None, user_input="x"), Checkpoint("here", None), Goto(None)])
def test_no_frame_is_not_taken_for_the_head(live, command):
    assert "frame.parent or 0" in str(live.refuses(InvalidArgument, command))


@pytest.mark.parametrize("command", [Checkpoint("here", 0), Pin(0)])
def test_what_needs_a_frame_is_refused_at_0(live, command):
    live.refuses(EmptyStack, command)


# --- rule 5: pop ---


def test_pop_returns_at_most_n_frames_newest_first(live):
    assert [frame.id for frame in live.do(Pop(2))] == [3, 2]
    assert [frame.id for frame in live.do(Pop(5))] == [1]
    assert live.do(Pop()) == []
    assert live.state.branches == {"main": None}


@pytest.mark.parametrize("n", [0, -1, True, 1.0, "1", None])
def test_pop_of_less_than_one_is_an_error(live, n):
    live.refuses(InvalidArgument, Pop(n))


def test_pop_of_an_unknown_unit_is_an_error(live):
    live.refuses(InvalidArgument, Pop(1, "turn"))
    live.refuses(InvalidArgument, Pop(1, ["step"]))


def test_pop_may_cross_a_fork_point_and_moves_this_branch_only(live):
    live.do(Fork(2, user_input="x", branch="idea"))

    assert [frame.id for frame in live.do(Pop(2))] == [4, 2]
    assert live.state.branches == {"main": 3, "idea": 1}
    assert live.ids("main") == [1, 2, 3]


def test_pop_when_detached_moves_the_head_only(live):
    live.do(Goto(3))
    live.do(Pop(1))

    assert (live.state.head, live.state.attached, live.state.branches) == (2, None, {"main": 3})


def test_popped_frames_never_come_back_and_stay_readable_by_id(live):
    popped = live.do(Pop(2))
    live.do(Push("d"))
    state = live.replayed()

    assert [frame.id for frame in state.stack()] == [1, 4]
    assert [state.table.get(frame.id) for frame in popped] == popped


def test_pop_by_exchange_takes_whole_exchanges():
    live = Live()
    live.do(Configure("be kind"))
    for text in "ab":
        live.do(AddUser(text))
        live.do(AddAssistant(text))
    live.do(Configure("be brief"))

    assert [frame.id for frame in live.do(Pop(1, "exchange"))] == [6, 5, 4]
    assert [frame.id for frame in live.do(Pop(9, "exchange"))] == [3, 2]
    assert live.do(Pop(1, "exchange")) == []
    assert live.ids() == [1]


def test_pop_by_step_takes_the_newest_assistant_turn_and_what_lies_above():
    live = Live()
    live.do(AddUser("a"))
    for text in "bc":
        live.do(AddAssistant(text))
    live.do(AddUser("d"))

    assert [frame.id for frame in live.do(Pop(1, "step"))] == [4, 3]
    assert [frame.id for frame in live.do(Pop(2, "step"))] == [2]
    assert live.do(Pop(1, "step")) == []
    assert live.ids() == [1]


@pytest.mark.parametrize("unit", ["frame", "step", "exchange"])
def test_pop_reads_only_the_frames_that_it_pops(unit):
    live = Live()
    for text in "abcdefgh":
        live.do(Push(text, text))
    read: set[int] = set()

    class Watched(list):
        def __getitem__(self, index):
            read.update(range(*index.indices(len(self))) if isinstance(index, slice) else (index,))
            return super().__getitem__(index)

    live.state.table.frames = Watched(live.state.table.frames)
    live.record(decide(live.state, Pop(2, unit))[0])

    assert read - {6} == {8, 7}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 9])
def test_pop_goes_over_forks_and_gaps_between_ids(n):
    live = Live()
    for text in "abcd":
        live.do(Push(text))
    live.do(Pop(1))
    live.do(Push("e"))
    live.do(Push("f"))
    live.do(Fork(5, user_input="g"))
    live.do(Push("h"))
    path = [8, 7, 5, 3, 2, 1]

    assert [frame.id for frame in live.do(Pop(n))] == path[:n]
    assert live.ids() == path[n:][::-1]
    assert picture(live.replayed()) == picture(live.state)


# --- rule 7: a handle of its own on one branch ---


def test_a_command_on_a_branch_moves_only_that_branch(live):
    live.do(Fork(1, branch="idea", attach=False))
    assert live.do(Push("x", on="idea")).parent == 1
    live.do(AddUser("y", on="idea"))
    assert [frame.id for frame in live.do(Pop(1, on="idea"))] == [5]
    live.do(Checkpoint("of idea", on="idea"))
    live.do(Configure("be brief", on="idea"))

    assert (live.state.head, live.state.attached) == (3, "main")
    assert live.state.branches == {"main": 3, "idea": 6}
    assert live.state.checkpoints == {"of idea": 4}
    assert live.state.instructions() is None
    assert live.state.instructions("idea").system == "be brief"


def test_a_command_on_the_attached_branch_moves_the_head_with_it(live):
    live.do(Push("d", on="main"))
    assert live.state.head == 4
    live.do(Pop(2, on="main"))
    assert (live.state.head, live.state.branches) == (2, {"main": 2})


def test_a_command_on_a_branch_while_detached_leaves_the_head(live):
    live.do(Goto(1))
    live.do(Push("d", on="main"))

    assert (live.state.head, live.state.attached, live.state.branches) == (1, None, {"main": 4})


def test_a_fork_on_a_branch_attaches_nothing(live):
    live.do(Fork(1, branch="idea", attach=False))
    live.do(Fork(user_input="x", branch="deeper", on="idea"))

    assert (live.state.head, live.state.attached) == (3, "main")
    assert live.state.branches == {"main": 3, "idea": 1, "deeper": 4}


def test_goto_on_a_branch_is_refused(live):
    live.refuses(InvalidArgument, Goto(1, on="main"))


@pytest.mark.parametrize(
    ("on", "error"), [("nowhere", BranchUnknown), (7, InvalidArgument), (["main"], InvalidArgument)], ids=str
)
def test_a_command_on_no_branch_is_refused(live, on, error):
    live.refuses(error, Push("x", on=on))
    with pytest.raises(error):
        live.state.stack(on)
