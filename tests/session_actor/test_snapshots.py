"""Snapshots: a state but for its frames; recovery from one and the records behind it gives the state that was live."""

from __future__ import annotations

import msgspec
import pytest

from session_actor import CallTimeout, FrameUnreadable, MemoryStore, SessionService, StoreClosed
from session_actor.blocks import Text, ToolCall
from session_actor.commands import AddAssistant, AddUser, Checkpoint, Configure, Fork, Goto, Pop, Push
from session_actor.events import Ended, Gap, Source
from session_actor.frames import Turn
from session_actor.server import snapshots
from session_actor.server.cold import Shelf
from session_actor.server.prune import Save
from session_actor.server.snapshots import SnapshotUnusable, may_be_saved, pays, snapshot_of, state_from
from session_actor.service_errors import SessionCrashed, SessionDeleted
from session_actor.state.losses import replay
from session_actor.state.state import State

from .conftest import Poison, seen
from .live import Archive, Live, cold, in_memory, picture
from .test_passivation import until


def everything() -> Live:
    """A session that has something in every field."""
    live = Live("user-42 \ud800", {"lang": "de", "$esc": "x", "odd": "\ud800"}, Source("user-1", 7))
    live.state.importing = False
    live.do(Configure("be kind"))
    live.do(AddUser("hello \ud800", key="k \ud800"))
    live.do(AddAssistant("", [ToolCall("a", "t"), ToolCall("b \udfff", "t")], key="m"))
    live.do(Checkpoint("here \ud800"))
    for number in range(40):
        live.do(Push(f"{number}"))
    live.do(Pop(3, key="popped"))
    live.do(Fork(20, user_input="x", branch="$idea \ud800"))
    live.do(Goto("here \ud800"))
    live.record(Ended("done"))
    return live


def test_a_state_comes_back_from_its_snapshot_in_every_field():
    live = everything()
    live.save()

    assert picture(live.recovered()) == picture(live.state)


def test_a_snapshot_is_one_line_of_json_without_any_content_of_frames():
    live = Live()
    live.do(Configure("a secret prompt"))
    live.do(Push("a secret question", "a secret answer", ("assumed",), ("decided",)))
    data = snapshot_of(live.state)

    assert b"\n" not in data
    assert not any(word in data for word in (b"secret", b"assumed", b"decided"))
    assert msgspec.json.decode(data)["version"] == 1


def test_its_size_does_not_grow_with_the_frames():
    sizes = []
    for count in (10, 1_000):
        live = Live()
        for _ in range(count):
            live.do(Push("x" * 50))
        sizes.append(len(snapshot_of(live.state)))
    assert sizes[1] < sizes[0] + 20


# What is in the snapshots that are kept: a reader of this version must know each.
GOLDEN = (
    b'{"version":1,"session":"user-42","created_at_us":1700000001000001,"next_id":4,"head":2,"attached":"main",'
    b'"branches":[["main",2]],"checkpoints":[["here",1]],"calls":["a"],"keys":[["k",2,"00",1,null]],"absent":[[3,3]],'
    b'"metadata":{"lang":"de"}}'
)


def test_a_snapshot_is_read_as_ever():
    state = state_from(GOLDEN, 9, Shelf("user-42", Archive([])))

    assert (state.session, state.seq, state.next_id, state.head, state.attached) == ("user-42", 9, 4, 2, "main")
    assert (state.branches, state.checkpoints, list(state.call_ids)) == ({"main": 2}, {"here": 1}, ["a"])
    assert (state.metadata, state.table.absent, state.ended) == ({"lang": "de"}, [(3, 3)], None)
    assert state.keys.find("k", "00").answer.frame == 1
    assert snapshot_of(state) == GOLDEN


BAD = {
    "no JSON": b"{",
    "another version": GOLDEN.replace(b'"version":1', b'"version":2'),
    "a field missing": GOLDEN.replace(b'"next_id":4,', b""),
    "another type": GOLDEN.replace(b'"next_id":4', b'"next_id":"4"'),
    "a head that is no frame": GOLDEN.replace(b'"head":2', b'"head":4'),
    "a branch elsewhere": GOLDEN.replace(b'["main",2]', b'["main",1]'),
    "a checkpoint that is no frame": GOLDEN.replace(b'["here",1]', b'["here",0]'),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_no_snapshot_of_this_version_is_unusable(data):
    with pytest.raises(SnapshotUnusable):
        state_from(data, 9, Shelf("user-42", Archive([])))


def test_an_unfinished_copy_and_a_session_with_losses_have_none():
    assert not may_be_saved(State())
    assert not may_be_saved(Live("copy", None, Source("user-1")).state)
    live = Live()
    assert may_be_saved(live.state)
    replay(live.state, Gap(2), 3, 1)
    assert not may_be_saved(live.state)


def test_the_newest_ids_of_calls_are_kept_alike_live_and_recovered():
    live = Live()
    for number in range(1_500):
        live.do(AddAssistant("", [ToolCall(f"c{number % 1_200}", "t")]))
    live.save()

    assert len(live.state.call_ids) == 1_024
    assert list(live.state.call_ids)[-1] == "c299"
    assert picture(cold(live)[0]) == picture(live.state)


# --- when a session rests ---


@pytest.mark.parametrize(
    ("records", "characters", "worth"),
    [(249, 1_000, False), (250, 0, True), (100, 6_000, True), (99, 6_000, False), (150, 2_000, False)],
)
@pytest.mark.parametrize("as_turns", [False, True])
def test_a_snapshot_at_rest_pays_for_many_records_or_for_fewer_that_say_much(
    monkeypatch, records, characters, worth, as_turns
):
    monkeypatch.undo()
    live = Live()
    text = "x" * characters
    for _ in range(records):
        live.do(Push(turns=(Turn("user", (Text(text),)),)) if as_turns else Push(text))
    state = live.state
    assert pays(state, 1, records) is worth
    assert not pays(state, state.next_id, 0)


def test_what_is_not_in_memory_does_not_count_as_heavy(monkeypatch):
    monkeypatch.undo()
    live = Live()
    for _ in range(100):
        live.do(Push("x" * 6_000))
    assert pays(live.state, 1, 100)
    assert not pays(cold(live)[0], 1, 100)


@pytest.mark.parametrize(("records", "saved"), [(100, 0), (260, 261)])
async def test_a_session_that_says_little_rests_without_a_snapshot(monkeypatch, tmp_path, records, saved):
    monkeypatch.undo()
    for _ in range(2):
        async with SessionService.open(tmp_path / "conversations") as service:
            session = await service.session("user-42", create=True)
            if await session.head() is None:
                for number in range(records):
                    await session.push(f"q{number}", f"a{number}")
            assert len(await session.stack()) == records
    assert session.recovery.snapshot_seq == saved
    assert len(list(tmp_path.glob("conversations/snapshots/*/*"))) == (1 if saved else 0)


# --- sessions ---


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Snapshots after every ten records."""
    monkeypatch.setattr(snapshots, "EVERY_RECORDS", 10)
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 1)


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    """Either store."""
    return MemoryStore() if request.param == "memory" else tmp_path / "conversations"


async def filled(service: SessionService, frames: int = 100):
    """A session with so many frames, and those."""
    session = await service.session("user-42", create=True)
    await session.configure(system="be kind")
    for number in range(2, frames + 1):
        await session.push(f"q{number}", f"a{number}")
    return session, list(await session.stack())


async def rested(service: SessionService, session) -> None:
    """Unload the session, when its snapshot is durable."""
    seq = await session.send(Save())
    await service._store.saved(session._cell.lease, seq)
    ref = session.ref
    (await service.session("other", create=True)) if service.health().live == 1 else None
    await until(lambda: ref.phase == "ended")


async def test_a_session_goes_on_from_its_snapshot_without_reading_its_frames(store):
    async with SessionService.open(store, max_live=1) as service:
        session, frames = await filled(service)
        await rested(service, session)

        assert (await session.push("on", "")).in_force == frames[0].instructions
        assert session.recovery.snapshot_seq >= 100
        table = (await session.stack())._table
        assert in_memory(table) == [96, 97, 98, 99, 100, 101]
        assert [seen(frame) for frame in (await session.stack())[:100]] == [seen(frame) for frame in frames]


async def test_reads_of_cold_frames_do_not_block(store):
    async with SessionService.open(store, max_live=1) as service:
        session, frames = await filled(service)
        await session.fork(40, branch="idea")
        await session.goto("main")
        await rested(service, session)
        await session.ref.started()
        shelf = session._cell.shelf()
        shelf._archive = OffTheLoop(shelf._archive)

        assert await session.get(50) == frames[49]
        idea = await session.on("idea").stack()
        assert (len(idea), idea.top) == (40, frames[39])
        assert await session.on("idea").instructions() == frames[0].instructions
        loaded = await (await session.stack()).load()
        assert list(loaded) == frames


async def test_open_calls_in_cold_frames_are_listed(store):
    async with SessionService.open(store, max_live=1) as service:
        session, _ = await filled(service, 3)
        await session.add_assistant(tool_calls=[ToolCall("a", "t", "{}")])
        await session.hold_call("a")
        for _ in range(100):
            await session.push("on", "")
        pending = await session.pending_calls()
        await rested(service, session)

        assert await session.pending_calls() == pending
        assert (await session.add_tool_result("a", "x")).open_calls == ()


async def test_a_stack_that_was_taken_outlives_its_session_s_rest(store):
    async with SessionService.open(store, max_live=1) as service:
        session, frames = await filled(service)
        await rested(service, session)
        stack = await session.stack()
        await rested(service, session)

        assert list(stack) == frames


async def test_cold_frames_after_a_deletion_or_a_close_are_an_error_that_says_so(store):
    async with SessionService.open(store, max_live=1) as service:
        session, frames = await filled(service)
        await rested(service, session)
        deleted, loaded = await session.stack(), await (await session.stack()).load()
        await rested(service, session)
        deleted = await session.stack()
        await service.delete("user-42")
        with pytest.raises(SessionDeleted):
            deleted[3]
        assert list(loaded) == frames
        session, frames = await filled(service)
        await rested(service, session)
        closed = await session.stack()
    with pytest.raises(StoreClosed):
        list(closed)
    with pytest.raises(StoreClosed):
        await closed.load()


async def test_a_cold_frame_that_cannot_be_read_fails_its_own_call_and_nothing_else(store, monkeypatch):
    async with SessionService.open(store, max_live=1) as service:
        session, frames = await filled(service)
        await rested(service, session)
        await session.ref.started()
        archive = session._cell.shelf()._archive
        session._cell.shelf()._archive = failing = Failing()
        ref = session.ref

        for call in (session.get(50), session.goto(50), session.pop(50), session.fork(50, branch="x")):
            with pytest.raises(FrameUnreadable):
                await call
        assert (await session.head(), await session.branches()) == (100, {"main": 100})
        failing.hangs = True
        with pytest.raises(CallTimeout):
            await session.get(50, timeout_s=0.01)
        assert (await session.push("on", "")).id == 101
        session._cell.shelf()._archive = archive
        assert await session.goto(50) == frames[49]
        assert session.ref.slot is ref.slot
        assert ref.alive


class OffTheLoop:
    """An archive that is never read on the loop."""

    def __init__(self, archive):
        self.fetch = archive.fetch

    def read(self, ids):
        raise AssertionError("it read on the loop")


class Failing:
    """An archive whose disk refuses, or does not answer."""

    hangs = False

    def read(self, ids):
        raise OSError(5, "Input/output error")

    async def fetch(self, ids):
        if self.hangs:
            await until(lambda: False, 10**9)
        return self.read(ids)


async def test_a_snapshot_that_cannot_be_used_is_passed_over_for_an_older_one_and_then_for_the_records(caplog):
    store = MemoryStore()
    async with SessionService.open(store, max_live=1) as service:
        session, frames = await filled(service, 35)
        await rested(service, session)
        kept = store._sessions["user-42"]
        saved = list(kept._snapshots)
        assert len(saved) == 2

        kept._snapshots = [saved[0], (saved[1][0], b'{"version":9}')]
        assert (await session.push("on", "")).id == 36
        assert session.recovery.snapshot_seq == saved[0][0]
        await rested(service, session)

        kept._snapshots = [(seq, b'{"version":9}') for seq, _ in kept._snapshots]
        assert (await session.push("on", "")).id == 37
        assert session.recovery.snapshot_seq == 0
        assert list((await session.stack())[:35]) == frames


async def test_a_snapshot_that_the_records_do_not_fit_is_passed_over():
    store = MemoryStore()
    async with SessionService.open(store, max_live=1) as service:
        session, frames = await filled(service, 35)
        await session.pop(5)
        await rested(service, session)
        kept = store._sessions["user-42"]
        (old_seq, _), (seq, data) = kept._snapshots
        kept._snapshots[0] = (old_seq, data)

        kept._snapshots[1] = (seq, b"[]")
        assert await session.head() == 30
        assert session.recovery.snapshot_seq == 0
        assert list(await session.stack()) == frames[:30]


async def test_a_session_that_crashes_comes_back_from_its_snapshot(store):
    async with SessionService.open(store) as service:
        session, frames = await filled(service)
        before = await session.stack()
        await service._store.saved(session._cell.lease, 90)
        with pytest.raises(SessionCrashed):
            await session.send(Poison("x"))

        await session.push("on", "")
        assert session.recovery.snapshot_seq >= 90
        assert list(await session.stack())[:100] == list(before) == frames
