"""What newer versions of the others write, and what only some of them do."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_actor.blocks import Document, Image, Native, Reference, Text, Thinking, ToolCall
from session_actor.transfer.claude_kinds import BOOKKEEPING
from session_actor.transfer.importing import import_transcript

from .transferring import SAMPLES, frames_of, imported, memory, said, written

CHAT = {"role": "user", "content": "hi"}


def line(kind: str, uuid: str, parent: str | None, **fields: object) -> dict:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "isSidechain": False, **fields}


def user(uuid: str, parent: str | None, content: object) -> dict:
    return line("user", uuid, parent, message={"role": "user", "content": content})


def attachment(uuid: str, parent: str | None, kind: str, **fields: object) -> dict:
    return line("attachment", uuid, parent, attachment={"type": kind, **fields})


def only_blocks(state, frame: int) -> list:
    (turn,) = state.table.at(frame).turns
    return list(turn.blocks)


async def test_attachments_say_what_the_model_was_told_and_reminders_nothing():
    async with memory() as service:
        report, state = await imported(service, SAMPLES / "claude_code_2_1.jsonl")

    assert (report.added, report.passed, report.left_out) == (18, 18, {})
    assert only_blocks(state, 1) == [Reference("The harbour is Emden.", "hook_success SessionStart:startup")]
    assert only_blocks(state, 3) == [Reference("12:00 3.1 m\n13:00 3.4 m", "file table.txt")]
    assert [type(block) for block in only_blocks(state, 4)] == [Image]
    assert only_blocks(state, 14)[0].source == "edited_text_file /home/mira/tidewatch/table.txt"
    assert only_blocks(state, 16) == [Reference('{"chart":{"rows":[1,2]}}', "moon_chart")]
    assert state.branches == {"main": 18}


async def test_what_was_attached_to_a_reply_stands_behind_the_results_of_its_calls():
    async with memory() as service:
        _, state = await imported(service, SAMPLES / "claude_code_2_1.jsonl")

    assert [type(block) for block in only_blocks(state, 5)] == [Thinking, ToolCall, ToolCall]
    assert [turn.role for frame in (6, 7, 8, 9) for turn in state.table.at(frame).turns] == [
        "tool", "tool", "user", "user",
    ]  # fmt: skip
    assert only_blocks(state, 8)[0].text == "Only this week.\nNo storms."
    assert [type(block) for block in only_blocks(state, 9)] == [Text, Image]
    assert only_blocks(state, 9)[0].text == "In metres, please. [Image #1]"


async def test_commands_of_the_user_are_said_and_lines_for_the_screen_are_not():
    async with memory() as service:
        _, state = await imported(service, SAMPLES / "claude_code_2_1.jsonl")

    texts = [text for _, text in said(frames_of(state))]
    assert "<local-command-stdout>rising</local-command-stdout>" in texts
    assert not any("for the screen alone" in text for text in texts)


async def test_a_kind_that_is_not_known_is_named_and_what_stands_on_it_has_its_place():
    path = SAMPLES / "claude_code_2_1.jsonl"
    async with memory() as service:
        report, state = await imported(service, path)

    ((offset, why),) = report.unread
    assert why == "an unknown type of line"
    assert b"lunar-phase" in path.read_bytes()[offset:].splitlines()[0]
    assert state.table.at(15).parent == 14


async def test_a_compaction_that_kept_some_lines_covers_only_those_before_them():
    async with memory() as service:
        _, state = await imported(service, SAMPLES / "claude_code_2_1.jsonl")

    assert [(one.covered_frame, one.tokens_before) for one in state.overlays] == [(12, 167_000)]
    assert only_blocks(state, 13)[0].text == "And tomorrow?"


@pytest.mark.parametrize(
    ("number", "covered"),
    [(5, 2), (6, 2), (4, 2), (8, 4), (1, None), (0, 5), (99, 5), (-1, 5), (10, 5), ("6", 5), (True, 5), (None, 5)],
)
async def test_a_compaction_of_the_first_version_of_pi_keeps_what_its_number_says(tmp_path: Path, number, covered):
    def says(text: str) -> dict:
        return {"type": "message", "message": {"role": "user", "content": text}}

    path = written(
        tmp_path / "t.jsonl",
        {"type": "session", "id": "s", "cwd": "/", "timestamp": "2025-12-01T10:00:00.000Z"},
        {"type": "thinking_level_change", "thinkingLevel": "high"},
        says("first"),
        "",
        "{torn",
        says("second"),
        {"type": "thinking_level_change", "thinkingLevel": "off"},
        {"type": "thinking_level_change", "thinkingLevel": "low"},
        says("third"),
        says("fourth"),
        says("fifth"),
        {"type": "compaction", "summary": "Much.", "firstKeptEntryIndex": number, "tokensBefore": 70_000},
        says("sixth"),
    )
    async with memory() as service:
        report, state = await imported(service, path)

    assert (report.form, report.unread_count) == ("pi", 1)
    if covered is None:  # all was kept beside it
        assert state.overlays == ()
        assert [text for _, text in said(frames_of(state))][5].endswith("Much.")
    else:
        assert [(one.covered_frame, one.tokens_before) for one in state.overlays] == [(covered, 70_000)]


async def test_a_part_that_claude_code_collapsed_is_there_and_its_summary_is_told_by_name(tmp_path: Path):
    collapsed = {
        "type": "marble-origami-commit",
        "sessionId": "s",
        "collapseId": "1",
        "summaryUuid": "x",
        "summaryContent": '<collapsed id="1">They greeted.</collapsed>',
        "summary": "They greeted.",
        "firstArchivedUuid": "u",
        "lastArchivedUuid": "v",
    }
    staged = {"type": "marble-origami-snapshot", "sessionId": "s", "staged": [], "armed": False, "lastSpawnTokens": 1}
    path = written(
        tmp_path / "t.jsonl", user("u", None, "hi"), user("v", "u", "you"), staged, collapsed, user("w", "v", "So")
    )
    async with memory() as service:
        report, state = await imported(service, path)

    assert (report.unread, report.left_out, report.passed) == ([], {"collapsed": 1}, 2)
    assert [text for _, text in said(frames_of(state))] == ["hi", "you", "So"]
    assert state.overlays == ()


@pytest.mark.parametrize("kind", sorted(BOOKKEEPING))
async def test_a_line_of_bookkeeping_tells_the_form_and_is_passed_over(tmp_path: Path, kind: str):
    path = written(tmp_path / "t.jsonl", *[{"type": kind, "sessionId": "s"}] * 101, user("u", None, "hi"))
    async with memory() as service:
        report, state = await imported(service, path)

    assert (report.form, report.passed, report.unread) == ("claude-code", 101, [])
    assert said(frames_of(state)) == [("user", "hi")]


async def test_attachments_of_every_shape_are_read(tmp_path: Path):
    file = {"base64": "JVBERg=="}
    path = written(
        tmp_path / "t.jsonl",
        user("u", None, "Look"),
        attachment("a", "u", "file", displayPath="t.pdf", content={"type": "pdf", "file": file}),
        attachment("b", "a", "nested_memory", path="CLAUDE.md", content={"type": "Project", "content": "Be kind."}),
        attachment("c", "b", "nested_memory", path="CLAUDE.md", content="Be brief."),
        attachment("d", "c", "hook_blocking_error", hookName="Stop", blockingError={"blockingError": "tests fail"}),
        attachment("e", "d", "hook_additional_context", hookName="X", content=[]),
        attachment("f", "e", "file", filename="n.ipynb", content={"type": "notebook", "file": {"cells": []}}),
        attachment("g", "f", "queued_command", prompt="And more"),
        attachment("h", "g", "file", filename="x", content={"type": "image", "file": {"base64": "?"}}),
        line("attachment", "i", "h"),
    )
    async with memory() as service:
        report, state = await imported(service, path)

    assert [why for _, why in report.unread] == ["not base64", "the field 'attachment' is missing"]
    blocks = [only_blocks(state, frame)[0] for frame in range(2, 8)]
    assert blocks[0] == Document(data=b"%PDF", media_type="application/pdf", name="t.pdf")
    assert [block.text for block in blocks[1:4]] == ["Be kind.", "Be brief.", "tests fail"]
    assert blocks[4].text == '{"filename":"n.ipynb","content":{"type":"notebook","file":{"cells":[]}}}'
    assert blocks[5] == Text("And more")


async def test_a_file_that_is_read_between_an_attachment_and_a_result_ends_as_one_that_is_read_at_once(tmp_path: Path):
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": {}}
    message = {"id": "m", "role": "assistant", "content": [call], "stop_reason": "tool_use"}
    lines = [
        user("u", None, "Go"),
        line("assistant", "a", "u", message=message),
        attachment("p", "a", "hook_additional_context", hookName="Pre", content=["Mind the tide."]),
        user("r", "a", [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]),
        user("n", "p", "Next"),
    ]
    async with memory() as service:
        for end in range(3, 6):
            _, state = await imported(service, written(tmp_path / "t.jsonl", *lines[:end]))

    assert list(state.branches) == ["main"]
    assert [turn.role for frame in state.table.path(state.head)[::-1] for turn in frame.turns] == [
        "user", "assistant", "tool", "user", "user",
    ]  # fmt: skip


async def test_newer_messages_of_openai_keep_every_word_and_say_what_has_no_place():
    async with memory() as service:
        report, state = await imported(service, SAMPLES / "openai_chat_newer.jsonl")

    assert (report.added, report.unread) == (21, [])
    assert report.left_out == {"name": 1, "audio": 1, "annotations": 1, "usage": 1}
    assert state.table.at(2).instructions.system == "Answer in one line.\n\nYou speak of tides."
    assert [type(block) for block in only_blocks(state, 3)] == [Text, Native]
    assert [text for _, text in said([state.table.at(frame) for frame in (4, 6, 8, 21)])] == [
        "It is the sea.", "Tide tables.", "I can't help with that.", "11 feet.",
    ]  # fmt: skip
    assert only_blocks(state, 10) == [Text("I look."), Text("Not the depth."), ToolCall("", "tide", '{"at":"noon"}')]
    assert only_blocks(state, 11)[0].ref.frame == 10
    assert only_blocks(state, 14)[0] == ToolCall("call_1", "plot", '{"input": "y=3.1"}')
    assert state.table.at(17).turns[0].role == "system"
    assert only_blocks(state, 18)[1].value == {"type": "sparkline", "points": [3, 4]}
    assert state.pending_calls() == []


async def test_a_message_that_only_the_other_can_have_is_read_as_the_others():
    async with memory() as service:
        _, state = await imported(service, SAMPLES / "openai_chat_newer.jsonl")

    assert only_blocks(state, 19) == [ToolCall("toolu_9", "tide", '{"at":"one"}')]
    assert [turn.role for turn in state.table.at(20).turns] == ["tool", "user"]


async def test_newer_messages_of_anthropic_keep_every_block_and_say_what_has_no_place():
    async with memory() as service:
        report, state = await imported(service, SAMPLES / "anthropic_newer.json")

    assert (report.sessions, report.unread) == (["req-7"], [])
    assert report.left_out == {"context": 1, "citations": 1, "usage": 1}
    assert state.table.at(1).instructions.system == "Be brief.\n\nBe kind."
    assert [type(block) for block in only_blocks(state, 2)] == [Native, Document, Native, Native, Text]
    kinds = [block.value["type"] for block in only_blocks(state, 3) if type(block) is Native]
    assert kinds == [
        "redacted_thinking", "server_tool_use", "web_search_tool_result", "mcp_tool_use", "mcp_tool_result", "text",
    ]  # fmt: skip
    tool, stray = state.table.at(4).turns
    assert [type(block) for block in tool.blocks[0].blocks] == [Native, Text]
    assert [block.value["title"] for block in stray.blocks] == ["stray"]


@pytest.mark.parametrize(
    "broken", [{"tools": [{"name": "", "input_schema": {}}]}, {"system": [{"type": "image"}]}], ids=str
)
async def test_instructions_that_cannot_be_read_cost_themselves_alone(tmp_path: Path, broken: dict):
    body = {"system": "Be brief.", "model": "m", "tools": [{"name": "ls", "input_schema": {}}], "messages": [CHAT]}
    path = written(tmp_path / "t.jsonl", {**body, **broken})
    async with memory() as service:
        report, state = await imported(service, path, form="anthropic")

    instructions = state.instructions()
    assert (report.unread_count, instructions.model, said(frames_of(state))) == (1, "m", [("user", "hi")])
    assert (instructions.system, [tool.name for tool in instructions.tools]) in [("", ["ls"]), ("Be brief.", [])]


@pytest.mark.parametrize("messages", [None, 7, "hi", {"role": "user"}], ids=repr)
async def test_a_body_without_a_list_of_messages_is_named(tmp_path: Path, messages: object):
    path = written(tmp_path / "t.jsonl", CHAT, {"messages": messages}, {"messages": [CHAT]})
    async with memory() as service:
        report, _ = await imported(service, path, form="openai-chat")

    assert [why for _, why in report.unread] == ["messages: a field has another type than expected"]
    assert report.added == 2


async def test_a_hundred_results_of_one_call_are_the_users_but_for_the_first(tmp_path: Path):
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    result = {"role": "function", "name": "f", "content": "r"}
    path = written(tmp_path / "t.jsonl", CHAT, call, *[result] * 100, call, result)
    async with memory() as service:
        report, state = await imported(service, path)

    roles = [turn.role for frame in frames_of(state) for turn in frame.turns]
    assert (report.added, roles.count("tool"), roles.count("user")) == (104, 2, 100)
    assert state.pending_calls() == []


@pytest.mark.parametrize("form", ["pi", "claude-code"])
@pytest.mark.parametrize("broken", ["novelty", 7, [{"type": "novelty"}], [{"type": "text", "text": 7}]], ids=str)
async def test_what_stands_on_a_line_that_cannot_be_read_stands_where_that_stood(tmp_path: Path, form: str, broken):
    def pi(key: str, below: str | None, content: object) -> dict:
        if content == "novelty":
            return {"type": "novelty", "id": key, "parentId": below}
        return {"type": "message", "id": key, "parentId": below, "message": {"role": "user", "content": content}}

    def claude(key: str, below: str | None, content: object) -> dict:
        if content == "novelty":
            return line("novelty", key, below)
        if isinstance(content, list):  # what users say of kinds that are not known is kept: here it is no text
            content = [{"type": "text"}]
        return user(key, below, content)

    say = pi if form == "pi" else claude
    path = written(
        tmp_path / "t.jsonl", say("a", None, "One"), say("b", "a", "Two"), say("c", "a", broken), say("d", "c", "Three")
    )
    async with memory() as service:
        report, state = await imported(service, path, form=form)

    assert report.unread_count == 1
    assert [(frame.parent, frame.turns[0].text) for frame in frames_of(state)] == [
        (None, "One"), (1, "Two"), (1, "Three"),
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["pi", "claude-code", "openai-chat"])
async def test_no_session_is_made_for_a_file_that_says_nothing(tmp_path: Path, form: str):
    lines = {
        "pi": [{"type": "session", "id": "s", "cwd": "/"}, {"type": "message", "id": "a", "message": {"role": "x"}}],
        "claude-code": [line("progress", "p", None), user("a", "p", 7)],
        "openai-chat": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:;base64,?"}}]}],
    }[form]
    async with memory() as service:
        report = await import_transcript(service, written(tmp_path / "t.jsonl", *lines), form)
        assert [info async for info in service.sessions()] == []

    assert (report.sessions, report.unread_count) == ([], 1)


async def test_a_report_of_usage_of_pi_that_cannot_be_read_costs_itself_alone(tmp_path: Path):
    said_ = [{"type": "text", "text": "hi"}]
    message = {"role": "assistant", "content": said_, "model": "m", "stopReason": "stop", "usage": {"input": 2**70}}
    path = written(
        tmp_path / "t.jsonl", {"type": "session", "id": "s", "cwd": "/"}, {"type": "message", "message": message}
    )
    async with memory() as service:
        report, state = await imported(service, path)

    assert (report.unread, report.left_out) == ([], {"usage": 1})
    assert (state.table.at(1).turns[0].usage, said(frames_of(state))) == (None, [("assistant", "hi")])
