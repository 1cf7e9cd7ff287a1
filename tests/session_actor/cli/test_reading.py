"""`list`, `show`, `tree`, `replay`, `diff` and `stats`: what they find."""

from __future__ import annotations

import asyncio
import json
import tracemalloc

import pytest

from session_actor import SessionService
from session_actor.__main__ import main
from session_actor.cli.segments import segments_of
from session_actor.commands import Checkpoint, Fork, Goto, Pop, Push
from session_actor.replay import Replay, read_store

from ..live import Live
from ..replay.stored import image, put

# --- list -------------------------------------------------------------------------------------------------------------


def test_sessions_are_listed_by_id_or_by_what_is_asked_for(run, made):
    ids = [line["id"] for line in run("list", made, "--json").objects]
    assert ids == sorted(ids)
    assert len(ids) == 3
    assert [line["id"] for line in run("list", made, "--json", "--prefix", "chat/").objects] == ["chat/7"]
    assert [line["id"] for line in run("list", made, "--json", "--sort", "records", "--last", "1").objects] == [
        "user-42"
    ]
    by_age = [line["id"] for line in run("list", made, "--json", "--sort", "created").objects]
    assert (by_age[0], by_age[-1]) == ("user-42", "chat/7")


def test_listing_reads_no_journal(run, folder):
    for path in folder.glob("journals/*/*"):
        path.write_bytes(b"unreadable")
    assert len(run("list", folder, "--json").objects) == 3
    assert run("stats", folder, "--json").objects[0]["sessions"] == 3


# --- show -------------------------------------------------------------------------------------------------------------


def test_a_stack_is_shown_frame_by_frame(run, made):
    head, *frames = run("show", made, "user-42", "--json").objects
    assert (head["head"], head["branch"], head["frames"], head["metadata"]) == (8, "main", 6, {"user": "mira"})
    assert head["budget"]["pressure"] == "green"
    assert [frame["id"] for frame in frames] == [1, 2, 3, 4, 5, 8]
    assert frames[0]["system"] == "You read gauges."
    (call,) = [block for block in frames[2]["turns"][0]["blocks"] if block["type"] == "tool_call"]
    assert (call["name"], json.loads(call["arguments"])) == ("read", {"station": "Mole"})
    assert frames[4]["turns"][0]["blocks"][1] == {
        "type": "reference",
        "text": "trust me",
        "source": "https://example.org",
    }


@pytest.mark.parametrize(
    ("options", "frames"),
    [
        (["--last", "2"], [5, 8]),
        (["--last", "3"], [4, 5, 8]),
        (["--last", "99"], [1, 2, 3, 4, 5, 8]),
        (["--branch", "ship"], [1, 2, 3, 4, 6]),
        (["--branch", "ship", "--last", "2"], [4, 6]),
        (["--at", "checkpoint:before"], [1, 2, 3, 4]),
        (["--at", "frame:2"], [1, 2]),
        (["--at", "first"], []),
        (["--at", "4"], [1, 2, 3]),
        (["--at", "2999-01-01"], [1, 2, 3, 4, 5, 8]),
        (["--frame", "7", "--frame", "9"], [7, 9]),
        (["--find", "SECRET RES"], [4]),
        (["--find", "mole"], [3]),
        (["--frame", "7", "--find", "assumption"], [7]),
    ],
    ids=str,
)
def test_what_is_shown_can_be_chosen(run, made, options, frames):
    ran = run("show", made, "user-42", "--json", *options)
    assert ran.code == 0
    assert [line["id"] for line in ran.objects[1:]] == frames
    assert [int(line.split()[2]) for line in run("show", made, "user-42", *options).lines if line[:2] == "──"] == frames


def test_every_frame_of_a_long_stack_is_shown_and_found(run, tmp_path):
    live = Live()
    for number in range(1, 301):
        live.do(Push(user_input=f"text {number}."))
    root = asyncio.run(put(tmp_path / "store", live))
    head, *frames = run("show", root, "user-42", "--json").objects
    assert [frame["id"] for frame in frames] == list(range(1, 301))
    assert head["frames"] == 300
    for number in (64, 65, 66, 130, 195, 300):
        found = run("show", root, "user-42", "--json", "--find", f"text {number}.").objects[1:]
        assert [frame["id"] for frame in found] == [number]


def test_a_text_that_nobody_said_is_answered_with_one(run, made):
    ran = run("show", made, "user-42", "--find", "nothing of the kind")
    assert (ran.code, ran.err) == (1, "0 frames found\n")


@pytest.mark.parametrize(
    ("at", "told"),
    [
        *(
            ("99", "records 1 to 15"),
            ("blub", "is no moment"),
            ("frame:99", "frame 99"),
            ("checkpoint:no", "checkpoint"),
        ),
        ("1999-01-01", "time"),
        *((f"{before}{'9' * 5000}", "is no moment") for before in ("", "frame:")),
    ],
)
def test_what_is_no_moment_is_told_in_one_line(run, made, at, told):
    ran = run("show", made, "user-42", "--at", at)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert told in ran.err


# --- tree -------------------------------------------------------------------------------------------------------------


def test_a_tree_is_drawn_with_branches_checkpoints_head_and_pressure(run, made):
    ran = run("tree", made, "user-42")
    assert ran.lines[1:] == [
        "on main, at frame 8 · 9 frames, 1 of them held by nothing",
        ran.lines[2],
        "○ 1-4 (4 frames)  (before)",
        "├─○ 6  [ship] green",
        "├─○ 9  [train] green",
        "○ 5",
        "● 8  [main] green  <- head",
    ]
    assert ran.lines[2].startswith("green: ")


def test_a_tree_of_any_shape_has_every_held_frame_once(tmp_path):
    live = Live()
    for number in range(200):
        live.do(Push(user_input=f"{number}"))
        if number % 7 == 3:
            live.do(Fork(live.state.head, branch=f"b-{number}"))
        if number % 5 == 1:
            live.do(Pop(1 + number % 4))
        if number % 11 == 6:
            live.do(Checkpoint(f"c-{number}"))
            live.do(Goto("main"))
        if number % 13 == 12:
            live.do(Goto(live.state.head - 3))
    root = asyncio.run(put(tmp_path / "store", live))
    with read_store(root) as reader, Replay.of(reader, "user-42") as replay:
        moment = replay.moment
        segments = list(segments_of(moment.state))
        drawn = [frame for each in segments for frame in range(each.first, each.last + 1)]
        held = {frame.id for name in moment.branches for frame in moment.stack(name)}
        held |= {frame for tip in moment.checkpoints.values() for frame in path_of(moment, tip)}
        assert sorted(drawn) == sorted(held | set(path_of(moment, moment.head)))
        assert len(segments) > 20
        for each in segments:
            assert moment.get(each.first).parent == each.parent
            assert each.parent is None or drawn.index(each.parent) < drawn.index(each.first)
        line = [frame for each in segments if each.level == 0 for frame in range(each.first, each.last + 1)]
        assert set(path_of(moment, moment.head)) <= set(line)
        (head,) = [each for each in segments if each.is_head]
        assert head.last == moment.head
        names = {name: each.last for each in segments for name in (*each.branches, *each.checkpoints)}
        assert names == {**{name: head for name, head in moment.branches.items() if head}, **moment.checkpoints}


def path_of(moment, tip):
    found = []
    while tip is not None:
        found.append(tip)
        tip = moment.get(tip).parent
    return found


# --- replay -----------------------------------------------------------------------------------------------------------


def test_without_a_terminal_replay_prints_the_newest_moment(run, made):
    ran = run("replay", made, "user-42")
    assert ran.lines[0].startswith("session user-42 · record 15 of 15 · ")
    assert ran.lines[1:5] == [
        "this record: the head went to frame 8 on main",
        "on main, at frame 8 · 6 frames on the stack",
        "branches: main 8, ship 6, train 9",
        "checkpoints: before 4",
    ]


async def with_an_empty_stack(root):
    live = Live()
    for command in (Push("a"), Push("b"), Fork(0, "empty"), Goto(0), Fork(0, user_input="c"), Push("d")):
        live.do(command)
    return await put(root, live)


def test_what_began_at_the_empty_stack_is_shown(run, tmp_path):
    root = asyncio.run(with_an_empty_stack(tmp_path / "store"))
    told = {seq: run("replay", root, "user-42", "--to", seq).lines[1:4] for seq in (4, 5, 6)}
    assert told == {
        4: [
            "this record: branch empty was made, empty",
            "on empty, empty · 0 frames on the stack",
            "branches: main 2, empty empty",
        ],
        5: [
            "this record: the head went to the empty stack, on no branch",
            "on no branch, empty · 0 frames on the stack",
            "branches: main 2, empty empty",
        ],
        6: [
            "this record: frame 3 was pushed and branch b3 made",
            "on b3, at frame 3 · 1 frame on the stack",
            "branches: main 2, empty empty, b3 3",
        ],
    }
    assert run("replay", root, "user-42", "--to", "frame:0").lines[1] == "this record: the session was made"
    drawn = run("tree", root, "user-42").lines
    assert [line for line in drawn if "●" in line or "○" in line or "is empty" in line] == [
        "[empty] is empty",
        "○ 1-2 (2 frames)  [main]",
        "● 3-4 (2 frames)  [b3]  <- head",
    ]
    assert [line["user_input"] for line in run("show", root, "user-42", "--json").objects[1:]] == ["c", "d"]
    assert [line["id"] for line in run("show", root, "user-42", "--branch", "main", "--json").objects[1:]] == [1, 2]


def test_every_record_can_be_gone_to(run, made):
    for seq in (1, 6, 7, 12, 15):
        (line,) = run("replay", made, "user-42", "--to", seq, "--json").objects
        assert (line["seq"], line["first"], line["last"]) == (seq, 1, 15)
        assert run("replay", made, "user-42", "--to", seq).lines[1].startswith("this record: ")


def test_why_a_turn_is_in_a_request_or_not_is_answered(run, made):
    (request,) = run("replay", made, "user-42", "--requests", "--json").objects
    assert (request["seq"], request["head"], request["model"]) == (6, 4, "gpt-4o")
    (frame,) = run("show", made, "user-42", "--find", "secret page", "--json").objects[1:]
    ran = run("replay", made, "user-42", "--why", frame["id"], "--request", request["seq"])
    assert ran.lines[0] == "the request of record 6, up to frame 4:"
    assert ran.lines[1].startswith("frame 5: it is not in the request: it was pushed later")
    reasons = {}
    for number in range(1, 10):
        (line,) = run("replay", made, "user-42", "--why", number, "--json").objects
        reasons[number] = line["reason"]
    assert reasons == {
        1: "instructions", 2: "shown", 3: "shown", 4: "shown", 5: "shown", 6: "other_branch", 7: "popped", 8: "silent",
        9: "other_branch",
    }  # fmt: skip
    (line,) = run("replay", made, "user-42", "--why", "6", "--branch", "ship", "--json").objects
    assert line["shown"]


def test_a_request_is_made_again_and_compared(run, made, monkeypatch):
    ran = run("replay", made, "user-42", "--request", "6")
    assert (ran.code, ran.lines[1][:26]) == (0, "made again byte for byte: ")
    (line,) = run("replay", made, "user-42", "--request", "6", "--json", "--content").objects
    assert line["matches"]
    assert line["body"]["messages"][1]["content"].startswith("secret question")
    monkeypatch.setattr("session_actor.replay.again.request_of", lambda *_: (None, "other"))
    monkeypatch.setattr("session_actor.replay.again._difference", lambda *_: "other bytes")
    ran = run("replay", made, "user-42", "--request", "6")
    assert ran.code == 1
    assert "other bytes" in ran.lines[1]


@pytest.mark.parametrize(
    "options",
    [
        ["--model", "x"],
        ["--request", "3"],
        ["--why", "99"],
        ["--why", "1", "--request", "6", "--to", "3"],
        ["--why", "x"],
    ],
    ids=" ".join,
)
def test_questions_that_make_no_sense_get_one_line(run, made, options):
    ran = run("replay", made, "user-42", *options)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


# --- diff and stats ---------------------------------------------------------------------------------------------------


def test_two_moments_are_compared(run, made):
    (line,) = run("diff", made, "user-42", "checkpoint:before", "last", "--json").objects
    assert (line["before"], line["after"], line["head"], line["same"]) == (7, 15, [4, 8], False)
    assert (line["added"], line["new_frames"], line["removed"], line["popped"]) == ([[5, 5], [8, 8]], [[5, 9]], [], [])
    assert line["branches"]["ship"] == {"before": None, "after": 6}
    lines = run("diff", made, "user-42", "11", "12").lines
    assert "- 1 frame not on the stack any more: 7" in lines
    assert "x 1 frame held by nothing any more: 7" in lines


@pytest.mark.parametrize(("moments", "code"), [(["3", "3"], 0), (["3", "4"], 1)])
def test_a_difference_is_answered_with_one_when_that_is_asked_for(run, made, moments, code):
    assert run("diff", made, "user-42", *moments).code == 0
    assert run("diff", made, "user-42", *moments, "--exit-code").code == code


def test_figures_of_a_store_and_of_a_session(run, made):
    (store,) = run("stats", made, "--json").objects
    assert (store["sessions"], store["records"], store["largest"][0]["id"]) == (3, 18, "user-42")
    assert store["files"]["catalog.db"] > 0
    (one,) = run("stats", made, "user-42", "--json").objects
    assert (one["records"], one["frames"], one["held"], one["stack"]) == (15, 9, 8, 6)
    assert (one["branches"], one["checkpoints"], one["requests"], one["kinds"]["popped"]) == (3, 1, 1, 1)
    assert one["usage"]["input_tokens"] == 180
    assert "15 records" in run("stats", made, "user-42").out


# --- live and large ---------------------------------------------------------------------------------------------------


async def test_a_live_store_is_read_and_not_changed(run, folder):
    async with SessionService.open(folder, idle_timeout_s=None) as service:
        session = await service.session("user-42")
        await session.add_user("just now", durability="written")
        await session.flush("synced")
        before = image(folder / "journals")
        for arguments in (["list"], ["stats"], ["show", "user-42"], ["tree", "user-42"], ["diff", "user-42", "1"]):
            assert run(arguments[0], folder, *arguments[1:]).code == 0
        assert "just now" in run("show", folder, "user-42", "--last", "1").out
        assert image(folder / "journals") == before


def test_a_long_session_takes_little_memory(tmp_path, capfdbinary):
    live = Live()
    for number in range(1_200):
        live.do(Push(user_input=f"{number} {'x' * 12_000}"))
    root = asyncio.run(put(tmp_path / "store", live, segment_bytes=1_000_000, journal_bytes=4_000_000))
    del live
    for arguments in (["show"], ["tree"], ["stats"]):
        tracemalloc.start()
        try:
            assert main([arguments[0], str(root), "user-42", *arguments[1:]]) == 0
            assert tracemalloc.get_traced_memory()[1] < 8_000_000, arguments
        finally:
            tracemalloc.stop()
        capfdbinary.readouterr()


def test_a_window_that_would_show_very_many_frames_is_not_weighed(run, made, monkeypatch):
    monkeypatch.setattr("session_actor.cli.output.WEIGHED", 3)
    assert run("tree", made, "user-42", "--json").objects[0]["budget"] is None
    assert "was not weighed" in run("show", made, "user-42").out
    assert "green" in run("tree", made, "user-42", "--at", "3").out
