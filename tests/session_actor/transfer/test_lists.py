"""Lists of messages: several in a file, and elements that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_actor.transfer import elements
from session_actor.transfer.elements import elements_of
from session_actor.transfer.importing import import_transcript

from .transferring import frames_of, imported, memory, said, state_of

A, B, C = (f'{{"role":"user","content":"{name}"}}' for name in "abc")
LEVELS = 100_000  # Python reads about 1,000 before 3.12, then 1,500, and 10,000 from 3.13 on
DEEP = '{"role":"user","content":[' + "[" * LEVELS + "]" * LEVELS + "]}"
DOUBLED = '{"role":"user","role":"user","content":"x"}'


async def texts(path: Path, **options) -> tuple:
    """What an import says: the unread ones, and by session what was said."""
    async with memory() as service:
        report = await import_transcript(service, path, **options)
        talks = {name: [text for _, text in said(frames_of(await state_of(service, name)))] for name in report.sessions}
    return report.unread, talks


@pytest.mark.parametrize("form", [None, "openai-chat"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n \n"])
async def test_a_list_a_line_is_a_conversation_a_line(tmp_path: Path, form: str | None, end: str):
    path = tmp_path / "t.jsonl"
    path.write_bytes(f"\ufeff[{A},{B}]\n\n[{B}]\n[{C},{A}]{end}".encode())

    assert await texts(path, form=form) == ([], {"t": ["a", "b"], "t-1": ["b"], "t-2": ["c", "a"]})


async def test_a_file_that_gains_lists_keeps_the_names_of_its_sessions(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    async with memory() as service:
        for count, name in enumerate(("t", "t-1", "t-2"), 1):
            path.write_text("\n".join([f"[{A},{B}]"] * count))
            report = await import_transcript(service, path)
            assert (report.added, report.sessions[-1]) == (2, name)
        assert (await import_transcript(service, path)).added == 0


@pytest.mark.parametrize(
    ("content", "unread", "talks"),
    [
        (f"[{A}]\n{B}\n", [], {"t": ["a", "b"]}),
        (f"[{A}] garbage", [(len(A) + 3, "not JSON")], {"t": ["a"]}),
        (f"[{A}]]", [(len(A) + 2, "not JSON")], {"t": ["a"]}),
        (f"[\n{A}\n]\n[\n{B},\n{C}]", [], {"t": ["a"], "t-1": ["b", "c"]}),
        (f"[{A}]\n[{B},", [(2 * len(A) + 5, "not JSON")], {"t": ["a"], "t-1": ["b"]}),
        (f"[{A}]\n[7]\n[{B}]", [(len(A) + 4, "a field has another type than expected")], {"t": ["a"], "t-1": ["b"]}),
        (f"[7]\n[{A}]", [(1, "a field has another type than expected")], {"t": ["a"]}),
        (f'[{A}]\n[{{"ro\n[{B}]', [(len(A) + 4, "not JSON")], {"t": ["a"], "t-1": ["b"]}),
        (f"{A}\n[{B}]\n{C}", [], {"t": ["a"], "t-1": ["b", "c"]}),
        (f"[{A}", [(len(A) + 1, "not JSON")], {"t": ["a"]}),
    ],
    ids=map(str, range(10)),
)
async def test_nothing_that_follows_a_list_is_dropped_without_a_word(tmp_path: Path, content: str, unread, talks):
    path = tmp_path / "t.jsonl"
    path.write_text(content)

    assert await texts(path, form="openai-chat") == (unread, talks)


@pytest.mark.parametrize("form", [None, "openai-chat"])
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (DOUBLED.encode(), "a key that stands twice in one object"),
        (DEEP.encode(), "nested too deep"),
        (b'{"role":"user","content":' + b"9" * 5_000 + b"}", "a value that cannot be read"),
        (b'{"role":"user","content":"\xff"}', "not UTF-8"),
        (b'{"role":"user","content":[{"type":"text"}}', "not JSON"),
        (b'{"role":"user","content":"x\ny"}', "not JSON"),
        (b'{"role":user}', "not JSON"),
        (b"quokka", "not JSON"),
        (b"}", "not JSON"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_an_element_that_cannot_be_read_costs_itself_alone(
    tmp_path: Path, bad: bytes, why: str, form: str | None
):
    path, first = tmp_path / "t.json", '[{"role":"user","content":"äöü €"},\n'.encode()
    path.write_bytes(first + bad + b",\n" + A.encode() + b" " + B.encode() + b",]")

    assert await texts(path, form=form) == ([(len(first), why)], {"t": ["äöü €", "a", "b"]})


@pytest.mark.parametrize("end", ['{"role":"us', '"', '{"role":"user","content":"b"', "{"])
async def test_of_a_list_that_is_torn_all_before_is_imported(tmp_path: Path, end: str):
    path = tmp_path / "t.json"
    before = f'[{A},{{"role":"user","content":"ä"}},'
    path.write_text(before + end)

    assert await texts(path) == ([(len(before.encode()), "not JSON")], {"t": ["a", "ä"]})
    path.write_text(f"[{A}, {B}]")
    async with memory() as service:
        _, state = await imported(service, path)
    assert said(frames_of(state)) == [("user", "a"), ("user", "b")]


def test_elements_are_those_of_the_list_wherever_they_stand():
    values = [{"a": '[{"}]\\"'}, [], [[1], {"b": []}], "x, y", 7, None, -1.5, "ä", {}, "\\", True]
    for indent in (None, 1):
        for as_ascii in (True, False):
            data = json.dumps(values, indent=indent, ensure_ascii=as_ascii).encode()
            found = list(elements_of(data, 100))
            assert [one.value for one in found] == values
            starts = [json.dumps(value, ensure_ascii=as_ascii).encode()[:1] for value in values]
            assert [data[one.offset - 100 :][:1] for one in found] == starts
            # behind one that cannot be read the others are found the other way
            found = list(elements_of(b'[{"a":1,"a":2},' + data[1:], 100))
            assert [one.value for one in found[1:]] == values


def test_the_end_of_what_is_nested_without_end_is_not_looked_for_for_ever(monkeypatch):
    monkeypatch.setattr(elements, "_BRACKETS_AT_MOST", 20_000)
    for count, ends in ((9_000, 2), (11_000, 1)):
        data = b"[" + b"[" * count + b"]" * count + b",1]"
        assert len(list(elements_of(data))) == ends
