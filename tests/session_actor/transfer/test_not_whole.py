"""An export that is not whole says so when it is imported, and where."""

from __future__ import annotations

import json
from itertools import accumulate, combinations
from pathlib import Path

import pytest

from session_actor.transfer import notes as notes_module
from session_actor.transfer.exporting import export_session
from session_actor.transfer.importing import import_transcript
from session_actor.transfer.notes import NotWhole

from .transferring import everything, frames_of, imported, lines_in, memory, state_of


async def real_export(path: Path, *names: str) -> list[bytes]:
    """The lines of exports of sessions with every kind of thing in them."""
    async with memory() as service:
        with path.open("wb") as file:
            for name in names or ("user-42",):
                session = await everything(service, name)
                await session.push(name)
                await export_session(service, name, file)
    return lines_in(path)


async def lacks(path: Path, lines: list[bytes]) -> list[NotWhole]:
    """What an import of these lines finds."""
    path.write_bytes(b"".join(lines))
    async with memory() as service:
        report = await import_transcript(service, path)
    assert report.not_whole_count == len(report.not_whole)
    return report.not_whole


def places(lines: list[bytes]) -> list[int]:
    """Where each line begins, and the end of all."""
    return [0, *accumulate(map(len, lines))]


async def test_a_whole_export_lacks_nothing_whatever_ends_its_lines(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await real_export(path)

    assert await lacks(path, lines) == []
    assert await lacks(path, [b"\xef\xbb\xbf", *(line.replace(b"\n", b"\r\n") for line in lines), b"\n \n"]) == []
    assert await lacks(path, [*lines[:-1], lines[-1].strip()]) == []


async def test_every_line_that_was_deleted_is_missed_at_its_place(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await real_export(path)
    assert len(lines) > 10
    for gone in range(len(lines)):
        left = [*lines[:gone], *lines[gone + 1 :]]
        found = await lacks(path, left)
        if gone == 0:
            wanted = NotWhole(0, "head")
        elif gone == len(left):
            wanted = NotWhole(path.stat().st_size, "tail")
        else:
            wanted = NotWhole(places(left)[gone], "frames", 1)
        assert found == [wanted], gone


async def test_every_line_that_stands_twice_is_told_at_its_place(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await real_export(path)
    for twice in range(len(lines)):
        more = [*lines[: twice + 1], *lines[twice:]]
        assert await lacks(path, more) == [NotWhole(places(more)[twice + 1], "order")], twice


async def test_all_is_there_of_an_export_with_a_line_twice(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await real_export(path)
    for twice in range(len(lines)):
        path.write_bytes(b"".join([*lines[: twice + 1], *lines[twice:]]))
        async with memory() as service:
            report, state = await imported(service, path)
        assert (report.sessions, len(frames_of(state)), state.attached) == (["user-42"], len(lines) - 2, "idea")


async def test_any_two_lines_that_changed_places_are_told_where_the_first_is(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await real_export(path)
    for one, other in combinations(range(len(lines)), 2):
        swapped = list(lines)
        swapped[one], swapped[other] = lines[other], lines[one]
        found = await lacks(path, swapped)
        assert found, (one, other)
        assert found[0].offset in places(swapped)[one : one + 2], (one, other)


async def test_a_frame_that_was_changed_is_told(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await real_export(path)
    for at in range(1, len(lines) - 1):
        line = json.loads(lines[at])
        line["at_us"] += 1
        changed = [*lines[:at], json.dumps(line).encode() + b"\n", *lines[at + 1 :]]
        assert await lacks(path, changed) == [NotWhole(places(changed)[-2], "changed")]


async def test_frames_that_two_exports_exchanged_are_told_in_both(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await real_export(path, "a", "b")
    half = len(lines) // 2
    one, other = half - 2, len(lines) - 2  # what was pushed last, with the name of its session in it
    swapped = list(lines)
    swapped[one], swapped[other] = lines[other], lines[one]

    assert [lack.lack for lack in await lacks(path, lines)] == []
    assert [(lack.lack, lack.offset) for lack in await lacks(path, swapped)] == [
        ("changed", places(swapped)[half - 1]),
        ("changed", places(swapped)[-2]),
    ]


async def test_of_two_exports_each_lacks_its_own(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await real_export(path, "a", "b")
    half = len(lines) // 2
    at = places(lines)

    without_tail = [*lines[: half - 1], *lines[half:]]
    assert await lacks(path, without_tail) == [NotWhole(at[half - 1], "tail")]
    without_head = [*lines[:half], *lines[half + 1 :]]
    assert await lacks(path, without_head) == [NotWhole(at[half], "head")]
    assert await lacks(path, lines[:half] + lines[half : half + 1]) == [NotWhole(at[half + 1], "tail")]


async def test_an_export_without_numbers_is_counted(tmp_path: Path):
    def older(line: bytes) -> bytes:
        known = {name: value for name, value in json.loads(line).items() if name not in {"n", "hash"}}
        return json.dumps(known).encode() + b"\n"

    path = tmp_path / "out.ndjson"
    lines = [older(line) for line in await real_export(path)]
    left = [*lines[:3], *lines[4:]]

    assert await lacks(path, lines) == []
    assert await lacks(path, left) == [NotWhole(places(left)[-2], "frames", 1)]
    assert await lacks(path, [*lines[:4], *lines[3:]]) == [NotWhole(places([*lines[:4], *lines[3:]])[-2], "order")]


async def test_what_an_export_lacks_is_missing_there_and_the_rest_is_imported(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await real_export(path)
    for gone in range(1, len(lines) - 1):
        path.write_bytes(b"".join([*lines[:gone], *lines[gone + 1 :]]))
        async with memory() as service:
            report, state = await imported(service, path)
        assert (report.added, len(frames_of(state))) == (len(lines) - 3, len(lines) - 3)


async def test_an_import_into_a_session_that_has_all_tells_the_same(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await real_export(path)
    async with memory() as service:
        await imported(service, path)
        path.write_bytes(b"".join([*lines[:4], *lines[5:]]))
        report = await import_transcript(service, path)
        state = await state_of(service, "user-42")

    assert report.not_whole == [NotWhole(places(lines)[4], "frames", 1)]
    assert (report.added, len(frames_of(state))) == (0, len(lines) - 2)


async def test_of_very_many_findings_the_first_are_named_and_all_are_counted(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(notes_module, "NAMED_AT_MOST", 3)
    path = tmp_path / "out.ndjson"
    lines = await real_export(path)
    path.write_bytes(b"".join(line for line in lines for _ in range(2)))
    async with memory() as service:
        report = await import_transcript(service, path)

    assert (len(report.not_whole), report.not_whole_count) == (3, len(lines))
    assert (len(report.unread), report.unread_count) == (3, len(lines) - 2)


@pytest.mark.parametrize(
    ("lack", "what"),
    [
        (NotWhole(1, "frames", 1), "1 frame is missing before this line"),
        (NotWhole(1, "frames", 7), "7 frames are missing before this line"),
        (NotWhole(1, "tail"), "the last line is missing, and with it the names of branches"),
    ],
)
def test_a_finding_says_in_words_what_it_is(lack: NotWhole, what: str):
    assert lack.what == what
