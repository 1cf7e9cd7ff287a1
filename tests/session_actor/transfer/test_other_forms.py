"""Pi's trees, messages of OpenAI and Anthropic, and telling which is which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_actor import InvalidArgument, TranscriptUnreadable
from session_actor.blocks import Document, Image, Native, Reference, Text, Thinking, ToolCall
from session_actor.transfer.forms import form_of
from session_actor.transfer.importing import import_transcript

from .transferring import ALL, PI, SAMPLES, frames_of, imported, memory, said, state_of, written


async def test_a_tree_of_pi_has_branches_labels_summaries_and_a_compaction():
    async with memory() as service:
        report, state = await imported(service, SAMPLES / "pi_tree.jsonl")

    assert (report.form, report.added, report.unread, report.passed) == ("pi", 15, [], 3)
    assert (state.branches, state.checkpoints) == ({"main": 15, "b8": 8}, {"counted": 8})
    assert [(one.covered_frame, one.tokens_before) for one in state.overlays] == [(10, 50_000)]
    assert state.instructions().model == "claude-sonnet-4-5"
    assert (state.table.at(6).turns[0].stop_reason, state.table.at(6).turns[0].blocks) == ("aborted", ())
    texts = [text for _, text in said(frames_of(state))]
    assert any("Ran `wc -w *`" in text for text in texts)
    assert not any("secret" in text for text in texts)


async def test_lines_of_pi_without_ids_follow_each_other():
    async with memory() as service:
        report, state = await imported(service, PI)

    assert (report.added, report.skipped, report.unread) == (114, 0, [])
    assert [frame.id for frame in state.table.path(state.head)] == list(range(114, 0, -1))
    assert [turn.stop_reason for frame in frames_of(state) for turn in frame.turns].count("aborted") >= 1


async def test_chat_messages_have_calls_images_and_what_is_stray():
    async with memory() as service:
        report, state = await imported(service, SAMPLES / "openai_chat.json")

    assert report.form == "openai-chat"
    (offset, why), *others = report.unread
    assert (why, others) == ("an unknown role", [])
    assert (SAMPLES / "openai_chat.json").read_bytes()[offset:].startswith(b'{\n  "role": "oracle"')
    assert state.table.at(1).instructions.system == "Be brief."
    _, inline, linked = state.table.at(2).turns[0].blocks
    assert (inline.media_type, inline.data[:4]) == ("image/png", b"\x89PNG")
    assert linked == Image(url="https://example.org/a.png")
    assert state.table.at(3).turns[0].blocks[1] == ToolCall("call_2", "ls", '{"path": "b')
    (stray,) = state.table.at(6).turns
    assert (stray.role, type(stray.blocks[0])) == ("user", Reference)
    assert state.table.at(12).turns[0].role == "system"
    assert state.pending_calls() == []


async def test_a_line_with_messages_is_a_conversation_of_its_own():
    async with memory() as service:
        report, state = await imported(service, SAMPLES / "openai_chat.jsonl", session_id="chat")
        other = await state_of(service, "chat-2")

    assert report.sessions == ["chat-1", "chat-2"]
    assert (state.instructions().model, [tool.name for tool in state.instructions().tools]) == ("gpt-4.1", ["ls"])
    assert said(frames_of(other)) == [("assistant", "x.py"), ("user", "Yes"), ("assistant", "Yes"), ("user", "Yes")]


async def test_messages_of_anthropic_have_system_tools_and_every_block():
    async with memory() as service:
        report, state = await imported(service, SAMPLES / "anthropic.json")

    assert (report.form, report.unread) == ("anthropic", [])
    instructions = state.instructions()
    assert (instructions.system, instructions.model) == ("Be brief.", "claude-sonnet-4-5")
    assert ([tool.name for tool in instructions.tools], len(instructions.native_tools)) == (["ls"], 1)
    assert [type(block) for block in state.table.at(2).turns[0].blocks] == [Text, Document, Image]
    assert state.table.at(3).turns[0].blocks[0] == Thinking("hm", "Eq8C")
    assert state.table.at(3).turns[0].model == "claude-sonnet-4-5"
    assert [turn.role for turn in state.table.at(4).turns] == ["tool", "user"]
    assert type(state.table.at(7).turns[0].blocks[0]) is Native


@pytest.mark.parametrize(
    ("content", "form"),
    [
        ('{"role":"user","content":"hi"}\n{"role":"assistant","content":"ho"}', "openai-chat"),
        ('{"role":"user","content":"hi"}', "openai-chat"),
        ('[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"b"}]}]', "anthropic"),
        ('{\n "messages": [\n  {"role": "user", "content": "hi"}\n ]\n}', "openai-chat"),
        ('{"messages":[{"role":"user","content":"hi"}],"system":"x"}', "anthropic"),
        ('not JSON\n\n{"type":"summary","summary":"x","leafUuid":"y"}', "claude-code"),
        ('{"form":"session-actor","version":1,"session":"s"}', "ndjson"),
        ('{"type":"session","id":"x","timestamp":"t","cwd":"/"}', "pi"),
        ('\ufeff[{"role":"user","content":"hi"}]', "openai-chat"),
    ],
)
async def test_a_form_is_told_by_the_first_lines_that_tell(tmp_path: Path, content: str, form: str):
    path = tmp_path / "file.jsonl"
    path.write_text(content)

    assert await form_of(path) == form


async def test_every_sample_has_its_form_and_is_imported_the_same_when_it_is_named():
    for path in ALL:
        form = await form_of(path)
        async with memory() as service:
            told, one = await imported(service, path, form=form)
        async with memory() as service:
            seen, other = await imported(service, path)
        assert told == seen
        assert said(frames_of(one)) == said(frames_of(other)) != []


@pytest.mark.parametrize("content", ["", "hello\n", "7\n", '{"a":1}\n', "[]", "{"])
async def test_a_file_of_no_form_is_refused_and_no_session_is_made(tmp_path: Path, content: str):
    path = tmp_path / "file"
    path.write_text(content)
    async with memory() as service:
        with pytest.raises(TranscriptUnreadable, match=r"file, byte 0: .*ndjson, pi, claude-code"):
            await import_transcript(service, path)
        assert [info async for info in service.sessions()] == []


async def test_a_form_that_is_none_is_refused():
    async with memory() as service:
        with pytest.raises(InvalidArgument, match="form must be one of ndjson, pi"):
            await import_transcript(service, PI, form="yaml")


async def test_a_value_on_many_lines_is_one_conversation_with_the_offsets_of_its_messages(tmp_path: Path):
    path = tmp_path / "talk.json"
    messages = [{"role": "user", "content": "Grüße"}, {"role": "user"}, 7, {"role": "assistant", "content": "ho"}]
    path.write_text(json.dumps(messages, indent=2, ensure_ascii=False))
    async with memory() as service:
        report, state = await imported(service, path)

    assert said(frames_of(state)) == [("user", "Grüße"), ("user", ""), ("assistant", "ho")]
    assert report.unread == [(path.read_bytes().index(b"7"), "a field has another type than expected")]


async def test_one_message_a_line_is_one_conversation(tmp_path: Path):
    path = written(tmp_path / "talk.jsonl", {"role": "user", "content": "a"}, "{", {"role": "user", "content": "b"})
    async with memory() as service:
        report, state = await imported(service, path)

    assert (report.sessions, report.unread) == (["talk"], [(33, "not JSON")])
    assert said(frames_of(state)) == [("user", "a"), ("user", "b")]
