"""Tool calls: open, answered, held, interrupted, repeated ids; all from the path."""

from __future__ import annotations

import pytest

from session_actor.blocks import CallRef, Image, Text, Thinking, ToolCall, ToolResult
from session_actor.commands import (
    AddAssistant,
    AddToolResult,
    AddUser,
    Checkpoint,
    Fork,
    Goto,
    HoldCall,
    Pop,
    Push,
)
from session_actor.errors import CallAlreadyAnswered, CallAmbiguous, CallUnknown, InvalidArgument
from session_actor.frames import Turn

from .live import Live


@pytest.fixture
def live() -> Live:
    """Frame 1 asks, frame 2 calls a, b and c."""
    live = Live()
    live.do(AddUser("do it"))
    live.do(AddAssistant("doing", [ToolCall("a", "read", '{"n": 1}'), ToolCall("b", "read"), ToolCall("c", "write")]))
    return live


def pending(live: Live, on: str | None = None) -> list[str]:
    return [call.id for call in live.state.pending_calls(on)]


def test_calls_are_pending_with_all_that_is_needed_to_run_them(live):
    first, *_, last = live.state.pending_calls()

    assert (first.ref, first.id, first.name, first.arguments, first.held) == (
        CallRef(2, 0),
        "a",
        "read",
        '{"n": 1}',
        None,
    )
    assert (last.ref, last.name, last.arguments) == (CallRef(2, 2), "write", "{}")
    assert pending(live) == ["a", "b", "c"]


def test_an_empty_session_has_no_pending_calls():
    assert Live().state.pending_calls() == []


def test_a_result_answers_its_call_by_id_or_by_ref(live):
    by_id = live.do(AddToolResult("b", "two"))
    by_ref = live.do(AddToolResult(CallRef(2, 0), "one", is_error=True))

    assert by_id.turns == (Turn("tool", (ToolResult("b", (Text("two"),), False, CallRef(2, 1)),)),)
    assert by_ref.turns == (Turn("tool", (ToolResult("a", (Text("one"),), True, CallRef(2, 0)),)),)
    assert pending(live) == ["c"]


@pytest.mark.parametrize("call", ["d", "", CallRef(2, 3), CallRef(1, 0), CallRef(9, 0), CallRef(0, 0)])
def test_a_result_or_a_hold_for_an_unknown_call_is_refused(live, call):
    live.refuses(CallUnknown, AddToolResult(call, "x"))
    live.refuses(CallUnknown, HoldCall(call))


@pytest.mark.parametrize("call", [None, 7, ("a",), CallRef("2", 0), CallRef(2, -1)])
def test_what_names_no_call_is_refused(live, call):
    live.refuses(InvalidArgument, AddToolResult(call, "x"))


def test_a_call_of_an_empty_session_is_unknown():
    Live().refuses(CallUnknown, AddToolResult("a", "x"))


def test_the_same_result_twice_gives_the_same_frame(live):
    first = live.do(AddToolResult("a", "one"))
    live.do(AddToolResult("b", "two"))

    assert live.do(AddToolResult("a", [Text("one")])) is first
    assert live.do(AddToolResult(CallRef(2, 0), "one")) is first
    assert live.state.head == 4


def test_another_result_for_an_answered_call_is_refused(live):
    live.do(AddToolResult("a", "one"))

    refused = live.refuses(CallAlreadyAnswered, AddToolResult("a", "other"))
    assert refused.frame == 3
    live.refuses(CallAlreadyAnswered, AddToolResult("a", "one", is_error=True))
    live.refuses(CallAlreadyAnswered, HoldCall("a"))


def test_popping_a_result_opens_its_call_again(live):
    live.do(AddToolResult("a", "one"))
    live.do(Pop(1))

    assert pending(live) == ["a", "b", "c"]
    assert live.do(AddToolResult("a", "other")).id == 4


def test_a_later_turn_interrupts_open_calls(live):
    live.do(AddToolResult("a", "one"))
    live.do(AddUser("never mind"))

    assert pending(live) == []


@pytest.mark.parametrize(
    "later", [AddAssistant("going on"), Push("x"), Push(assistant_output="x"), Push(turns=[Turn("system", ())])]
)
def test_any_turn_that_is_no_result_is_a_later_turn(live, later):
    live.do(later)

    assert pending(live) == []


@pytest.mark.parametrize("frame", [Push(assumptions=["x"]), Push("x", turns=[]), Checkpoint("x"), Fork(branch="x")])
def test_what_adds_no_turn_leaves_calls_open(live, frame):
    live.do(frame)

    assert pending(live) == ["a", "b", "c"]


def test_an_interrupted_call_still_takes_its_result(live):
    live.do(AddUser("never mind"))
    late = live.do(AddToolResult("b", "late"))

    assert late.turns[0].blocks[0].ref == CallRef(2, 1)
    assert live.do(AddToolResult("b", "late")) is late
    assert live.refuses(CallAlreadyAnswered, AddToolResult("b", "later")).frame == late.id


def test_a_held_call_stays_open_over_later_turns(live):
    live.do(HoldCall("b"))
    live.do(AddUser("meanwhile"))
    live.do(AddAssistant("yes?", [ToolCall("d", "read")]))

    assert [(call.id, call.held) for call in live.state.pending_calls()] == [("b", "approval"), ("d", None)]
    live.do(AddToolResult("b", "approved"))
    assert pending(live) == ["d"]


def test_a_hold_is_of_the_path_and_can_be_given_another_reason(live):
    live.do(HoldCall("b"))
    live.do(HoldCall("b", "budget"))
    assert [call.held for call in live.state.pending_calls()] == [None, "budget", None]

    live.do(Goto(2))
    assert [call.held for call in live.state.pending_calls()] == [None, None, None]
    live.refuses(InvalidArgument, HoldCall("b", ""))
    live.refuses(InvalidArgument, HoldCall("b", 7))


def test_holding_an_interrupted_call_opens_it(live):
    live.do(AddUser("wait"))
    live.do(HoldCall("a"))

    assert pending(live) == ["a"]


def test_a_result_of_another_branch_answers_nothing_here(live):
    live.do(Fork(2, branch="idea", attach=False))
    live.do(AddToolResult("a", "on main"))
    there = live.do(AddToolResult("a", "on idea", on="idea"))

    assert there.parent == 2
    assert pending(live) == pending(live, "idea") == ["b", "c"]
    live.refuses(CallAlreadyAnswered, AddToolResult("a", "on main", on="idea"))


def test_a_call_of_another_branch_is_unknown_here(live):
    live.do(Fork(1, user_input="other"))

    live.refuses(CallUnknown, AddToolResult("a", "x"))
    live.refuses(CallUnknown, AddToolResult(CallRef(2, 0), "x"))
    assert live.do(AddToolResult("a", "x", on="main")).parent == 2


def test_an_id_used_again_means_the_open_call_and_then_the_newest(live):
    live.do(AddToolResult("a", "first"))
    live.do(AddAssistant("", [ToolCall("a", "read")]))
    second = live.do(AddToolResult("a", "second"))

    assert second.turns[0].blocks[0].ref == CallRef(4, 0)
    assert live.do(AddToolResult("a", "second")) is second
    live.refuses(CallAlreadyAnswered, AddToolResult("a", "first"))
    assert live.do(AddToolResult(CallRef(2, 0), "first")).id == 3


def test_several_open_calls_of_one_id_are_told_apart_by_ref(live):
    live.do(AddAssistant("", [ToolCall("same", "read"), ToolCall("same", "read")]))

    assert "have the id 'same';" in str(live.refuses(CallAmbiguous, AddToolResult("same", "x")))
    live.do(AddToolResult(CallRef(3, 1), "second"))
    assert live.do(AddToolResult("same", "first")).turns[0].blocks[0].ref == CallRef(3, 0)


def test_results_inside_pushed_turns_find_their_calls_on_the_path(live):
    turns = [Turn("tool", (ToolResult("a", (Text("one"),)), ToolResult("", (), False, CallRef(2, 1))))]
    frame = live.do(Push(turns=turns))

    assert [(block.call_id, block.ref) for block in frame.turns[0].blocks] == [
        ("a", CallRef(2, 0)),
        ("b", CallRef(2, 1)),
    ]
    assert pending(live) == ["c"]


def test_results_inside_pushed_turns_find_their_calls_in_the_same_frame():
    live = Live()
    step = Turn("assistant", (ToolCall("a", "read"), ToolCall("b", "read"))), Turn("tool", (ToolResult("a"),))
    frame = live.do(Push(turns=[*step, *step, Turn("tool", (ToolResult("b"),)), *step]))

    refs = [block.ref for turn in frame.turns if turn.role == "tool" for block in turn.blocks]
    assert refs == [CallRef(1, 0), CallRef(1, 2), CallRef(1, 3), CallRef(1, 4)]
    assert [call.ref for call in live.replayed().pending_calls()] == [CallRef(1, 5)]


@pytest.mark.parametrize(
    ("error", "results"),
    [
        (CallUnknown, [ToolResult("d")]),
        (CallUnknown, [ToolResult("a", ref=CallRef(3, 0))]),
        (CallAlreadyAnswered, [ToolResult("a"), ToolResult("a")]),
        (CallAlreadyAnswered, [ToolResult("a"), ToolResult("a", ref=CallRef(2, 0))]),
    ],
)
def test_results_inside_pushed_turns_are_refused_like_single_ones(live, error, results):
    live.refuses(error, Push(turns=[Turn("tool", tuple(results))]))
    live.refuses(error, Fork(2, turns=[Turn("tool", tuple(results))]))


def test_two_results_of_one_call_made_in_the_same_frame_are_refused():
    turns = [Turn("assistant", (ToolCall("a", "read"),)), Turn("tool", (ToolResult("a"), ToolResult("a")))]

    Live().refuses(CallAlreadyAnswered, Push(turns=turns))


@pytest.mark.parametrize(
    ("role", "block"),
    [
        ("user", ToolCall("a", "read")),
        ("tool", ToolCall("a", "read")),
        ("assistant", ToolResult("a")),
        ("user", ToolResult("a")),
        ("user", Thinking("hm")),
        ("tool", Text("x")),
        ("tool", Image(url="https://example.org/x.png")),
    ],
)
def test_a_block_in_the_wrong_turn_is_refused(live, role, block):
    live.refuses(InvalidArgument, Push(turns=[Turn(role, (block,))]))


@pytest.mark.parametrize("block", [ToolCall("a", "read"), ToolResult("a"), Thinking("x"), 7])
def test_a_result_holds_only_what_a_tool_can_show(live, block):
    live.refuses(InvalidArgument, AddToolResult("a", [block]))


def test_arguments_are_kept_as_the_model_wrote_them():
    live = Live()
    written = ['{"a":  1.0, "b": "\\u00e9"}', '{"a": 1', "", "\ud800", '{"a":1}']
    calls = [ToolCall(str(place), "t", text) for place, text in enumerate(written)]
    live.do(AddAssistant("", calls, stop_reason="tool_use"))

    assert [call.arguments for call in live.replayed().pending_calls()] == written


def test_arguments_given_as_a_dict_become_json():
    live = Live()
    live.do(AddAssistant("", [ToolCall("a", "t", {"path": "ä", "n": [1, 2.5, None, True]})]))

    assert live.state.pending_calls()[0].arguments == '{"path":"ä","n":[1,2.5,null,true]}'


@pytest.mark.parametrize("arguments", [{1: 2}, {"a": float("nan")}, {"a": b"x"}, {"a": {1}}, [1], 7, None])
def test_arguments_that_json_cannot_hold_are_refused(arguments):
    Live().refuses(InvalidArgument, AddAssistant("", [ToolCall("a", "t", arguments)]))


def test_adding_a_result_walks_only_to_where_its_call_is():
    live = Live()
    for _ in range(50):
        live.do(Push("a", "b"))
    live.do(AddAssistant("", [ToolCall("a", "t")]))
    read: set[int] = set()

    class Watched(list):
        def __getitem__(self, index):
            read.add(range(len(self))[index])
            return super().__getitem__(index)

    live.state.table.frames = Watched(live.state.table.frames)
    live.do(AddToolResult("a", "x"))
    live.do(AddToolResult("a", "x"))
    assert live.refuses(CallUnknown, AddToolResult("never", "x"))
    assert len(live.state.pending_calls()) == 0
    live.state.table.frames = list(live.state.table.frames)

    assert min(read) >= 51


@pytest.mark.parametrize(
    ("stop_reason", "arguments", "is_open"),
    [
        ("tool_use", '{"a": 1', True),
        ("tool_use", "", True),
        (None, '{"a": {"b": 1}', False),
        (None, "no JSON", False),
        (None, "", True),
        (None, " ", True),
        (None, "[1]", True),
        (None, '{"a": 1}', True),
        ("max_tokens", "", False),
        ("length", "[1]", False),
        ("MAX_TOKENS", '{"a": 1', False),
        ("aborted", '{"a": 1}', True),
        ("incomplete", "{}", True),
        ("error", "[" * 100_000, False),
        (None, "[" * 100_000 + "]" * 100_000, True),
    ],
)
def test_a_call_that_its_reply_broke_off_in_is_not_open(stop_reason, arguments, is_open):
    live = Live()
    live.do(AddUser("do it"))
    live.do(AddAssistant("", [ToolCall("a", "t", arguments), ToolCall("b", "t")], stop_reason=stop_reason))

    assert pending(live) == (["a", "b"] if is_open else ["b"])
    assert live.replayed().pending_calls() == live.state.pending_calls()
    assert [call.ref.index for call in live.state.pending_calls()] == ([0, 1] if is_open else [1])


def test_a_call_that_its_reply_broke_off_in_still_takes_a_result_once():
    live = Live()
    live.do(AddAssistant("", [ToolCall("a", "t", '{"a": 1')], stop_reason="max_tokens"))
    assert pending(live) == []
    frame = live.do(AddToolResult("a", "cut off", is_error=True))

    assert frame.given_turns[0].blocks[0].ref == CallRef(1, 0)
    assert live.do(AddToolResult(CallRef(1, 0), "cut off", is_error=True)) == frame
    live.refuses(CallAlreadyAnswered, AddToolResult("a", "another"))
    assert pending(live) == []
    live.do(Pop())
    assert pending(live) == []
