"""The records on disk, to the letter: one of every kind, and of every field that was added to one."""

from __future__ import annotations

import msgspec

from session_actor.blocks import CallRef, Image, Native, Reference, Text, Thinking, ToolCall, ToolResult
from session_actor.budget.readings import Ceiling, Failure, Key, Learned, Quote
from session_actor.compaction.facts import Fact, Facts
from session_actor.compaction.overlays import Overlay, Pin
from session_actor.compaction.verdict import Reason, Verdict
from session_actor.events import (
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
)
from session_actor.frames import Artifact, Hold, Instructions, OpenCall, Retraction, Tool, Turn, Usage
from session_actor.state.history import created
from session_actor.window.marks import Mark, Unseen

# What is on disk: none of these lines may ever change, only new ones may come.
GOLDEN = [
    (
        created("user-42", {"lang": "de"}, Source("user-1", 7))[0],
        '{"session":"user-42","metadata":{"lang":"de"},"source":{"session":"user-1","frame":7}}',
    ),
    (created("user-42", None, Source("user-1", 0))[0], '{"session":"user-42","source":{"session":"user-1","frame":0}}'),
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
    (Moved(None), '{"to":null}'),
    (Moved(None, "main"), '{"to":null,"branch":"main"}'),
    (Branched("idea", 7), '{"name":"idea","at":7}'),
    (Branched("idea", None), '{"name":"idea","at":null}'),
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
    (
        HistoryCopied(
            (CopiedFrame(9, Pushed(3, 1, "hi")),), HistorySealed((("main", 3),), (("here", 1),), 3, "main", 4)
        ),
        (
            '{"frames":[{"at_us":9,"frame":{"id":3,"parent":1,"user_input":"hi"}}],"sealed":{"branches":[["main",3]],'
            '"checkpoints":[["here",1]],"head":3,"attached":"main","next_id":4}}'
        ),
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
            '{"quote":[["gpt-5","openai_chat",1,0],2,9,120,800,15,935,1028,130,80,false],"allowance":9000,'
            '"max_output_tokens":4096,"hash":"abababababababababababababababab","made":{"number":2,"at":9,"cut":5,'
            '"allowance":9000,"stubs":5,"kept":[2],"artifacts":[{"path":"a.py","how":"read"}]}}'
        ),
    ),
    (
        Requested(
            Quote(Key("gpt-5", "anthropic", 1), 3, 12, 120, 800, 15, 935, 1028, 130, 80, anchored=True),
            9000,
            4096,
            "ab" * 16,
            made=Mark(
                3,
                12,
                8,
                9000,
                8,
                turn=2,
                portions=((5, 0, 1),),
                stub_turn=1,
                unseen=(Unseen("anthropic", (9, 0, 3)),),
            ),
        ),
        (
            '{"quote":[["gpt-5","anthropic",1,0],3,12,120,800,15,935,1028,130,80,true],"allowance":9000,'
            '"max_output_tokens":4096,"hash":"abababababababababababababababab","made":{"number":3,"at":12,"cut":8,'
            '"allowance":9000,"stubs":8,"turn":2,"portions":[[5,0,1]],"stub_turn":1,'
            '"unseen":[["anthropic",[9,0,3]]]}}'
        ),
    ),
    (
        HistorySealed(
            (("main", None),),
            (),
            None,
            "main",
            5,
            learned=Learned((), (Ceiling(Key("gpt-5", "anthropic", 1), 700),), (Failure("gpt-5", "gemini", 1.5, 900),)),
        ),
        (
            '{"branches":[["main",null]],"checkpoints":[],"head":null,"attached":"main","next_id":5,'
            '"learned":[[],[[["gpt-5","anthropic",1,0],700,false]],[["gpt-5","gemini",1.5,900]]]}'
        ),
    ),
    (
        RequestRefused(7, True, 210000, 195904, (3,)),
        '{"request":7,"too_long":true,"tokens":210000,"limit":195904,"astray":[3]}',
    ),
    (RequestRefused(7, True, shorter=False), '{"request":7,"too_long":true,"shorter":false}'),
    (
        Pushed(6, 5, turns=(), retracted=Retraction("the disk is large", "it is full")),
        '{"id":6,"parent":5,"turns":[],"retracted":{"assumption":"the disk is large","note":"it is full"}}',
    ),
    (
        Compacted(
            2,
            40,
            Verdict(True, (Reason("identifier_missing", "warning", 3),), "## Goal", 64, 1),
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
    (
        HistorySealed(
            (("main", 3),), (), 3, "main", 9, retractions=((7, Retraction("the disk is large", "it is full")),)
        ),
        (
            '{"branches":[["main",3]],"checkpoints":[],"head":3,"attached":"main","next_id":9,"retractions":[[7,'
            '{"assumption":"the disk is large","note":"it is full"}]]}'
        ),
    ),
]
