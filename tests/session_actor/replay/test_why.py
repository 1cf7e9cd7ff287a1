"""Why a frame is in a request, or not; and requests that are made again."""

from __future__ import annotations

import struct
from base64 import b64encode

import msgspec
import pytest

from session_actor import BranchUnknown, FrameUnknown, InvalidArgument, Replay, SessionService, ToolCall
from session_actor.blocks import Image, Native, Text, Thinking, ToolResult
from session_actor.commands import (
    AddAssistant,
    AddResponse,
    AddToolResult,
    AddUser,
    BuildRequest,
    Checkpoint,
    Configure,
    Fork,
    Goto,
    Pop,
    Push,
    Retract,
)
from session_actor.frames import Turn
from session_actor.replay import REASONS
from session_actor.replay.reasons import SHOWN
from session_actor.requests.canonical import canonical
from session_actor.window.requesting import RENDERER

from ..compaction import compacted
from ..live import Live, prune
from ..window.asked import MODELS, Asked, shown
from .stored import put

LARGE = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 2_001, 10) + bytes(5)
"""The beginning of an image that Anthropic takes only beside a few others."""


async def opened(folder, live: Live, models=MODELS) -> Replay:
    return await Replay.open(await put(folder, live), live.state.session, models)


def work(live: Asked, number: int, words: int = 200) -> None:
    """An exchange with a call; each frame names itself."""
    live.do(AddUser(f"<ask {number}>"))
    live.do(AddAssistant(f"<call {number}>", tool_calls=[ToolCall(f"c{number}", "ls", "{}")]))
    live.do(AddToolResult(f"c{number}", f"<result {number}> " + "file " * words))
    live.do(AddAssistant(f"<done {number}> " + "so it is " * words))


async def test_every_frame_s_reason_agrees_with_what_every_request_shows(folder):
    live = Asked("tiny")
    names: dict[int, str] = {}
    requests = {}
    for number in range(12):
        before = live.state.next_id
        work(live, number)
        names |= {before + at: f"<{what} {number}>" for at, what in enumerate(("ask", "call", "result", "done"))}
        request = live.ask("anthropic")
        requests[request.seq] = request
    seen: set[str] = set()
    with await opened(folder, live) as replay:
        assert replay.requests() == list(requests)
        for seq, request in requests.items():
            text = shown(request)
            for frame, name in names.items():
                why = replay.why(frame, request=seq)
                seen.add(why.reason)
                assert (why.frame, why.request, why.seq, why.head) == (frame, seq, seq - 1, request.head)
                assert (name in text) == (why.shown and why.reason != "stub"), (seq, why)
                assert REASONS[why.reason] in why.what
                assert f"frame {frame}" in why.what
    assert {"shown", "trimmed", "later", "stub"} <= seen


async def test_trimmed_names_the_mark_and_where_it_was_made(folder):
    live = Asked("tiny")
    for number in range(12):
        work(live, number)
        live.ask("anthropic")
    with await opened(folder, live) as replay:
        why = replay.why(2)
        mark = live.state.marks[-1]
        assert (why.shown, why.reason, why.by, why.request) == (False, "trimmed", mark.number, None)
        assert f"mark {mark.number}, made at frame {mark.at}" in why.what
        assert replay.why(1).reason == "instructions"


async def test_a_frame_of_which_some_turns_have_no_room_says_which_are_shown(folder):
    live = Asked("tiny")
    turns = [Turn("user", (Text("<turn 1>"),))]
    for number in range(2, 42, 2):
        text = Text(f"<turn {number}> " + "I look. " * 60)
        turns.append(Turn("assistant", (text, ToolCall(f"c{number}", "ls", "{}"))))
        turns.append(Turn("tool", (ToolResult(f"c{number}", (Text(f"<turn {number + 1}>"),)),)))
    live.do(Push(turns=turns))
    live.do(AddAssistant("Done."))
    request = live.ask("anthropic")
    seen = [number for number in range(1, 42) if f"<turn {number}>" in shown(request)]
    assert seen == [1, *range(seen[1], 42)]
    with await opened(folder, live) as replay:
        why = replay.why(2, request=request.seq)
        assert (why.shown, why.reason, why.by) == (True, "cut", live.state.marks[-1].number)
        assert f"of its 41 turns 1, {seen[1]} to 41" in why.what
        assert replay.why(3, request=request.seq).reason == "shown"


async def test_images_that_a_request_has_no_room_for_are_told_apart_from_those_that_no_model_takes(folder):
    sees = msgspec.structs.replace(MODELS["small"], name="sees", window=1_000_000)
    live = Asked("small")
    live.state.models = {**MODELS, "sees": sees}
    for _ in range(21):
        live.do(AddUser(["Look", Image(data=LARGE, media_type="image/png")]))  # 2 to 22
    live.do(AddUser([Image(data=b"BM", media_type="image/bmp"), "And this?"]))  # 23
    asked = live.do(BuildRequest("anthropic", model="sees")).seq
    mark = live.state.marks[-1]
    with await opened(folder, live, {**MODELS, "sees": sees}) as replay:
        first, last = replay.why(2, request=asked), replay.why(23, request=asked)
        assert (first.reason, first.by, first.shown) == ("no_room", mark.number, True)
        assert "no room" in first.what
        assert replay.why(22, request=asked).reason == "shown"
        assert (last.reason, last.by) == ("partly", None)


async def test_a_provider_s_own_file_that_a_request_has_no_room_for_is_told_so_and_not_as_left_out_for_its_kind(folder):
    sees = msgspec.structs.replace(MODELS["small"], name="sees", window=1_000_000)
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(LARGE).decode()}
    live = Asked("small")
    live.state.models = {**MODELS, "sees": sees}
    live.do(AddUser([Native("anthropic", None, {"type": "image", "source": source})]))  # 2: nothing but the file
    live.do(AddUser([Native("openai_chat", None, {"type": "image_url", "image_url": {"url": "https://a.b"}})]))  # 3
    bmp = Image(data=b"BM", media_type="image/bmp")
    live.do(AddUser(["Look", bmp]))  # 4
    live.do(AddUser([Image(data=LARGE, media_type="image/png")] * 20))  # 5
    live.do(AddUser("And this?"))
    asked = live.do(BuildRequest("anthropic", model="sees")).seq
    with await opened(folder, live, {**MODELS, "sees": sees}) as replay:
        whys = [replay.why(frame, request=asked) for frame in (2, 3, 4)]
        assert [(why.shown, why.reason) for why in whys] == [(True, "no_room"), (False, "omitted"), (True, "partly")]
        assert whys[0].by == live.state.marks[-1].number
        assert [note.what for note in whys[0].notes] == ["no_room"]


async def test_frames_of_other_branches_popped_later_and_pruned_ones_are_told_apart(folder):
    live = Asked()
    for text in "abcd":
        live.do(AddUser(text))  # frames 2 to 5
    live.do(Checkpoint("there", 4))
    live.do(Pop(2))
    early = live.state.seq
    live.do(Fork(2, "idea", "e"))  # 6
    live.do(Push("f"))  # 7
    live.do(Goto("main"))
    live.do(Pop(1, on="idea"))
    late = live.state.seq
    prune(live)
    live.do(AddUser("g"))  # 8
    with await opened(folder, live) as replay:
        told = {frame: replay.why(frame, seq=late).reason for frame in range(1, 9)}
        assert told == {
            1: "instructions", 2: "shown", 3: "shown", 4: "other_branch", 5: "popped", 6: "other_branch", 7: "popped",
            8: "later",
        }  # fmt: skip
        assert "checkpoint 'there'" in replay.why(4, seq=late).what
        assert "branch 'idea'" in replay.why(6, seq=late).what
        assert replay.why(6, seq=early).reason == "later"
        assert replay.why(6, seq=early).by == replay.at(frame=6).seq
        assert replay.why(6, seq=late, on="idea").reason == "shown"
        assert {replay.why(5).reason, replay.why(7).reason} == {"pruned"}
        for wrong in (0, -3, 99):
            with pytest.raises(FrameUnknown):
                replay.why(wrong)
        with pytest.raises(BranchUnknown):
            replay.why(2, on="nobody")
        with pytest.raises(InvalidArgument):
            replay.why("2")
        with pytest.raises(InvalidArgument):
            replay.why(2, request=3)
        with pytest.raises(InvalidArgument):
            replay.why(2, dialect="telnet")


async def test_what_cannot_be_shown_to_a_model_is_told_with_its_notes(folder):
    live = Asked()
    live.do(AddUser("Hello"))
    thought = Turn("assistant", (Thinking("hm", None),), None, "other", "openai_responses")
    live.do(AddResponse(thought))  # 3
    live.do(AddUser("Go on"))
    live.do(AddResponse(msgspec.structs.replace(thought, blocks=(Thinking("hm", None), Text("Yes")))))  # 5
    live.do(Configure(system="Be long.", model="small"))  # 6
    live.do(AddUser("And?"))
    with await opened(folder, live) as replay:
        assert [replay.why(frame, dialect="anthropic").reason for frame in range(1, 8)] == [
            "superseded", "shown", "omitted", "shown", "partly", "instructions", "shown",
        ]  # fmt: skip
        assert "reasoning" in replay.why(3, dialect="anthropic").what
        assert {note.what for note in replay.why(5, dialect="anthropic").notes} == {"thinking"}
        assert replay.why(1).by == 6


async def test_without_a_model_it_is_told_as_far_as_can_be(folder):
    live = Live()
    live.do(Push("a"))
    live.do(Push("b"))
    live.do(Pop(1))
    with await opened(folder, live) as replay:
        assert [replay.why(frame).reason for frame in (1, 2)] == ["shown", "popped"]
        assert replay.why(1, seq=1).reason == "later"
        assert replay.why(1, model="small", dialect="anthropic").reason == "shown"


async def test_where_nothing_can_be_sent_that_is_the_reason(folder):
    live = Asked()
    live.do(AddResponse(Turn("assistant", (Thinking("hm", None),), None, "other", "openai_responses")))
    with await opened(folder, live) as replay:
        assert replay.why(2, dialect="anthropic").reason == "nothing_sent"
        assert not replay.why(2, dialect="anthropic").shown
        assert replay.why(1, dialect="anthropic").reason == "instructions"


async def test_a_compaction_stands_for_what_it_covers(folder):
    async with SessionService.open(folder, models=compacted.MODELS) as service:
        session = await service.session("user-42", create=True)
        await compacted.converse(session)
        await session.build_request("anthropic")
        done = await compacted.compact(session)
        request = await session.build_request("anthropic")
        await session.flush("written")
        with await Replay.open(service._store, "user-42", compacted.MODELS) as replay:
            first, second = replay.requests()
            covered = done.covered_frame
            why = replay.why(covered, request=second)
            assert (why.reason, why.by) == ("compacted", done.generation)
            assert replay.why(covered, request=first).reason in SHOWN | {"trimmed"}
            assert replay.why(covered + 1, request=second).shown
            assert replay.why(covered).reason == "compacted"
            made = replay.request(second)
            assert canonical(made.request) == canonical(request)
            assert made.matches


async def test_a_request_is_made_again_byte_for_byte_without_what_was_lent_to_it(folder, monkeypatch):
    live = Asked("tiny")
    given = {}
    for number in range(8):
        work(live, number, 120)
        for dialect in ("anthropic", "openai_chat", "openai_responses", "gemini"):
            request = live.ask(dialect)
            given[request.seq] = request
    lent = live.do(
        BuildRequest("anthropic", ephemeral="Now is Monday.", extra={"temperature": 0.5}, max_output_tokens=99)
    )
    with await opened(folder, live) as replay:
        for seq, request in given.items():
            made = replay.request(seq)
            assert (made.matches, made.why, made.seq) == (True, "", seq)
            assert canonical(made.request) == canonical(request)
        made = replay.request(lent.seq)
        assert made.matches
        assert made.request["temperature"] == 0.5
        assert "Monday" not in shown(made.request)
        assert "tiny" not in repr(made)
        with pytest.raises(InvalidArgument, match="requests"):
            replay.request(2)


async def test_why_a_request_is_not_the_same_is_said(folder, monkeypatch):
    live = Asked("tiny")
    for number in range(8):
        work(live, number)
        live.ask("anthropic")
    with await opened(folder, live, models=None) as replay:
        made = replay.request(replay.requests()[-1])
        assert not made.matches
        assert "models=" in made.why
    monkeypatch.setattr("session_actor.replay.again.RENDERER", 99)
    with await Replay.open(folder, "user-42") as replay:
        made = replay.request(replay.requests()[-1])
        assert not made.matches
        assert f"version {RENDERER} of the rules, and this is version 99" in made.why


async def test_pinned_shortened_and_corrected_frames_are_told(folder):
    live = Asked("tiny")
    live.do(Push("Never delete anything.", "Understood.", assumptions=["The disk is large."], pinned=True))  # 2
    live.do(Retract("The disk is large."))  # 3
    for number in range(12):
        work(live, number)
    live.ask("anthropic")
    live.do(AddUser("Look"))
    live.do(AddAssistant("", tool_calls=[ToolCall("long", "ls", "{}")]))
    live.do(AddToolResult("long", "a long line of a file\n" * 900))
    live.ask("anthropic")
    result = live.state.head
    with await opened(folder, live) as replay:
        first, second = replay.requests()
        assert replay.why(2, request=first).reason == "kept"
        assert replay.why(2, request=first).shown
        assert replay.why(result, request=second).reason == "shortened"
        assert replay.why(3, seq=replay.at(frame=5).seq).reason == "correction"
        assert replay.request(second).matches
