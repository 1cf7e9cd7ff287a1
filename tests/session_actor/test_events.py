"""Records: stable names, exact values, and a state that is nothing but their fold."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.blocks import CallRef, Image, Native, Reference, Text, Thinking, ToolCall, ToolResult
from session_actor.budget.readings import Key, Quote
from session_actor.commands import AddAssistant, AddToolResult, AddUser, Configure, Fork, Goto, HoldCall, Pop, Push
from session_actor.compaction.facts import Fact, Facts
from session_actor.compaction.verdict import Reason, Verdict
from session_actor.errors import RecordUnknown, RecordUnreadable
from session_actor.events import (
    KINDS,
    Added,
    Branched,
    Checkpointed,
    Compacted,
    CopiedFrame,
    Created,
    Ended,
    Gap,
    HistoryCopied,
    HistorySealed,
    Moved,
    NameDeleted,
    Pinned,
    Place,
    Popped,
    Pruned,
    Pushed,
    Renamed,
    Requested,
    RequestRefused,
    Source,
    Uncompacted,
    decode_event,
)
from session_actor.frames import Artifact, Hold, Instructions, OpenCall, Retraction, Tool, Turn, Usage
from session_actor.history import created
from session_actor.marks import Mark
from session_actor.overlays import Overlay, Pin
from session_actor.persistence import encode_record_data

from .live import Live, cold, picture

# What is on disk: none of these lines may ever change, only new ones may come.
GOLDEN = [
    (
        created("user-42", {"lang": "de"}, Source("user-1", 7))[0],
        '{"session":"user-42","metadata":{"lang":"de"},"source":{"session":"user-1","frame":7}}',
    ),
    (Created(session="user-42"), '{"session":"user-42"}'),
    (Pushed(1, None, "hi", "there"), '{"id":1,"user_input":"hi","assistant_output":"there"}'),
    (
        Pushed(2, 1, "", "", ("a",), ("d",), (), True, key="k", args="00"),
        '{"id":2,"parent":1,"assumptions":["a"],"decisions":["d"],"turns":[],"pinned":true,"key":"k","args":"00"}',
    ),
    (
        Pushed(3, 2, turns=(Turn("user", (Text("hi"), Image(data=b"\x00", media_type="image/png"))),), branch="idea"),
        (
            '{"id":3,"parent":2,"turns":[{"role":"user","blocks":[{"type":"text","text":"hi"},'
            '{"type":"image","data":"AA==","media_type":"image/png"}]}],"branch":"idea"}'
        ),
    ),
    (
        Pushed(
            4,
            3,
            turns=(
                Turn(
                    "assistant",
                    (
                        Thinking("hm", "sig"),
                        ToolCall("c1", "read", '{"a":1}'),
                        Native("anthropic", None, msgspec.Raw(b'{"x":1}')),
                    ),
                    Usage(10, 2, 3, 4, 1, msgspec.Raw(b"{}")),
                    "m",
                    "anthropic",
                    "tool_use",
                ),
            ),
            new_branch="b4",
            forked_from=3,
        ),
        (
            '{"id":4,"parent":3,"turns":[{"role":"assistant","blocks":[{"type":"thinking","text":"hm","signature":"sig"},'
            '{"type":"tool_call","id":"c1","name":"read","arguments":"{\\"a\\":1}"},'
            '{"type":"native","dialect":"anthropic","model":null,"raw":{"x":1}}],'
            '"usage":{"input_tokens":10,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4,"reasoning_tokens":1,'
            '"raw":{}},"model":"m","dialect":"anthropic","stop_reason":"tool_use"}],"new_branch":"b4","forked_from":3}'
        ),
    ),
    (
        Pushed(
            5,
            4,
            turns=(Turn("tool", (ToolResult("c1", (Text("x"),), True, CallRef(4, 0)),)),),
            new_branch="b5",
            attach=False,
        ),
        (
            '{"id":5,"parent":4,"turns":[{"role":"tool","blocks":[{"type":"tool_result","call_id":"c1",'
            '"blocks":[{"type":"text","text":"x"}],"is_error":true,"ref":[4,0]}]}],"new_branch":"b5","attach":false}'
        ),
    ),
    (
        Pushed(6, 5, turns=(), instructions=Instructions("be kind", (Tool("t", "d", msgspec.Raw(b"{}")),), "m")),
        (
            '{"id":6,"parent":5,"turns":[],"instructions":{"system":"be kind",'
            '"tools":[{"name":"t","description":"d","schema":{}}],"model":"m"}}'
        ),
    ),
    (
        Pushed(7, 6, turns=(), holds=(Hold(CallRef(4, 0), "approval"),)),
        '{"id":7,"parent":6,"turns":[],"holds":[{"ref":[4,0],"reason":"approval"}]}',
    ),
    (Pushed(5, None, "hi"), '{"id":5,"user_input":"hi"}'),
    (Added(8, user_input="hi", key="k", args="00"), '{"id":8,"user_input":"hi","key":"k","args":"00"}'),
    (
        Added(64, None, "hi", place=Place(12, 30, 31, 6, 7)),
        '{"id":64,"user_input":"hi","place":[12,30,31,6,7,[],null]}',
    ),
    (
        Added(96, user_input="hi", place=Place(12, 30, 31, 6, 7, (), Usage(5, 3, 2))),
        (
            '{"id":96,"user_input":"hi","place":[12,30,31,6,7,[],'
            '{"input_tokens":5,"output_tokens":3,"cache_read_tokens":2}]}'
        ),
    ),
    (
        Added(9, turns=(), artifacts=(Artifact("a/b.py", "modified"),)),
        '{"id":9,"turns":[],"artifacts":[{"path":"a/b.py","how":"modified"}]}',
    ),
    (
        Added(
            10,
            turns=(
                Turn("assistant", (Text("x", "c2ln"), ToolCall("", "t", "{}", "c2ln")), Usage(9, 1, anchor_tokens=4)),
            ),
            answers=7,
        ),
        (
            '{"id":10,"turns":[{"role":"assistant","blocks":[{"type":"text","text":"x","signature":"c2ln"},'
            '{"type":"tool_call","id":"","name":"t","arguments":"{}","signature":"c2ln"}],'
            '"usage":{"input_tokens":9,"output_tokens":1,"anchor_tokens":4}}],"answers":7}'
        ),
    ),
    (
        Added(11, turns=(Turn("user", (Reference("x", "y"),)),)),
        '{"id":11,"turns":[{"role":"user","blocks":[{"type":"reference","text":"x","source":"y"}]}]}',
    ),
    (Pushed(8, 7, "\ud800"), '{"id":8,"parent":7,"user_input":{"$esc":"\\\\ud800"}}'),
    (
        Pushed(
            32, 31, "hi", place=Place(12, 30, 31, 6, 7, (OpenCall(CallRef(4, 0), "approval"), OpenCall(CallRef(5, 1))))
        ),
        '{"id":32,"parent":31,"user_input":"hi","place":[12,30,31,6,7,[[[4,0],"approval"],[[5,1],null]],null]}',
    ),
    (Popped(8, None, 8), '{"head":8,"to":null,"n":8}'),
    (Popped(8, 7, 1, "idea"), '{"head":8,"to":7,"n":1,"branch":"idea"}'),
    (Moved(7), '{"to":7}'),
    (Moved(None, "main"), '{"to":null,"branch":"main"}'),
    (Branched("idea", 7), '{"name":"idea","at":7}'),
    (Branched("idea", 7, attach=False), '{"name":"idea","at":7,"attach":false}'),
    (Checkpointed("here", 7), '{"name":"here","frame":7}'),
    (Renamed("here", "there"), '{"name":"here","new":"there"}'),
    (NameDeleted("there"), '{"name":"there"}'),
    (
        HistoryCopied((CopiedFrame(9, Pushed(1, None, "hi")),)),
        '{"frames":[{"at_us":9,"frame":{"id":1,"user_input":"hi"}}]}',
    ),
    (
        HistorySealed((("main", None), ("idea", 1)), (("here", 1),), 1, None, 5),
        '{"branches":[["main",null],["idea",1]],"checkpoints":[["here",1]],"head":1,"attached":null,"next_id":5}',
    ),
    (Pruned(((2, 5), (9, 9))), '{"dropped":[[2,5],[9,9]]}'),
    (Ended("done"), '{"reason":"done"}'),
    (Gap(3, "damaged"), '{"first":3,"why":"damaged"}'),
    (
        Requested(
            Quote(Key("gpt-5", "openai_chat", 1), 2, 9, 120, 800, 15, 935, 1028, 130, 80, anchored=False),
            9000,
            4096,
            "ab" * 16,
            made=Mark(2, 9, 5, 9000, 5, (2,), (Artifact("a.py", "read"),)),
        ),
        (
            '{"quote":[["gpt-5","openai_chat",1,0],2,9,120,800,15,935,1028,130,80,false,1.0],"allowance":9000,'
            '"max_output_tokens":4096,"hash":"abababababababababababababababab","made":{"number":2,"at":9,"cut":5,'
            '"allowance":9000,"stubs":5,"kept":[2],"artifacts":[{"path":"a.py","how":"read"}]}}'
        ),
    ),
    (
        RequestRefused(7, True, 210000, 195904, (3,)),
        '{"request":7,"too_long":true,"tokens":210000,"limit":195904,"astray":[3]}',
    ),
    (
        Pushed(6, 5, turns=(), retracted=Retraction("the disk is large", "it is full")),
        '{"id":6,"parent":5,"turns":[],"retracted":{"assumption":"the disk is large","note":"it is full"}}',
    ),
    (
        Compacted(
            2,
            40,
            Verdict(True, (Reason("identifier_missing", "warning", 3),), "## Goal", 64),
            Facts(constraints=(Fact("Never push.", 3),), languages=("en",)),
            (7,),
            "00ff",
            2,
            9_000,
            1_200,
            Usage(8_000, 300),
            "idea",
        ),
        (
            '{"generation":2,"covered_frame":40,"verdict":{"ok":true,"reasons":[{"code":"identifier_missing",'
            '"severity":"warning","count":3}],"sealed":"## Goal","tokens":64,"gate_version":1},'
            '"facts":{"constraints":[["Never push.",3,"",1,0,0]],"languages":["en"]},"kept":[7],"hash":"00ff",'
            '"planned":2,'
            '"tokens_before":9000,"tokens_after":1200,"usage":{"input_tokens":8000,"output_tokens":300},"on":"idea"}'
        ),
    ),
    (Uncompacted(2), '{"generation":2}'),
    (Pinned(7, True, (7, 8)), '{"frame":7,"pinned":true,"frames":[7,8]}'),
    (
        HistorySealed(
            (("main", 3),),
            (),
            3,
            "main",
            4,
            overlays=(Overlay(2, 40, "## Goal", Facts(), (7,), 2, "00ff", 9_000, 1_200, 0, 50),),
            generation=2,
            pins=((7, Pin(True, (7, 8), 0, 50)),),
        ),
        (
            '{"branches":[["main",3]],"checkpoints":[],"head":3,"attached":"main","next_id":4,"overlays":['
            '{"generation":2,'
            '"covered_frame":40,"summary":"## Goal","facts":{},"kept":[7],"planned":2,"hash":"00ff",'
            '"tokens_before":9000,'
            '"tokens_after":1200,"seq":0,"below":50}],"generation":2,"pins":[[7,{"pinned":true,"frames":[7,8],"seq":0,'
            '"below":50}]]}'
        ),
    ),
]


@pytest.mark.parametrize(("event", "data"), GOLDEN, ids=lambda value: getattr(value, "kind", ""))
def test_a_record_is_written_and_read_as_ever(event, data):
    assert encode_record_data(event).decode() == data
    assert decode_event(event.kind, data.encode()) == event


@pytest.mark.parametrize(
    ("kind", "data", "event"),
    [
        (
            "added",
            '{"id":64,"user_input":"hi","place":[12,30,31,6,7,[]]}',
            Added(64, user_input="hi", place=Place(12, 30, 31, 6, 7)),
        ),
        (
            "pushed",
            '{"id":32,"parent":31,"user_input":"hi","place":[12,30,31,6,7,[[[4,0],"approval"],[[5,1],null]]]}',
            Pushed(
                32,
                31,
                "hi",
                place=Place(12, 30, 31, 6, 7, (OpenCall(CallRef(4, 0), "approval"), OpenCall(CallRef(5, 1)))),
            ),
        ),
    ],
    ids=["on top", "elsewhere"],
)
def test_a_record_without_the_usage_of_its_stack_is_read_as_ever(kind, data, event):
    assert decode_event(kind, data.encode()) == event
    assert event.place.spent is None


def test_the_kinds_are_those_of_ever():
    assert list(KINDS) == [
        "session_created",
        "pushed",
        "added",
        "popped",
        "moved",
        "branched",
        "checkpointed",
        "renamed",
        "name_deleted",
        "session_ended",
        "history_copied",
        "history_sealed",
        "pruned",
        "requested",
        "request_failed",
        "compacted",
        "uncompacted",
        "pinned",
        "store.gap",
    ]
    assert {kind for kind, event in KINDS.items() if event.kind != kind} == set()
    assert {event.kind for event, _ in GOLDEN} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.kind)
def test_every_record_can_hold_a_key_and_shows_no_content(kind):
    assert {"key", "args"} <= set(kind.__struct_fields__)
    assert "private" not in repr(Ended("private"))
    assert not kind.__struct_config__.gc


def test_a_field_of_a_newer_version_is_passed_over():
    assert decode_event("moved", b'{"to":7,"why":"because","branch":"main"}') == Moved(7, "main")
    assert decode_event("pushed", b'{"id":1,"later":{"x":[1]}}') == Pushed(1)


def test_a_kind_of_a_newer_version_is_refused_by_name():
    with pytest.raises(RecordUnknown, match="'archived'") as caught:
        decode_event("archived", b"{}")

    assert caught.value.kind == "archived"


@pytest.mark.parametrize("data", [b"{}", b'{"to":"7"}', b"[]", b"", b'{"to":7', b'{"to":7,"branch":7}'])
def test_data_that_is_not_of_its_kind_is_refused_without_showing_it(data):
    with pytest.raises(RecordUnreadable) as caught:
        decode_event("moved", data)

    assert caught.value.kind == "moved"


def test_the_time_stands_in_the_record_alone():
    live = Live()
    frame = live.do(Push("a"))
    kind, data, seq, at_us = live.records[-1]

    assert json.loads(data) == {"id": 1, "user_input": "a"}
    assert (kind, seq, frame.at_us) == ("pushed", 2, at_us)


def test_text_that_makes_the_turns_is_stored_once():
    live = Live()
    live.do(Push("x" * 1_000, "y" * 1_000))

    assert len(live.records[-1][1]) < 2_100


COMMANDS = st.lists(
    st.builds(Push, st.text(st.characters(), max_size=5), st.text(max_size=5))
    | st.builds(AddUser, st.text(max_size=5))
    | st.builds(
        lambda calls: AddAssistant("", [ToolCall(call, "t") for call in calls]), st.lists(st.sampled_from("abc"))
    )
    | st.builds(AddToolResult, st.sampled_from("abc"), st.sampled_from("xy"))
    | st.builds(HoldCall, st.sampled_from("abc"))
    | st.builds(Pop, st.integers(1, 4), st.sampled_from(["frame", "step", "exchange"]))
    | st.builds(Goto, st.integers(1, 9))
    | st.builds(Fork, st.integers(1, 9), st.none(), st.sampled_from(["", "x"]))
    | st.builds(Configure, st.none() | st.text(max_size=3))
    | st.builds(lambda text, key: Push(text, key=key), st.sampled_from("xy"), st.sampled_from("kl")),
    max_size=25,
)


@given(COMMANDS)
def test_replaying_the_records_gives_the_same_state(commands):
    live = Live()
    for command in commands:
        try:
            live.do(command)
        except live.REFUSED:
            continue

    assert picture(live.replayed()) == picture(live.state)
    assert list(live.replayed().stack()) == list(live.state.stack())
    assert live.replayed().pending_calls() == live.state.pending_calls()


@given(COMMANDS)
def test_the_open_calls_are_those_that_a_walk_over_the_path_finds(commands):
    live = Live()
    for command in commands:
        try:
            live.do(command)
        except live.REFUSED:
            continue
        assert [call.ref for call in live.state.pending_calls()] == walked(live)


def walked(live: Live) -> list[CallRef]:
    """The open calls by the rule in words, from the root to the head."""
    current: list[CallRef] = []
    held: set[CallRef] = set()
    answered: set[CallRef] = set()
    for frame in live.state.stack():
        number = 0
        for turn in frame.turns:
            if turn.role != "tool":
                current = []
            for block in turn.blocks:
                if isinstance(block, ToolCall):
                    current.append(CallRef(frame.id, number))
                    number += 1
                elif isinstance(block, ToolResult):
                    answered.add(block.ref)
        held |= {hold.ref for hold in frame.holds}
    waiting = (set(current) | held) - answered
    return sorted(waiting, key=lambda ref: (ref.frame, ref.index))


def told() -> Live:
    """A session of some blocks, with forks and with several roots."""
    live = Live()
    for number in range(40):
        live.do(Push(f"{number}"))
    live.do(Fork(20, user_input="elsewhere", branch="idea"))
    for _ in range(30):
        live.do(AddUser("on"))
    live.do(Pop(100))
    live.do(Push("from the start", key="k"))
    live.do(Push("on"))
    return live


def test_a_record_names_a_parent_that_is_not_the_frame_before():
    live = told()
    kinds = {event.id: kind for kind, data, *_ in live.records if hasattr(event := decode_event(kind, data), "parent")}
    assert [frame_id for frame_id, kind in kinds.items() if kind == "pushed"] == [1, 41, 72]
    assert {*kinds.values()} == {"pushed", "added"}
    assert [frame.parent for frame in live.replayed().stack()] == [None, 72]
    assert picture(live.replayed()) == picture(live.state)


def test_records_that_all_name_their_parents_give_the_same_state():
    """As they were made before there was a kind of its own for most of them."""
    live = told()
    expected = picture(live.state)
    for place, (kind, data, seq, at_us) in enumerate(live.records):
        if kind == "added":
            fields = msgspec.json.decode(data)
            named = msgspec.json.encode({"id": fields["id"], "parent": fields["id"] - 1, **fields})
            live.records[place] = ("pushed", named, seq, at_us)
    assert {kind for kind, *_ in live.records} == {"session_created", "pushed", "popped"}
    assert picture(live.replayed()) == expected
    assert picture(cold(live)[0]) == expected
