"""Files that are no plain JSON Lines: other encodings, torn ends, values that JSON hardly has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_actor import TranscriptUnreadable
from session_actor.blocks import Native, ToolCall
from session_actor.state import weight
from session_actor.transfer import pieces
from session_actor.transfer.importing import import_transcript
from session_actor.transfer.lines import bare_line
from session_actor.transfer.planting import SUMMARY_LIMIT

from .transferring import ALL, frames_of, imported, line_bytes, lines_in, memory, picture, said, written

FIRST, LAST = {"role": "user", "content": "first"}, {"role": "user", "content": "last"}


def part(value: str) -> str:
    """A message of a user with a part that only its provider knows, with this JSON text in it."""
    return f'{{"role":"user","content":[{{"type":"novelty","value":{value}}}]}}'


def untimed(state) -> dict:
    """A picture without times: a file without them has that of the import."""
    whole = picture(state)
    for frame in whole["frames"]:
        del frame["at_us"]
    return whole


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
async def test_a_mark_at_the_start_and_other_line_ends_change_nothing(path: Path, tmp_path: Path):
    odd = tmp_path / path.name
    odd.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    async with memory() as service:
        plain, state = await imported(service, path, session_id="s")
    async with memory() as service:
        report, other = await imported(service, odd, session_id="s")

    assert untimed(other) == untimed(state)
    assert [why for _, why in report.unread] == [why for _, why in plain.unread]


async def test_files_that_were_joined_keep_the_mark_at_the_start_of_each(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line_bytes(FIRST) + b"\n\xef\xbb\xbf" + line_bytes(LAST))
    async with memory() as service:
        report, state = await imported(service, path)

    assert (report.unread, said(frames_of(state))) == ([], [("user", "first"), ("user", "last")])


@pytest.mark.parametrize("form", [None, "openai-chat", "pi", "ndjson"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
async def test_a_file_of_wider_characters_is_refused_with_what_to_do(tmp_path: Path, encoding: str, form: str | None):
    path = tmp_path / "t.jsonl"
    path.write_text('{"role":"user","content":"hi"}\n', encoding)
    async with memory() as service:
        with pytest.raises(TranscriptUnreadable, match="byte 0: it is written in UTF-16 or UTF-32: convert it"):
            await import_transcript(service, path, form)
        assert [info async for info in service.sessions()] == []


async def test_a_line_behind_zero_bytes_that_a_crash_left_is_read(tmp_path: Path):
    path = written(tmp_path / "t.jsonl", FIRST, bytes(4_096) + line_bytes(LAST), bytes(10))
    async with memory() as service:
        report, state = await imported(service, path)

    assert said(frames_of(state)) == [("user", "first"), ("user", "last")]
    assert report.unread == [(len(line_bytes(FIRST)) + 1 + 4_096 + len(line_bytes(LAST)) + 1, "not JSON")]


@pytest.mark.parametrize(
    ("data", "bare"),
    [
        (b' {"a":1}\r', b'{"a":1}'),
        (b"\0\0\xef\xbb\xbf{}", b"{}"),
        (b"\xef\xbb\xbf", b""),
        (b" \t\r", b""),
        (b"\0\0", b"\0\0"),
        (b"\xef\xbb\xbf  x  ", b"x"),
    ],
)
def test_a_line_is_bare_of_what_says_nothing(data: bytes, bare: bytes):
    assert bare_line(data) == bare


@pytest.mark.parametrize("path", [path for path in ALL if path.suffix == ".jsonl"], ids=lambda path: path.name)
async def test_a_file_that_is_torn_in_its_last_line_is_finished_when_that_is_there(path: Path, tmp_path: Path):
    whole, torn = path.read_bytes().rstrip(), tmp_path / path.name
    async with memory() as service:
        _, state = await imported(service, path, session_id="s")
        wanted = said(state.table.path(state.head))
    start = whole.rindex(b"\n") + 1
    for end in (start + 1, (start + len(whole)) // 2, len(whole) - 1):
        torn.write_bytes(whole[:end])
        async with memory() as service:
            report, _ = await imported(service, torn, session_id="s")
            assert report.unread[-1] == (start, "not JSON")
            torn.write_bytes(whole + b"\n")
            again, state = await imported(service, torn, session_id="s")
            assert start not in [offset for offset, _ in again.unread]
            assert said(state.table.path(state.head)) == wanted


@pytest.mark.parametrize("form", ["openai-chat", "claude-code"])
async def test_a_file_that_grows_while_it_is_imported_is_finished_by_the_next_import(tmp_path: Path, form: str):
    def line(number: int) -> dict:
        key, below = f"u{number}", f"u{number - 1}" if number else None
        message = {"role": "user", "content": f"q{number} {'x' * 400}"}
        return message if form == "openai-chat" else {
            "type": "user", "uuid": key, "parentUuid": below, "sessionId": "s", "message": message,
        }  # fmt: skip

    path = written(tmp_path / "t.jsonl", *map(line, range(600)))
    async with memory() as service:
        wrote = 600
        session = await service.session("s", create=True)

        class Growing(type(service)):  # every time that the importer asks for its session, the file has grown
            async def session(self, *args, **options):
                nonlocal wrote
                with path.open("ab") as file:
                    file.write(b"".join(line_bytes(line(number)) + b"\n" for number in range(wrote, wrote + 50)))
                    file.write(line_bytes(line(wrote + 50))[:30])
                wrote += 50
                return await super().session(*args, **options)

        service.__class__ = Growing
        first = await import_transcript(service, path, form, "s")
        service.__class__ = Growing.__mro__[1]
        path.write_bytes(b"".join(line_bytes(line(number)) + b"\n" for number in range(wrote)))
        second = await import_transcript(service, path, form, "s")
        third = await import_transcript(service, path, form, "s")
        stack = await session.stack()

    assert 600 <= first.added <= wrote
    assert (first.added + second.added, third.added) == (650, 0)
    assert [text for _, text in said(list(stack))] == [f"q{number} {'x' * 400}" for number in range(650)]


@pytest.mark.parametrize(
    "value", ["NaN", "-Infinity", "1e999", str(2**63), str(-(2**80)), "1" * 400, "[" * 150 + "]" * 150, r'"\ud800"']
)
async def test_values_that_json_hardly_has_come_back_as_they_were(tmp_path: Path, value: str):
    path = written(tmp_path / "t.jsonl", FIRST, part(value), LAST)
    async with memory() as service:
        report, state = await imported(service, path)

    block = state.table.at(2).turns[0].blocks[0]
    assert report.unread == []
    assert type(block) is Native
    assert repr(block.value["value"]) == repr(json.loads(value))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("[" * 300 + "]" * 300, "a value that cannot be stored: it is nested deeper than 200 levels"),
        ("[" * 900 + "]" * 900, "a value that cannot be stored: it is nested deeper than 200 levels"),
        ("[" * 100_000 + "]" * 100_000, "nested too deep"),  # any Python reads 900 levels, and none as many
        ("1" * 5_000, "a value that cannot be read"),
        ('{"a":1,"a":2}', "a key that stands twice in one object"),
        ("[1", "not JSON"),
        ('"\t"', "not JSON"),
        (r'"\ud8"', "not JSON"),
        ("nan", "not JSON"),
        ("01", "not JSON"),
    ],
    ids=lambda text: text[:12],
)
async def test_values_that_cannot_be_kept_cost_their_line_alone_and_say_why(tmp_path: Path, value: str, why: str):
    path = written(tmp_path / "t.jsonl", FIRST, part(value), LAST)
    async with memory() as service:
        report, state = await imported(service, path)

    ((offset, told),) = report.unread
    assert (offset, told[: len(why)]) == (len(line_bytes(FIRST)) + 1, why)
    assert said(frames_of(state)) == [("user", "first"), ("user", "last")]


async def test_arguments_may_be_nested_as_deep_as_a_model_writes(tmp_path: Path):
    deep = "[" * 5_000 + "]" * 5_000
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": deep}}
    path = written(tmp_path / "t.jsonl", FIRST, {"role": "assistant", "content": None, "tool_calls": [call]})
    async with memory() as service:
        report, state = await imported(service, path)

    assert (report.unread, state.table.at(2).turns[0].blocks) == ([], (ToolCall("c", "f", deep),))


@pytest.mark.parametrize(
    "line",
    [
        part('{"quokka":' * 300 + "1" + "}" * 300),
        part('{"quokka":{"quokka":1,"quokka":2}}'),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"quokka": 2**4000}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "f", "arguments": {"quokka": {}}}}],
        },
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,quokka"}}]},
        {"role": "user", "content": [{"type": "file", "file": {"file_data": "quokka", "filename": "quokka"}}]},
        {"role": "quokka", "content": "quokka", "quokka": 1},
        {"role": "assistant", "content": 7, "quokka": "quokka", "name": "quokka"},
    ],
    ids=str,
)
async def test_no_reason_has_a_key_or_a_word_of_the_line(tmp_path: Path, line: dict | str):
    path = written(tmp_path / "t.jsonl", FIRST, line, LAST)
    async with memory() as service:
        report = await import_transcript(service, path, "openai-chat")

    assert "quokka" not in repr(report)


async def test_very_many_lines_that_cannot_be_read_are_counted_and_the_first_thousand_named(tmp_path: Path):
    path = written(tmp_path / "t.jsonl", FIRST, *["{"] * 3_000, LAST)
    async with memory() as service:
        report, state = await imported(service, path)

    assert (len(report.unread), report.unread_count) == (1_000, 3_000)
    assert report.unread[0] == (len(lines_in(path)[0]), "not JSON")
    assert said(frames_of(state)) == [("user", "first"), ("user", "last")]


async def test_a_line_of_megabytes_is_one_frame(tmp_path: Path):
    long = "x" * 5_000_000
    path = written(tmp_path / "t.jsonl", FIRST, {"role": "user", "content": long}, LAST)
    async with memory() as service:
        report, state = await imported(service, path)

    assert (report.unread, report.added, state.table.at(2).turns[0].text) == ([], 3, long)


@pytest.mark.parametrize("kind", ["system", "summary"])
async def test_what_no_record_can_hold_costs_itself_alone_wherever_it_stands(tmp_path: Path, monkeypatch, kind: str):
    monkeypatch.setattr(pieces, "SURELY_FITS", 10_000)
    monkeypatch.setattr(weight, "_LIMIT_BYTES", 80_000)
    long = "\ud83c" * 15_000
    head = {"type": "session", "id": "s", "cwd": "/"}
    talk = [{"type": "message", "message": message} for message in (FIRST, LAST)]
    lines = {
        "system": [FIRST, {"messages": [{"role": "system", "content": long}, LAST]}],
        "summary": [head, {"type": "compaction", "summary": long}, *talk],
    }[kind]
    async with memory() as service:
        report = await import_transcript(service, written(tmp_path / "t.jsonl", *lines))

    ((_, why),) = report.unread
    assert why.startswith("a record of at least")
    assert report.added == 2


async def test_a_summary_that_is_too_long_to_stand_for_others_is_what_the_user_says(tmp_path: Path):
    lines = [
        {"type": "session", "id": "s", "cwd": "/"},
        {"type": "message", "message": FIRST},
        {"type": "compaction", "summary": "x" * (SUMMARY_LIMIT + 1)},
        {"type": "message", "message": LAST},
        {"type": "compaction", "summary": "x" * SUMMARY_LIMIT},
    ]
    async with memory() as service:
        report, state = await imported(service, written(tmp_path / "t.jsonl", *lines))

    assert (report.added, report.unread) == (3, [])
    assert [one.covered_frame for one in state.overlays] == [3]
