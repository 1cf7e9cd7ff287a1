"""Our own export, and back."""

from __future__ import annotations

import asyncio
import io
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_actor import MemoryStore, SessionNotFound, SessionService
from session_actor.errors import Refused
from session_actor.replay import read_store
from session_actor.server import snapshots
from session_actor.state.state import State
from session_actor.transfer.exporting import export_session
from session_actor.transfer.importing import import_transcript

from ..compaction.compacted import MODELS, converse
from .transferring import ALL, everything, frames_of, imported, memory, picture, state_of


async def test_an_imported_export_is_an_equal_session(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    async with memory() as service:
        session = await everything(service)
        report = await export_session(service, "user-42", path)
        whole = picture(await state_of(service, "user-42"))
        usage = await session.usage()
    async with memory() as service:
        found, state = await imported(service, path)
        assert (found.form, found.added, found.unread, found.sessions) == (
            "ndjson",
            len(whole["frames"]),
            [],
            ["user-42"],
        )
        assert picture(state) == whole
        assert await (await service.session("user-42")).usage() == usage
        second = tmp_path / "again.ndjson"
        await export_session(service, "user-42", second)

    assert report.size_bytes == path.stat().st_size
    lines, again = path.read_bytes().splitlines()[1:], second.read_bytes().splitlines()[1:]
    assert again == lines
    assert list(tmp_path.iterdir()) == [path, second] or len(list(tmp_path.iterdir())) == 2


async def test_an_equal_session_is_so_after_a_restart_too_and_goes_on(tmp_path: Path):
    path, folder = tmp_path / "out.ndjson", tmp_path / "conversations"
    async with memory() as service:
        await everything(service)
        await export_session(service, "user-42", path)
        whole = picture(await state_of(service, "user-42"))
    async with SessionService.open(folder) as service:
        await import_transcript(service, path, session_id="other")
    async with SessionService.open(folder) as service:
        assert picture(await state_of(service, "other")) == whole
        session = await service.session("other")
        frame = await session.push("on")
        assert (frame.id, frame.parent) == (whole["head"][2], whole["head"][0])


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
async def test_what_was_imported_comes_out_and_in_again(path: Path, tmp_path: Path):
    out = tmp_path / "out.ndjson"
    async with memory() as service:
        report, state = await imported(service, path)
        whole = picture(state)
        await export_session(service, report.sessions[0], out)
        _, state = await imported(service, out, session_id="copy")

    assert picture(state) == whole


async def test_a_compaction_goes_along(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    async with SessionService.open(MemoryStore(), models=MODELS) as service:
        session = await service.session("s", create=True)
        await converse(session)
        plan = await session.prepare_compaction()
        await session.commit_compaction(plan, plan.extractive())
        await export_session(service, "s", path)
        whole = picture(await state_of(service, "s"))
        request = await session.build_request("anthropic")
    async with SessionService.open(MemoryStore(), models=MODELS) as service:
        _, state = await imported(service, path)
        other = await (await service.session("s")).build_request("anthropic")

    assert len(whole["overlays"]) == 1
    assert picture(state) == whole
    assert dict(other) == dict(request)


async def test_an_ended_session_has_ended_again(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    async with memory() as service:
        await everything(service)
        await service.end("user-42", "done")
        await export_session(service, "user-42", path)
    async with memory() as service:
        await import_transcript(service, path)
        again, state = await imported(service, path)

    assert (state.ended, again.added) == ("done", 0)


async def test_old_frames_are_read_from_the_disk_and_not_kept(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 1)
    folder, path = tmp_path / "conversations", tmp_path / "out.ndjson"
    async with SessionService.open(folder) as service:
        session = await service.session("s", create=True)
        await session.configure(system="x", model="m")
        for number in range(1_200):
            await session.push(f"q{number}")
        whole = picture(await state_of(service, "s"))
    async with SessionService.open(folder) as service:
        state = await state_of(service, "s")
        await export_session(service, "s", path)
        assert sum(state.table.slot(frame_id) is not None for frame_id in range(1, 1_202)) < 100
        for form in ("markdown",):
            await export_session(service, "s", tmp_path / "out.md", form)
        assert sum(state.table.slot(frame_id) is not None for frame_id in range(1, 1_202)) < 100
    async with memory() as service:
        _, state = await imported(service, path)
    assert picture(state) == whole


async def test_an_export_is_of_one_moment(tmp_path: Path):
    class Slow(io.BytesIO):
        """It is pushed to while it is written."""

    out = Slow()
    async with memory() as service:
        session = await service.session("s", create=True)
        for number in range(600):
            await session.push(f"q{number}")
        task = asyncio.create_task(export_session(service, "s", out))
        while not task.done():
            await session.push("meanwhile")
            await asyncio.sleep(0)
        path = tmp_path / "out.ndjson"
        path.write_bytes(out.getvalue())
        whole = frames_of(await state_of(service, "s"))
        _, state = await imported(service, path, session_id="copy")

    count = state.next_id - 1
    assert 600 <= count < len(whole)
    assert frames_of(state) == whole[:count]
    assert state.branches == {"main": count}


async def test_whatever_knows_the_state_can_be_exported(tmp_path: Path):
    class Reader:
        """Reads a store that another process holds."""

        def __init__(self, state: State) -> None:
            self.state = state

        async def state_of(self, session_id: str) -> State:
            assert session_id == "user-42"
            return self.state

    one, other = io.BytesIO(), io.BytesIO()
    async with memory() as service:
        await everything(service)
        await export_session(Reader(await state_of(service, "user-42")), "user-42", one)
        await export_session(service, "user-42", other)

    assert one.getvalue() == other.getvalue() != b""


@pytest.mark.parametrize("form", ["ndjson", "markdown"])
async def test_a_store_in_use_is_exported_without_its_lock(tmp_path: Path, form: str):
    folder, one, other = tmp_path / "conversations", io.BytesIO(), io.BytesIO()
    async with SessionService.open(folder) as service:
        session = await everything(service)
        await session.flush("written")
        await export_session(service, "user-42", one, form)
        with read_store(folder) as reader:
            await export_session(reader, "user-42", other, form)
            with pytest.raises(SessionNotFound):
                await export_session(reader, "nobody", other, form)

    assert one.getvalue() == other.getvalue() != b""


steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.text(max_size=3), st.text(max_size=3)),
        st.tuples(st.just("user"), st.text(alphabet="a\ud83c", max_size=3)),
        st.tuples(st.just("pop"), st.integers(1, 3)),
        st.tuples(st.just("goto"), st.integers(1, 9)),
        st.tuples(st.just("fork"), st.integers(1, 9)),
        st.tuples(st.just("checkpoint"), st.sampled_from("abc")),
        st.tuples(st.just("configure"), st.text(max_size=2)),
        st.tuples(st.just("pin"), st.integers(1, 9)),
        st.just(("export",)),
    ),
    max_size=14,
)


async def take(session, step) -> None:
    """One of the changes, if the session takes it."""
    what, *given = step
    with suppress(Refused):
        match what:
            case "push":
                await session.push(*given)
            case "user":
                await session.add_user(*given)
            case "configure":
                await session.configure(system=given[0])
            case "fork":
                await session.fork(given[0], user_input="way")
            case _:
                await getattr(session, what)(*given)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_any_session_comes_back_equal(tmp_path: Path, steps):
    async def there_and_back() -> None:
        out = tmp_path / "out.ndjson"
        async with memory() as service, memory() as other:
            session = await service.session("s", create=True)
            for step in (*steps, ("export",)):
                if step[0] != "export":
                    await take(session, step)
                    continue
                await export_session(service, "s", out)
                whole = picture(await state_of(service, "s"))
                report, state = await imported(other, out)
                same = picture(state)
                assert report.unread == []
                assert same["frames"] == whole["frames"]
                again, state = await imported(other, out)
                assert (again.added, picture(state)) == (0, same)
            _, state = await imported(other, out, session_id="fresh")
            assert picture(state) == whole

    asyncio.run(there_and_back())


async def test_exports_one_after_the_other_are_as_many_sessions(tmp_path: Path):
    path = tmp_path / "all.ndjson"
    async with memory() as service:
        for name in ("a", "b", "empty"):
            session = await service.session(name, create=True)
            if name != "empty":
                await session.push(name, "yes")
        with path.open("wb") as file:
            for name in ("a", "b", "empty"):
                await export_session(service, name, file)
    async with memory() as service:
        report = await import_transcript(service, path)
        again = await import_transcript(service, path)
        said = [(await state_of(service, name)).table.get(1) for name in report.sessions]

    assert (report.sessions, report.added, report.unread) == (["a", "b", "empty"], 2, [])
    assert [frame and frame.user_input for frame in said] == ["a", "b", None]
    assert (again.added, again.skipped) == (0, 2)
