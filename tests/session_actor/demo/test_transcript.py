"""Reading agent transcripts into turns and blocks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import session_actor
from session_actor.blocks import Image, Text, Thinking, ToolCall, ToolResult
from session_actor.demo.transcript import ModelChange, Transcript
from session_actor.frames import Turn

SAMPLE = Path(session_actor.__file__).parent / "data" / "sample_transcript.jsonl"
USAGE = {"input": 3, "output": 5, "cacheRead": 700, "cacheWrite": 11, "cost": {"total": 0.25}}


def message(**fields) -> dict:
    return {"type": "message", "timestamp": "2026-03-03T08:15:02.118Z", "message": fields}


def assistant(*blocks: dict, **fields) -> dict:
    given = {"api": "anthropic-messages", "model": "m-1", "usage": USAGE, "stopReason": "stop"}
    return message(role="assistant", content=list(blocks), **{**given, **fields})


async def entries_of(folder: Path, *lines: dict | str | bytes):
    path = folder / "transcript.jsonl"
    path.write_bytes(b"".join(line_bytes(line) + b"\n" for line in lines))
    transcript = Transcript(path)
    return [entry async for entry in transcript], transcript.unreadable


def line_bytes(line: dict | str | bytes) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


async def turns_of(folder: Path, *lines: dict | str | bytes) -> list[Turn | ModelChange]:
    entries, unreadable = await entries_of(folder, *lines)
    assert unreadable == []
    return [entry.content for entry in entries]


async def test_a_user_message_is_a_user_turn(tmp_path: Path):
    line = message(role="user", content=[{"type": "text", "text": "Grüße 🌊"}])
    assert await turns_of(tmp_path, line) == [Turn("user", (Text("Grüße 🌊"),))]


async def test_content_that_is_a_bare_string_is_one_text(tmp_path: Path):
    assert await turns_of(tmp_path, message(role="user", content="hello")) == [Turn("user", (Text("hello"),))]


async def test_an_assistant_message_keeps_model_dialect_stop_reason_and_usage(tmp_path: Path):
    (turn,) = await turns_of(tmp_path, assistant({"type": "text", "text": "a"}, stopReason="toolUse"))
    assert (turn.role, turn.model, turn.dialect, turn.stop_reason) == ("assistant", "m-1", "anthropic", "toolUse")
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (714, 5)
    assert (turn.usage.cache_read_tokens, turn.usage.cache_write_tokens) == (700, 11)
    assert turn.usage.raw_value == USAGE


async def test_an_aborted_message_without_content_is_a_turn_without_blocks(tmp_path: Path):
    (turn,) = await turns_of(tmp_path, assistant(stopReason="aborted", errorMessage="Request was aborted"))
    assert (turn.blocks, turn.stop_reason) == ((), "aborted")


async def test_thinking_keeps_its_signature(tmp_path: Path):
    (turn,) = await turns_of(tmp_path, assistant({"type": "thinking", "thinking": "hm", "thinkingSignature": "Er=="}))
    assert turn.blocks == (Thinking("hm", "Er=="),)


async def test_arguments_of_a_call_are_json_text_with_the_same_values(tmp_path: Path):
    arguments = {"path": "größe.txt", "big": 12345678901234567890123, "tiny": 1e-07, "none": None}
    (turn,) = await turns_of(
        tmp_path, assistant({"type": "toolCall", "id": "c1", "name": "read", "arguments": arguments})
    )
    (call,) = turn.blocks
    assert (call.id, call.name) == ("c1", "read")
    assert json.loads(call.arguments) == arguments
    assert "größe.txt" in call.arguments


async def test_a_call_that_broke_off_keeps_the_text_that_the_model_wrote(tmp_path: Path):
    block = {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"a": 1}, "partialJson": '{"a":1,"b":"x'}
    (turn,) = await turns_of(tmp_path, assistant(block, stopReason="error"))
    assert turn.blocks == (ToolCall("c1", "edit", '{"a":1,"b":"x'),)


async def test_a_tool_result_is_a_tool_turn(tmp_path: Path):
    line = message(role="toolResult", toolCallId="c1", content=[{"type": "text", "text": "no such file"}], isError=True)
    (turn,) = await turns_of(tmp_path, line)
    assert turn == Turn("tool", (ToolResult("c1", (Text("no such file"),), is_error=True),))


async def test_an_image_is_its_bytes(tmp_path: Path):
    block = {"type": "image", "data": "AAEC/w==", "mimeType": "image/png"}
    (turn,) = await turns_of(tmp_path, message(role="user", content=[block]))
    assert turn.blocks == (Image(data=b"\x00\x01\x02\xff", media_type="image/png"),)


async def test_lone_surrogates_and_nul_come_through(tmp_path: Path):
    line = message(role="user", content=[{"type": "text", "text": "half \ud83c, nul \x00"}])
    assert b"\\ud83c" in line_bytes(line)
    (turn,) = await turns_of(tmp_path, line)
    assert turn.blocks == (Text("half \ud83c, nul \x00"),)


async def test_arguments_with_a_lone_surrogate_are_escaped_so_that_they_can_be_sent(tmp_path: Path):
    block = {"type": "toolCall", "id": "c1", "name": "say", "arguments": {"text": "\ud83c"}}
    (turn,) = await turns_of(tmp_path, assistant(block))
    assert turn.blocks[0].arguments == '{"text":"\\ud83c"}'


async def test_the_header_and_a_model_change_name_the_model(tmp_path: Path):
    header = {"type": "session", "id": "x", "modelId": "m-1"}
    change = {"type": "model_change", "provider": "openai", "modelId": "m-2"}
    level = {"type": "thinking_level_change", "thinkingLevel": "high"}
    assert await turns_of(tmp_path, header, level, change) == [ModelChange("m-1"), ModelChange("m-2")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"type":"message","mess', "not JSON"),
        (b'{"type":"\xff"}', "not UTF-8"),
        ('["a list"]', "a field has another type than expected"),
        ('{"type":"novelty"}', "an unknown type of line"),
        ('{"type":"message"}', "the field 'message' is missing"),
        (message(role="oracle", content=[]), "an unknown role"),
        (message(role="user", content=[{"type": "hologram"}]), "an unknown type of block"),
        (message(role="user", content=[{"type": "text", "text": 7}]), "a field has another type than expected"),
        (message(role="user", content=[{"type": "image", "data": "?", "mimeType": "image/png"}]), "not base64"),
        (assistant(usage={**USAGE, "input": "3"}), "a field has another type than expected"),
        ('{"type":' + "9" * 10_000 + "}", "a value that cannot be read"),
        ("[" * 100_000, "nested too deep"),
    ],
)
async def test_a_line_that_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path: Path, line, reason: str):
    first, last = message(role="user", content="first"), message(role="user", content="last")
    entries, unreadable = await entries_of(tmp_path, first, line, last)
    assert [entry.content.blocks[0].text for entry in entries] == ["first", "last"]
    offset = len(line_bytes(first)) + 1
    assert [(problem.offset, problem.number, problem.reason) for problem in unreadable] == [(offset, 2, reason)]
    assert entries[1].offset == offset + len(line_bytes(line)) + 1


async def test_very_many_lines_that_cannot_be_read_are_counted_and_the_first_thousand_named(tmp_path: Path):
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"?\n" * 1_200 + line_bytes(message(role="user", content="a")))
    transcript = Transcript(path)
    for _ in range(2):  # the count begins anew, too
        assert len([entry async for entry in transcript]) == 1
        assert (transcript.unreadable_count, len(transcript.unreadable)) == (1_200, 1_000)
        assert [problem.number for problem in transcript.unreadable] == [*range(1, 1_001)]


async def test_empty_lines_and_a_missing_last_newline_do_not_matter(tmp_path: Path):
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"\n\n" + line_bytes(message(role="user", content="only")))
    transcript = Transcript(path)
    assert [entry.offset async for entry in transcript] == [2]
    assert transcript.unreadable == []


async def test_a_file_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        [entry async for entry in Transcript(tmp_path / "absent.jsonl")]


async def test_reading_again_starts_again(tmp_path: Path):
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"?\n" + line_bytes(message(role="user", content="a")))
    transcript = Transcript(path)
    for _ in range(2):
        assert len([entry async for entry in transcript]) == 1
        assert len(transcript.unreadable) == 1


async def test_the_shipped_sample_holds_what_real_transcripts_hold():
    transcript = Transcript(SAMPLE)
    turns = [entry.content async for entry in transcript if isinstance(entry.content, Turn)]
    blocks = [block for turn in turns for block in turn.blocks]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    assert transcript.unreadable == []
    assert any(turn.stop_reason == "aborted" and not turn.blocks for turn in turns)
    assert any(sum(isinstance(block, ToolCall) for block in turn.blocks) > 2 for turn in turns)
    assert {call.id for call in calls} - {result.call_id for result in results}
    assert max(len(result.blocks[0].text) for result in results) > 15_000
    assert {turn.model for turn in turns if turn.model} == {"claude-sonnet-4-5", "gpt-5.1-codex"}
    assert {type(block) for block in blocks} == {Text, Image, Thinking, ToolCall, ToolResult}
    texts = "".join(block.text for block in blocks if isinstance(block, Text))
    assert "👨‍👩‍👧" in texts
    assert "\ud83c" in texts
    assert "\x00" in texts


async def test_a_mark_at_the_start_of_a_line_and_zero_bytes_before_one_say_nothing(tmp_path: Path):
    line = line_bytes(message(role="user", content="hello"))
    turn = Turn("user", (Text("hello"),))
    assert await turns_of(tmp_path, b"\xef\xbb\xbf" + line + b"\r", bytes(100) + line, b"\xef\xbb\xbf") == [turn, turn]
