"""Lines that cannot be read, and lines that are too long."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from session_actor import TranscriptUnreadable
from session_actor.transfer import lines as lines_module
from session_actor.transfer.importing import import_transcript
from session_actor.transfer.lines import document_of, lines_of

from .transferring import frames_of, imported, memory, said, written


def user(text: object) -> dict:
    return {"type": "message", "message": {"role": "user", "content": text}}


HEAD = {"type": "session", "id": "s", "modelId": "m", "cwd": "/"}


async def test_a_line_of_100_megabytes_is_named_by_its_offset_and_never_held_in_memory(tmp_path: Path):
    path = written(tmp_path / "t.jsonl", HEAD, user("before"))
    offset = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"type":"message","message":{"role":"user","content":"')
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b'"}}\n')
        file.write(b'{"type":"message","message":{"role":"user","content":"after"}}')
    tracemalloc.start()
    try:
        async with memory() as service:
            report, state = await imported(service, path)
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()

    assert report.unread == [(offset, "longer than 64 MB")]
    assert said(frames_of(state)) == [("user", "before"), ("user", "after")]


async def test_a_value_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch):
    path = tmp_path / "t.json"
    path.write_text('[\n{"role":"user","content":"hello"}\n]')

    with pytest.raises(
        TranscriptUnreadable, match=r"t\.json, byte 0: one JSON value longer than 0 MB: write it as JSON"
    ):
        await document_of(path, max_bytes=20)
    assert len(await document_of(path)) == path.stat().st_size


@pytest.mark.parametrize("chunk", [1, 7, 1 << 18])
async def test_lines_are_cut_at_their_ends_wherever_chunks_end(tmp_path: Path, monkeypatch, chunk: int):
    monkeypatch.setattr(lines_module, "_CHUNK_BYTES", chunk)
    path = tmp_path / "lines"
    path.write_bytes(b"a\n\nbc\r\n" + b"x" * 9 + b"\nd")

    found = [tuple(line) async for line in lines_of(path, max_bytes=8)]

    assert found == [(0, 1, b"a"), (2, 2, b""), (3, 3, b"bc\r"), (7, 4, None), (17, 5, b"d")]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"type":"mess', "not JSON"),
        (b'{"type":"\xff"}', "not UTF-8"),
        ("[1]", "a field has another type than expected"),
        ('{"type":"novelty"}', "an unknown type of line"),
        ('{"type":"message"}', "the field 'message' is missing"),
        ({"type": "message", "message": {"role": "oracle", "content": []}}, "an unknown role"),
        (user([{"type": "text", "text": 7}]), "a field has another type than expected"),
        (
            user([{"type": "toolCall", "id": "c", "name": "x", "arguments": {}}]),
            "turns[0].blocks[0] is a ToolCall: only assistant turns hold those",
        ),
        ("[" * 100_000, "nested too deep"),
    ],
)
async def test_an_unread_line_is_named_and_the_rest_is_imported(tmp_path: Path, line, why: str):
    path = written(tmp_path / "t.jsonl", HEAD, user("first"), line, user("last"))
    async with memory() as service:
        report, state = await imported(service, path)

    offset = sum(len(one) for one in path.read_bytes().splitlines(keepends=True)[:2])
    assert report.unread == [(offset, why)]
    assert said(frames_of(state)) == [("user", "first"), ("user", "last")]


async def test_a_reason_has_no_word_of_the_line(tmp_path: Path):
    secret = "quokka"
    path = written(
        tmp_path / "t.jsonl",
        HEAD,
        user([{"type": secret}]),
        {"type": secret},
        {"type": "message", "message": {"role": secret}},
        f'{{"type": {secret}',
        user([{"type": "text", "text": [secret]}]),
    )
    async with memory() as service:
        report = await import_transcript(service, path)

    assert len(report.unread) == 5
    assert secret not in repr(report)


async def test_halves_of_surrogate_pairs_are_read_in_every_spelling(tmp_path: Path):
    path = written(
        tmp_path / "t.jsonl",
        HEAD,
        r'{"type":"message","message":{"role":"user","content":"\ud83d, \ud83d\ude00, \ude00\ud83d"}}',
        b'{"type":"message","message":{"role":"user","content":"\xed\xa0\xbd"}}',
    )
    async with memory() as service:
        report, state = await imported(service, path)

    assert report.unread == []
    assert [text for _, text in said(frames_of(state))] == ["\ud83d, \U0001f600, \ude00\ud83d", "\ud83d"]
