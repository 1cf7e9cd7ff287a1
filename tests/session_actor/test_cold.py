"""Cold frames: what recovery left on the disk is made again from few records, and reads as if it had been there."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from session_actor.blocks import CallRef, ToolCall
from session_actor.commands import (
    AddAssistant,
    AddToolResult,
    AddUser,
    Checkpoint,
    Configure,
    Fork,
    Goto,
    HoldCall,
    Pop,
    Push,
)
from session_actor.errors import (
    CallAlreadyAnswered,
    CallUnknown,
    FrameUnknown,
    FrameUnreadable,
    JournalCorrupt,
    Refused,
    StoreClosed,
    StoreCorrupt,
)
from session_actor.persistence import errors as store
from session_actor.server.cold import Shelf
from session_actor.service_errors import SessionDeleted
from session_actor.stack import Stack
from session_actor.state.decide import decide
from session_actor.state.history import history_of
from session_actor.state.keys import Repeat
from session_actor.supervisors import Refusal

from .live import Archive, Live, cold, in_memory, picture, prune


def long(n: int) -> Live:
    """A session with `n` pushed frames, of which every third is a question, every third an answer."""
    live = Live()
    for number in range(1, n + 1):
        live.do(Push(f"q{number}" if number % 3 == 1 else "", f"a{number}" if number % 3 == 2 else ""))
    return live


def test_a_cold_frame_is_made_from_its_block_and_no_more():
    live = long(100)
    state, archive = cold(live)

    assert state.table.get(70) == live.state.table.get(70)
    assert archive.reads == [list(range(64, 71))]
    assert in_memory(state.table) == list(range(64, 71))
    assert state.table.get(66) == live.state.table.get(66)
    assert len(archive.reads) == 1


@pytest.mark.parametrize("frame_id", [1, 31, 32, 33, 63, 64, 100])
def test_every_frame_comes_back_as_it_was(frame_id):
    live = long(100)
    assert cold(live)[0].table.get(frame_id) == live.state.table.get(frame_id)


def test_what_a_frame_inherits_comes_back_over_forks_pops_and_instructions():
    live = Live()
    live.do(Configure("be kind"))
    live.do(AddUser("do it"))
    live.do(AddAssistant("", [ToolCall("a", "t"), ToolCall("b", "t")]))
    live.do(HoldCall("b"))
    for number in range(40):
        live.do(Push(f"on {number}", "x"))
    live.do(Pop(7))
    live.do(Configure(model="m"))
    live.do(Fork(4, user_input="elsewhere", branch="idea"))
    live.do(AddToolResult("b", "done"))
    whole = live.state.table
    for frame_id in range(1, live.state.next_id):
        assert cold(live)[0].table.get(frame_id) == whole.get(frame_id)
    assert cold(live)[0].table.get(44).in_force == whole.get(1).instructions


def test_frames_share_the_instructions_that_were_read():
    live = Live()
    live.do(Configure("be kind"))
    for _ in range(100):
        live.do(Push("x"))
    state, archive = cold(live)

    assert state.table.get(70).in_force is state.table.get(99).in_force
    assert archive.reads == [list(range(64, 71)), [1], list(range(96, 100))]


def without_places(live: Live) -> Live:
    live.records = [
        (kind, data.split(b',"place"')[0] + b"}" if b',"place"' in data else data, seq, at_us)
        for kind, data, seq, at_us in live.records
    ]
    return live


async def test_a_long_way_down_is_read_and_made_in_pieces():
    live = without_places(long(5_000))
    state, archive = cold(live)
    archive.gives_way = True
    reading = asyncio.create_task(state.table.load((5_000,)))
    made = [0]
    while not reading.done():
        await asyncio.sleep(0)
        made.append(len(in_memory(state.table)))
    await reading

    assert state.table.get(5_000) == live.state.table.get(5_000)
    assert made[-1] == 5_000
    assert max(after - before for before, after in pairwise(made)) <= 512
    assert max(len(ids) for ids in archive.reads) < 600


def test_records_without_a_place_are_read_down_to_where_there_is_one():
    """Records that were made before there were keyframes."""
    live = without_places(long(100))
    assert picture(live.replayed()) == picture(live.state)
    state, archive = cold(live)

    assert state.table.get(70) == live.state.table.get(70)
    assert in_memory(state.table) == list(range(1, 71))
    assert len(archive.reads) == 2


def test_a_copied_history_is_made_from_its_large_records_once():
    source = long(100)
    copy = Live("copy")
    for event, _ in history_of(source.state):
        copy.record(event)
    state, archive = cold(copy)

    assert state.table.get(70) == source.state.table.get(70)
    assert state.table.get(5) == source.state.table.get(5)
    assert len(archive.reads) == 1


def test_an_id_that_was_passed_over_or_pruned_is_not_looked_for():
    live = long(100)
    live.do(Goto(10))
    live.do(Push("other"))
    live.do(Goto("main"))
    live.do(Pop(60))
    prune(live)
    state, archive = cold(live)

    assert state.table.get(70) is None
    assert state.table.get(500) is None
    assert archive.reads == []
    assert len(state.table) == len(live.state.table) == 41


def test_a_lost_record_is_said_to_be_lost_and_nothing_is_made_up():
    live = long(100)
    state, archive = cold(live)
    del archive.by_frame[64]

    with pytest.raises(StoreCorrupt, match=r"'user-42'.* frame 70 ") as caught:
        state.table.get(70)
    assert isinstance(caught.value, Refusal)
    assert state.table.slot(70) is None
    assert state.table.get(40) == live.state.table.get(40)


# --- stacks ---


def test_the_length_and_the_newest_frame_of_a_cold_stack_read_one_block():
    live = long(1_000)
    state, archive = cold(live)
    stack = state.stack()

    assert (len(stack), stack.top, bool(stack)) == (1_000, live.state.table.get(1_000), True)
    assert len(archive.reads) == 1


def test_a_place_in_a_cold_stack_reads_one_block():
    live = long(1_000)
    state, archive = cold(live)
    stack, whole = state.stack(), live.state.stack()

    assert (stack[0], stack[500], stack[-400]) == (whole[0], whole[500], whole[-400])
    assert len(archive.reads) == 4
    assert sum(map(len, archive.reads)) < 4 * 33
    for wrong in (1_000, -1_001):
        with pytest.raises(IndexError):
            stack[wrong]


def test_a_place_below_forks_is_found_from_run_to_run():
    live = long(200)
    live.do(Fork(150, user_input="x", branch="one"))
    for _ in range(100):
        live.do(Push("y"))
    live.do(Fork(250, user_input="z", branch="two"))
    state, archive = cold(live)
    stack, whole = state.stack(), live.state.stack()

    assert stack[20] == whole[20]
    assert len(archive.reads) <= 5
    assert tuple(stack) == tuple(whole)


def test_whether_a_frame_is_on_a_cold_stack_is_told_without_listing_it():
    live = long(1_000)
    live.do(Goto(500))
    live.do(Push("other"))
    state, archive = cold(live)

    assert live.state.table.get(300) in state.stack()
    assert live.state.table.get(600) not in state.stack()
    assert "no frame" not in state.stack("main")
    assert len(archive.reads) < 10


def test_a_cold_stack_is_listed_in_long_reads():
    live = long(2_000)
    state, archive = cold(live)

    assert state.stack().frames() == live.state.stack().frames()
    assert len(archive.reads) < 10


async def test_load_reads_the_whole_stack_and_only_that():
    live = long(200)
    live.do(Fork(40, user_input="x", branch="one"))
    state, archive = cold(live)
    stack = state.stack()

    assert await stack.load() is stack
    reads = len(archive.reads)
    assert stack.frames() == live.state.stack().frames()
    assert (len(archive.reads), state.table.slot(100)) == (reads, None)
    assert Stack(state.table, None) == await Stack(state.table, None).load()


# --- commands ---


def test_a_pop_into_cold_frames_reads_them_and_the_head_below():
    live = long(200)
    state, archive = cold(live)
    event, *_ = decide(state, Pop(70))

    assert event == decide(live.state, Pop(70))[0]
    assert state.table.slot(130) is not None
    assert len(archive.reads) <= 4


@pytest.mark.parametrize("unit", ["step", "exchange"])
def test_pops_of_other_units_find_the_same_as_in_memory(unit):
    live = long(200)
    assert decide(cold(live)[0], Pop(20, unit=unit)) == decide(live.state, Pop(20, unit=unit))


def test_what_a_command_shows_is_in_memory_when_it_is_decided():
    live = long(100)
    live.do(Checkpoint("c", 20))
    live.do(Fork(50, branch="b", attach=False))
    for command in (Goto("c"), Goto("b"), Goto(70), Fork(80, branch="x"), Fork("c", branch="x"), Checkpoint("x", "b")):
        state, _ = cold(live)
        event, *_ = decide(state, command)
        frame_id = next(getattr(event, name) for name in ("to", "at", "frame") if hasattr(event, name))
        assert state.table.slot(frame_id) == live.state.table.get(frame_id)


def test_a_push_on_a_cold_branch_reads_its_head():
    live = long(100)
    live.do(Fork(50, branch="b", attach=False))
    state, _ = cold(live)

    assert decide(state, Push("x", on="b")) == decide(live.state, Push("x", on="b"))
    assert state.table.slot(50) is not None


def test_an_answer_is_given_again_from_cold_frames():
    live = long(100)
    live.do(Pop(80, key="k"))
    state, _ = cold(live)

    again = decide(state, Pop(80, key="k"))
    assert isinstance(again, Repeat)
    assert again == decide(live.state, Pop(80, key="k"))


def test_calls_are_found_and_answered_in_cold_frames():
    live = Live()
    live.do(AddAssistant("", [ToolCall("a", "t", "{}"), ToolCall("b", "t")]))
    live.do(AddToolResult("a", "one"))
    live.do(HoldCall("b"))
    for _ in range(100):
        live.do(Push("x"))
    state, _ = cold(live)

    assert state.pending_calls() == live.state.pending_calls()
    assert decide(state, AddToolResult(CallRef(1, 0), "one")) == decide(live.state, AddToolResult(CallRef(1, 0), "one"))
    with pytest.raises(CallAlreadyAnswered):
        decide(state, AddToolResult("a", "two"))
    with pytest.raises(CallUnknown):
        decide(state, AddToolResult("z", "two"))


# --- trouble ---

TROUBLE = [
    (store.JournalCorrupt("journals/x", 7, 3), JournalCorrupt),
    (store.StoreClosed("closed"), StoreClosed),
    (store.SessionTombstoned("user-42"), SessionDeleted),
    (OSError(5, "Input/output error"), FrameUnreadable),
]


@pytest.mark.parametrize(("met", "raised"), TROUBLE, ids=lambda value: getattr(value, "__name__", ""))
def test_a_read_that_fails_is_a_refusal_and_changes_nothing(met, raised):
    live = long(100)
    state, archive = cold(live)
    before = in_memory(state.table)
    archive.trouble = met

    for read in (lambda: decide(state, Goto(70)), lambda: state.stack()[3], lambda: state.table.path(100)):
        with pytest.raises(raised) as caught:
            read()
        assert isinstance(caught.value, Refusal)
    assert in_memory(state.table) == before
    archive.trouble = None
    assert state.table.get(70) == live.state.table.get(70)


def test_what_the_disk_said_is_kept_and_no_content_is():
    error = FrameUnreadable("user-42", OSError(5, "Input/output error"))

    assert "Input/output error" in str(error)
    assert "'user-42'" in str(error)
    assert isinstance(error, Refused)


def test_a_record_that_cannot_be_read_is_a_refusal():
    live = long(40)
    kind, _, seq, at_us = live.records[-1]
    live.records[-1] = (kind, b'{"id":40,"parent":"x"}', seq, at_us)
    state, _ = cold(live)

    with pytest.raises(FrameUnreadable):
        state.table.get(40)


def test_frames_unknown_are_unknown_also_when_others_are_cold():
    state, _ = cold(long(40))
    with pytest.raises(FrameUnknown):
        decide(state, Goto(41))


async def test_a_shelf_is_held_by_its_tables_alone():
    live = long(40)
    shelf = Shelf("user-42", Archive(live.records))
    state, _ = cold(live, shelf)

    assert list(shelf.tables) == [state.table]
    del state
    assert list(shelf.tables) == []
