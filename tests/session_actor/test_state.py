"""The rules of the stack: names, push and goto, instructions, and what decide and apply refuse."""

from __future__ import annotations

import pytest

from session_actor.commands import (
    Checkpoint,
    Command,
    Configure,
    DeleteBranch,
    DeleteCheckpoint,
    End,
    Fork,
    Goto,
    Pop,
    Push,
    RenameBranch,
    RenameCheckpoint,
)
from session_actor.errors import (
    BranchAttached,
    BranchUnknown,
    CheckpointUnknown,
    EmptyStack,
    FrameUnknown,
    HeadMoved,
    InvalidArgument,
    NameTaken,
    NameUnknown,
    ReplayError,
    SessionEnded,
)
from session_actor.events import (
    Branched,
    Checkpointed,
    CopiedFrame,
    Created,
    HistoryCopied,
    HistorySealed,
    Moved,
    NameDeleted,
    Popped,
    Pushed,
    Renamed,
)
from session_actor.frames import Tool
from session_actor.state.apply import apply
from session_actor.state.decide import decide
from session_actor.state.state import State

from .live import Live, picture

# --- rule 2: names ---


def test_the_first_branch_is_main():
    state = Live().state

    assert (state.attached, state.branches, state.head) == ("main", {"main": None}, None)


def test_branches_and_checkpoints_share_one_namespace(live):
    live.do(Checkpoint("here"))
    live.do(Fork(1, branch="idea"))

    assert live.refuses(NameTaken, Checkpoint("idea")).by == "branch"
    assert live.refuses(NameTaken, Fork(1, branch="here")).by == "checkpoint"
    live.refuses(NameTaken, Checkpoint("here"))
    live.refuses(NameTaken, Fork(1, branch="main", user_input="x"))
    live.refuses(NameTaken, RenameBranch("idea", "here"))
    live.refuses(NameTaken, RenameCheckpoint("here", "main"))


def test_branches_and_checkpoints_are_renamed(live):
    live.do(Checkpoint("here", 2))
    live.do(RenameCheckpoint("here", "there"))
    live.do(RenameBranch("main", "trunk"))
    live.do(Push("d"))

    assert live.state.checkpoints == {"there": 2}
    assert (live.state.branches, live.state.attached) == ({"trunk": 4}, "trunk")
    live.refuses(CheckpointUnknown, RenameCheckpoint("here", "x"))
    live.refuses(BranchUnknown, RenameBranch("main", "x"))
    live.refuses(BranchUnknown, RenameBranch("there", "x"))


def test_branches_and_checkpoints_are_deleted_and_their_frames_stay(live):
    live.do(Checkpoint("here"))
    live.do(Fork(1, branch="idea"))
    live.do(DeleteBranch("main"))
    live.do(DeleteCheckpoint("here"))

    assert (live.state.branches, live.state.checkpoints) == ({"idea": 1}, {})
    assert live.do(Goto(3)).user_input == "c"
    live.refuses(BranchUnknown, DeleteBranch("main"))
    live.refuses(CheckpointUnknown, DeleteCheckpoint("here"))


def test_the_attached_branch_cannot_be_deleted(live):
    assert live.refuses(BranchAttached, DeleteBranch("main")).name == "main"


@pytest.mark.parametrize("name", ["", "x" * 513, None, 7, b"idea"])
def test_an_unusable_name_is_refused(live, name):
    live.refuses(InvalidArgument, Checkpoint(name))
    live.refuses(InvalidArgument, RenameBranch("main", name))
    if name is not None:
        live.refuses(InvalidArgument, Fork(1, branch=name))


def test_any_other_name_is_usable(live):
    for name in ("x" * 512, "\x00", "../etc", "\ud800", "Ä b"):
        live.do(Checkpoint(name))

    assert live.replayed().checkpoints == live.state.checkpoints
    assert len(live.state.checkpoints) == 5


def test_a_checkpoint_needs_a_frame():
    Live().refuses(EmptyStack, Checkpoint("here"))


def test_a_checkpoint_names_any_frame_and_does_not_move(live):
    live.do(Pop(1))
    assert live.do(Checkpoint("popped", 3)).id == 3
    live.do(Checkpoint("here"))
    live.do(Push("d"))

    assert live.state.checkpoints == {"popped": 3, "here": 2}


# --- rule 3: push and goto ---


def test_push_moves_the_head_and_the_attached_branch(live):
    assert live.do(Push("d")).parent == 3
    assert (live.state.head, live.state.branches) == (4, {"main": 4})


def test_goto_a_branch_attaches(live):
    live.do(Fork(1, user_input="x", branch="idea"))
    assert live.do(Goto("main")).id == 3
    live.do(Push("d"))

    assert live.state.attached == "main"
    assert live.state.branches == {"main": 5, "idea": 4}


def test_goto_a_frame_or_a_checkpoint_detaches_even_at_a_tip(live):
    live.do(Checkpoint("tip"))
    for target in (3, live.state.table.get(3), "tip"):
        live.do(Goto("main"))
        assert live.do(Goto(target)).id == 3
        assert live.state.attached is None
        assert live.state.branches == {"main": 3}


def test_a_push_when_detached_makes_a_branch_and_keeps_the_old_tip(live):
    live.do(Goto(1))
    frame = live.do(Push("x"))

    assert (frame.id, frame.parent, frame.forked_from) == (4, 1, None)
    assert (live.state.attached, live.state.branches) == ("b4", {"main": 3, "b4": 4})


def test_a_branch_that_nobody_named_avoids_taken_names(live):
    live.do(Checkpoint("b4"))
    live.do(Goto(1))
    live.do(Push("x"))

    assert live.state.attached == "b4-2"
    assert live.replayed().attached == "b4-2"


def test_goto_reaches_any_frame_also_a_popped_one(live):
    live.do(Pop(2))
    assert live.do(Goto(3)).id == 3
    assert live.ids() == [1, 2, 3]
    assert live.state.branches == {"main": 1}


def test_goto_an_empty_branch_empties_the_stack(live):
    live.do(Pop(3))
    live.do(Goto(2))
    assert live.do(Goto("main")) is None
    assert live.ids() == []


def test_goto_0_empties_the_stack_and_detaches(live):
    assert live.do(Goto(0)) is None
    assert (live.ids(), live.state.attached, live.state.branches) == ([], None, {"main": 3})

    frame = live.do(Push("d"))
    assert (frame.parent, frame.depth, frame.forked_from) == (None, 1, None)
    assert (live.state.attached, live.state.branches) == ("b4", {"main": 3, "b4": 4})
    assert picture(live.replayed()) == picture(live.state)


def test_goto_what_is_not_there_is_refused(live):
    live.refuses(FrameUnknown, Goto(4))
    live.refuses(FrameUnknown, Goto(-1))
    live.refuses(NameUnknown, Goto("nowhere"))
    for target in (None, True, 1.0, ["main"]):
        live.refuses(InvalidArgument, Goto(target))


def test_a_frame_of_another_session_is_refused(live):
    other = Live().do(Push("other"))

    live.refuses(FrameUnknown, Goto(other))
    live.refuses(FrameUnknown, Fork(other))


def test_a_frame_from_before_a_restart_is_known(live):
    frame = live.state.table.get(2)
    assert decide(live.replayed(), Goto(frame)) == (Moved(2), 256, frame)


# --- instructions ---


def test_instructions_are_frames_and_come_back_with_goto_fork_and_pop(live):
    live.do(Configure("be kind", [Tool("read")], "m1"))
    live.do(Configure(model="m2"))

    assert (live.state.instructions().system, live.state.instructions().model) == ("be kind", "m2")
    assert live.state.instructions().tools == (Tool("read"),)
    live.do(Goto(4))
    assert live.state.instructions().model == "m1"
    live.do(Goto(3))
    assert live.state.instructions() is None
    live.do(Goto("main"))
    live.do(Pop(1))
    assert live.state.instructions().model == "m1"
    live.do(Push("d"))
    assert live.state.table.get(6).in_force is live.state.table.get(4).instructions


def test_an_empty_instruction_takes_it_back(live):
    live.do(Configure("be kind", [Tool("read")], "m1"))
    frame = live.do(Configure("", [], ""))

    assert (frame.instructions.system, frame.instructions.tools, frame.instructions.model) == ("", (), None)


# --- decide and apply ---


def test_expect_head_refuses_when_the_head_is_elsewhere(live):
    moved = live.refuses(HeadMoved, Push("d", expect_head=2))
    assert (moved.expected, moved.actual) == (2, 3)
    live.refuses(HeadMoved, Pop(1, expect_head=0))
    live.refuses(InvalidArgument, Push("d", expect_head="3"))
    live.refuses(InvalidArgument, Push("d", expect_head=True))
    assert live.do(Push("d", expect_head=3)).id == 4
    assert Live().do(Push("a", expect_head=0)).id == 1
    assert Live().refuses(HeadMoved, Push("a", expect_head=1)).actual is None


def test_expect_head_on_a_branch_means_that_branch(live):
    live.do(Fork(1, branch="idea", attach=False))
    live.refuses(HeadMoved, Push("x", on="idea", expect_head=3))
    assert live.do(Push("x", on="idea", expect_head=1)).parent == 1


def test_an_ended_session_can_be_read_and_not_changed(live):
    live.do(End("enough"))

    assert live.state.ended == "enough"
    assert live.ids() == [1, 2, 3]
    for command in (Push("d"), Pop(), Goto(1), Checkpoint("x"), End()):
        live.refuses(SessionEnded, command)
    live_again = Live()
    live_again.refuses(InvalidArgument, End(""))


def test_what_is_no_command_is_a_bug_of_the_caller(live):
    with pytest.raises(TypeError):
        decide(live.state, Command())


def test_ids_are_never_used_again(live):
    live.do(Pop(3))
    live.do(Push("d"))
    live.do(Goto(2))

    assert live.do(Push("e")).id == 5


def test_a_state_shows_no_content():
    live = Live("user-42", {"name": "kept private"})

    assert live.state.metadata == {"name": "kept private"}
    assert "kept private" not in repr(live.state)


@pytest.mark.parametrize(
    "event",
    [
        Created(session="again"),
        Pushed(3, 2),
        Pushed(4, 9),
        Pushed(4, 3, branch="nowhere"),
        Pushed(4, 3, new_branch="main"),
        Popped(2, 1, 1),
        Popped(3, 1, 1),
        Popped(3, None, 4),
        Popped(3, 2, 1, "nowhere"),
        Moved(4),
        Moved(2, "main"),
        Moved(2, "nowhere"),
        Branched("main", 1),
        Branched("idea", 4),
        Branched("main", None),
        Checkpointed("main", 1),
        Checkpointed("here", 4),
        Renamed("nowhere", "x"),
        Renamed("main", "main"),
        NameDeleted("main"),
        NameDeleted("nowhere"),
        HistoryCopied((CopiedFrame(1, Pushed(4, 3)), CopiedFrame(1, Pushed(4, 3)))),
        HistoryCopied((CopiedFrame(1, Pushed(4, 3)), CopiedFrame(1, Pushed(6, 5)))),
        HistorySealed((("main", 9),), (), None, "main", 9),
        HistorySealed((("main", 3),), (), 3, "other", 9),
        HistorySealed((("main", 3),), (), 3, "main", 2),
    ],
    ids=lambda event: f"{event.kind}",
)
def test_a_record_that_does_not_fit_changes_nothing(live, event):
    before = picture(live.state)
    with pytest.raises(ReplayError) as caught:
        apply(live.state, event, 5, 0)

    assert picture(live.state) == before
    assert (caught.value.kind, caught.value.seq) == (event.kind, 5)


def test_a_new_state_has_no_birth():
    assert State().created_at_us is None
    assert Live().state.created_at_us == 1_700_000_001_000_001
