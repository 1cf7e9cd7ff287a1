"""Files and places that are not what they should be."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import threading
from pathlib import Path

import pytest

from session_actor import InvalidArgument, UnusableId
from session_actor.transfer import new_file
from session_actor.transfer.exporting import export_session
from session_actor.transfer.importing import import_transcript
from session_actor.transfer.lines import lines_of

from .transferring import frames_of, imported, lines_in, memory, said, state_of, written

NO_FILES = ["pipe", "socket", "/dev/null"]


def no_file(folder: Path, kind: str) -> Path:
    """Something with a path that is no file."""
    path = folder / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    return path


async def filled(service, name: str = "s", frames: int = 3):
    """A session of some frames."""
    session = await service.session(name, create=True)
    for number in range(frames):
        await session.push(f"q{number}")
    return session


class Sipping(io.RawIOBase):
    """Takes seven bytes at once, as a pipe that is nearly full."""

    def __init__(self, most: int | None = None) -> None:
        self.taken = b""
        self.most = most

    def writable(self) -> bool:
        return True

    def write(self, data) -> int | None:
        if self.most is not None and len(self.taken) >= self.most:
            return None
        self.taken += bytes(data[:7])
        return len(bytes(data[:7]))


@pytest.mark.parametrize("kind", NO_FILES)
async def test_a_pipe_or_a_device_is_neither_read_nor_replaced(tmp_path: Path, kind: str):
    path = no_file(tmp_path, kind)
    before = path.lstat()
    async with memory() as service:
        await filled(service)
        with pytest.raises(InvalidArgument, match="out is no file but a pipe, a device or a socket"):
            await export_session(service, "s", path)
        with pytest.raises(InvalidArgument, match="path is no file but a pipe, a device or a socket"):
            await import_transcript(service, path)

    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert [one.name for one in tmp_path.iterdir()] == [path.name][: len(list(tmp_path.iterdir()))]


@pytest.mark.parametrize("path", [5, None, b"/tmp/x", "a\0b", ["x"]], ids=repr)
async def test_what_is_no_path_is_refused_before_anything_is_opened(path):
    async with memory() as service:
        await filled(service)
        with pytest.raises(InvalidArgument, match="path"):
            await import_transcript(service, path)
        with pytest.raises(InvalidArgument, match="path"):
            await export_session(service, "s", path)


async def test_an_export_goes_through_a_link_to_its_file_and_keeps_who_may_read_it(tmp_path: Path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to("real")
    async with memory() as service:
        await filled(service)
        report = await export_session(service, "s", link)

    assert link.is_symlink()
    assert real.stat().st_size == report.size_bytes
    assert real.stat().st_mode & 0o777 == 0o640


async def test_exports_to_one_path_at_once_each_write_a_file_of_their_own(tmp_path: Path):
    out = tmp_path / "out"
    async with memory() as service:
        await filled(service)
        reports = await asyncio.gather(*(export_session(service, "s", out) for _ in range(5)))

    assert {report.size_bytes for report in reports} == {out.stat().st_size}
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("step", ["_open", "_keep"])
@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancelled_export_leaves_no_unfinished_file(tmp_path: Path, monkeypatch, step: str, times: int):
    loop, began, gate = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    original = getattr(new_file.NewFile, step)

    def slow(self) -> None:
        loop.call_soon_threadsafe(began.set)
        assert gate.wait(20)
        original(self)

    monkeypatch.setattr(new_file.NewFile, step, slow)
    out = tmp_path / "out"
    async with memory() as service:
        await filled(service)
        task = asyncio.create_task(export_session(service, "s", out))
        await began.wait()
        if times == 1:
            gate.set()  # the step may end meanwhile
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        loop.call_later(0.05, gate.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        await loop.run_in_executor(None, lambda: None)

    assert [path for path in tmp_path.iterdir() if path != out] == []


async def test_a_file_that_takes_little_at_once_gets_all_of_it():
    sipping, whole = Sipping(), io.BytesIO()
    async with memory() as service:
        await filled(service)
        report = await export_session(service, "s", sipping)  # type: ignore[arg-type]  # it is binary
        await export_session(service, "s", whole)
        with pytest.raises(BlockingIOError, match="takes nothing now"):
            await export_session(service, "s", Sipping(70))  # type: ignore[arg-type]

    assert sipping.taken == whole.getvalue()
    assert report.size_bytes == len(sipping.taken)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
async def test_a_full_disk_is_told_also_for_a_file_with_a_buffer():
    async with memory() as service:
        await filled(service)
        file = Path("/dev/full").open("wb")  # noqa: SIM115 - closing it raises, too
        with pytest.raises(OSError, match="No space"):
            await export_session(service, "s", file)
        with pytest.raises(OSError, match="No space"):
            file.close()


async def exported(path: Path, *names: str) -> list[bytes]:
    """The lines of an export of these sessions, one after the other."""
    async with memory() as service:
        lines: list[bytes] = []
        for name in names:
            await filled(service, name, 2)
            await export_session(service, name, path)
            lines += lines_in(path)
    return lines


@pytest.mark.parametrize(
    "metadata", [{"$b64": "AA"}, {"$esc": "\\u"}, {"a": {"$unknown": 1}}, {"$float": "x"}], ids=json.dumps
)
async def test_a_head_that_cannot_be_read_costs_its_line_alone(tmp_path: Path, metadata: object):
    path = tmp_path / "out.ndjson"
    head, *lines = await exported(path, "s")
    path.write_bytes(json.dumps({**json.loads(head), "metadata": metadata}).encode() + b"\n" + b"".join(lines))
    async with memory() as service:
        report, state = await imported(service, path)

    assert [offset for offset, _ in report.unread] == [0]
    assert (report.sessions, said(frames_of(state))) == (["out"], [("user", "q0"), ("user", "q1")])


async def test_an_export_whose_head_cannot_be_read_is_not_mixed_with_the_one_before_it(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    lines = await exported(path, "first", "second")
    broken = [b"{\n" if line.startswith(b'{"form"') and b"second" in line else line for line in lines]
    path.write_bytes(b"".join(broken))
    async with memory() as service:
        report, first = await imported(service, path)
        second = await state_of(service, report.sessions[1])

    assert (report.added, len(report.unread), report.sessions) == (4, 1, ["first", "out"])
    assert first.branches == second.branches == {"main": 2}


@pytest.mark.parametrize("form", ["ndjson", "openai-chat"])
async def test_an_empty_session_id_is_refused_and_not_passed_over(tmp_path: Path, form: str):
    path = tmp_path / "t"
    path.write_bytes(b"".join(await exported(path, "s")) if form == "ndjson" else b'{"role":"user","content":"x"}')
    async with memory() as service:
        with pytest.raises(UnusableId):
            await import_transcript(service, path, form, session_id="")
        assert [info.id async for info in service.sessions()] == []


async def test_a_head_that_is_not_where_its_branch_is_goes_there(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    *lines, tail = await exported(path, "s")
    made = json.loads(tail)
    path.write_bytes(b"".join([*lines, json.dumps({**made, "sealed": {**made["sealed"], "head": None}}).encode()]))
    async with memory() as service:
        report, state = await imported(service, path)
        frame = await (await service.session("s")).push("on")

    assert (report.unread, state.branches, frame.parent) == ([], {"main": 3}, 2)


async def test_a_thousand_repeats_cost_no_more_than_as_many_others(tmp_path: Path):
    def line(number: int) -> dict:
        message = {"role": "user", "content": "once more"}
        return {"type": "message", "id": str(number), "parentId": None, "message": message}

    path = written(tmp_path / "t.jsonl", {"type": "session", "id": "s", "cwd": "/"}, *map(line, range(1_000)))
    hashed = 0

    async with memory() as service:
        with pytest.MonkeyPatch.context() as patch:
            from session_actor.transfer import identity

            original = identity._hash

            def counted(below: bytes, content: bytes) -> bytes:
                nonlocal hashed
                hashed += 1
                return original(below, content)

            patch.setattr(identity, "_hash", counted)
            report, _ = await imported(service, path)
            again = await import_transcript(service, path)

    assert (report.added, again.added, again.skipped) == (1_000, 0, 1_000)
    assert hashed < 15_000


async def test_lines_are_cut_in_a_file_of_nothing_but_ends(tmp_path: Path):
    path = tmp_path / "ends"
    path.write_bytes(b"\r\n" * 5_000 + b'{"role":"user","content":"x"}')
    async with memory() as service:
        report, state = await imported(service, path)

    assert (report.unread, said(frames_of(state))) == ([], [("user", "x")])
    assert [line.offset async for line in lines_of(path)][-1] == 10_000


@pytest.mark.parametrize("first", ['le":"user"}', "\x00\x00", "null", '"x"', "junk", '{"role":'], ids=repr)
async def test_a_first_line_that_is_broken_costs_itself_alone(tmp_path: Path, first: str):
    path = written(tmp_path / "t.jsonl", first, *({"role": "user", "content": text} for text in "abc"))
    async with memory() as service:
        report, state = await imported(service, path, form="openai-chat")

    assert [offset for offset, _ in report.unread] == [0]
    assert said(frames_of(state)) == [("user", text) for text in "abc"]


async def test_as_many_branches_as_lines_and_labels_of_one_name_are_all_kept(tmp_path: Path):
    lines: list[dict] = [{"type": "session", "id": "s", "cwd": "/"}]
    for number in range(600):
        message = {"role": "user", "content": f"root {number}"}
        lines.append({"type": "message", "id": str(number), "parentId": None, "message": message})
        lines.append({"type": "label", "targetId": str(number), "label": "same"})
    async with memory() as service:
        report, state = await imported(service, written(tmp_path / "t.jsonl", *lines))
        again = await import_transcript(service, tmp_path / "t.jsonl")

    assert (report.added, again.added) == (600, 0)
    assert state.branches == {"main": 600} | {f"b{frame}": frame for frame in range(1, 600)}
    assert state.checkpoints == {"same": 1} | {f"same-{frame}": frame for frame in range(2, 601)}
