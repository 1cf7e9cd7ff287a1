"""Going through the past of a session: to any moment, from one to another, and up to where the journal is damaged."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from session_actor import (
    CheckpointUnknown,
    FrameUnknown,
    InvalidArgument,
    JournalCorrupt,
    MomentUnknown,
    Replay,
    SessionService,
    telemetry,
)
from session_actor.commands import AddUser, Checkpoint, Fork, Goto, Pop, Push, RenameCheckpoint
from session_actor.events import decode_event
from session_actor.persistence import FileStore
from session_actor.replay import playing, read_store
from session_actor.state import losses
from session_actor.state.state import State

from ..live import Live, in_memory, picture
from ..window.asked import MODELS, Asked
from .stored import put

pytestmark = pytest.mark.usefixtures("often")


async def opened(folder: Path, live: Live, models=None, **options) -> Replay:
    return await Replay.open(await put(folder, live, **options), live.state.session, models)


def texts(moment, on: str | None = None) -> list[str]:
    return [frame.user_input for frame in moment.stack(on)]


@pytest.fixture
def told() -> Live:
    """Frames a b c, a checkpoint at b, popped to a, d on top, a branch from b."""
    live = Live()
    for text in "abc":
        live.do(Push(text))
    live.do(Checkpoint("before", 2))
    live.do(Pop(2))
    live.do(Push("d"))
    live.do(Fork(2, "idea", "e"))
    live.do(RenameCheckpoint("before", "then"))
    live.do(Goto("main"))
    return live


async def test_a_moment_is_gone_to_by_record_time_frame_and_checkpoint(folder, told):
    with await opened(folder, told) as replay:
        assert replay.moment.seq == 10
        assert texts(replay.at(seq=4)) == ["a", "b", "c"]
        assert texts(replay.at(frame=4)) == ["a", "d"]
        assert replay.at(frame=2).seq == 3
        assert (replay.at(checkpoint="before").seq, replay.at(checkpoint="then").seq) == (5, 9)
        assert replay.at(checkpoint="before").checkpoints == {"before": 2}
        then = replay.at(seq=6).at
        assert (replay.at(time=then).seq, replay.at(time=then + timedelta(microseconds=999_999)).seq) == (6, 6)
        assert replay.at(time=datetime(2100, 1, 1, tzinfo=UTC)).seq == 10
        assert replay.at(seq=6).kind == "popped"
        assert texts(replay.at(seq=8), "idea") == ["a", "b", "e"]


async def test_steps_go_forward_and_back_and_no_further_than_there_are_records(folder, told):
    with await opened(folder, told) as replay:
        assert replay.step().seq == 10
        assert replay.step(-3).seq == 7
        assert replay.step(-1).seq == 6
        assert replay.step(2).seq == 8
        assert replay.step(-99).seq == 1
        assert replay.step(99).seq == 10
        earlier = replay.at(seq=4)
        replay.step(5)
        assert texts(earlier) == ["a", "b", "c"]


async def test_what_is_no_moment_is_refused_and_says_which_are(folder, told):
    with await opened(folder, told) as replay:
        for wrong in (0, 11, -1, 2**70):
            with pytest.raises(MomentUnknown, match="records 1 to 10"):
                replay.at(seq=wrong)
        with pytest.raises(MomentUnknown):
            replay.at(time=datetime(1999, 1, 1, tzinfo=UTC))
        for options in ({}, {"seq": 1, "frame": 1}, {"seq": "1"}, {"seq": True}, {"time": datetime(2030, 1, 1)}):  # noqa: DTZ001
            with pytest.raises(InvalidArgument):
                replay.at(**options)
        with pytest.raises(FrameUnknown):
            replay.at(frame=77)
        with pytest.raises(CheckpointUnknown):
            replay.at(checkpoint="main")
        with pytest.raises(InvalidArgument):
            replay.step("1")
        assert replay.moment.seq == 10
        with pytest.raises(FrameUnknown):
            replay.at(seq=2).get(3)
        assert replay.record(3).kind == "added"


async def test_a_diff_tells_frames_head_names_and_budget(folder):
    live = Asked()
    for number in range(4):
        live.do(AddUser(f"text {number} " * 50))
    live.do(Checkpoint("here"))
    first = live.state.seq
    live.do(Pop(2))
    live.do(Push("other"))
    live.do(Fork(2, "idea"))
    with await opened(folder, live, MODELS) as replay:
        found = replay.diff(first, live.state.seq)
        assert (found.before, found.after, found.head, found.branch) == (
            first,
            live.state.seq,
            (5, 2),
            ("main", "idea"),
        )
        assert (found.added, found.removed, found.new_frames, found.popped) == ((), (3, 4, 5), (6,), ())
        assert found.branches == {"main": (5, 6), "idea": (None, 2)}
        assert found.checkpoints == {}
        assert found.budget[0].used > found.budget[1].used > 0
        back = replay.diff(replay.at(seq=live.state.seq), replay.at(seq=first))
        assert (back.added, back.branches["idea"]) == ((3, 4, 5), (2, None))
        assert replay.diff(first, first).is_empty
        assert not found.is_empty


async def test_a_diff_tells_what_nothing_holds_any_more(folder, told):
    with await opened(folder, told) as replay:
        assert replay.diff(5, 6).popped == (3,)
        assert replay.diff(4, 5).checkpoints == {"before": (None, 2)}
        assert replay.diff(1, 2).branches == {"main": (0, 1)}
        assert replay.diff(1, 2).budget == (None, None)


async def test_replay_tells_no_event_and_changes_nothing(folder):
    live = Asked("tiny")
    live.do(AddUser("why? " * 2400))
    seen: list[object] = []
    detach = telemetry.attach((), lambda *event: seen.append(event))
    try:
        with await opened(folder, live, MODELS) as replay:
            assert replay.moment.budget().pressure != "green"
            replay.diff(1, live.state.seq)
            replay.why(2)
    finally:
        detach()
    assert [event for event in seen if event[0][1] == "window"] == []


async def test_memory_holds_few_frames_and_bounded_states(folder, monkeypatch):
    live = Live()
    for number in range(1200):
        live.do(Push(f"text {number}", "x" * 50))
    monkeypatch.setattr(playing, "SAVED_BYTES", 20_000)
    with await opened(folder, live, journal_bytes=50_000) as replay:
        player = replay._player
        assert sum(len(one.data) for one in player._saved) <= 20_000
        assert len(in_memory(player._end.table)) < 100 + 64
        for seq in (1, 2, 700, 1201, 333):
            moment = replay.at(seq=seq)
            assert (moment.seq, moment.head) == (seq, seq - 1 or None)
            assert len(in_memory(moment.state.table)) <= 2 * player._every + 64


async def test_a_forked_session_is_replayed_through_its_copy(folder):
    async with SessionService.open(FileStore(folder)) as service:
        source = await service.session("user-42", create=True)
        for number in range(300):
            await source.push(f"text {number}", "x")
        await source.checkpoint("here", 100)
        fork = await service.fork("user-42", "eval-1")
        await fork.push("more", "x", durability="written")
        wanted = [frame.user_input for frame in await fork.stack()]
        with await Replay.open(service._store, "eval-1") as replay:
            assert texts(replay.moment) == wanted
            assert texts(replay.at(seq=1)) == []
            assert replay.at(frame=50).state.importing
            assert replay.at(checkpoint="here").checkpoints == {"here": 100}
            assert replay.why(50, seq=2).reason == "popped"
            assert replay.why(50).reason == "shown"


async def test_opening_that_is_cancelled_leaves_nothing_behind(folder, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    root = await many(folder)
    task = asyncio.create_task(Replay.open(root, "user-42"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.get_running_loop().shutdown_default_executor()
    await asyncio.sleep(0)
    assert list((tmp_path / "temporary").iterdir()) == []


# --- damage ---------------------------------------------------------------------------------------------------------


def journals(root: Path) -> list[Path]:
    return sorted((root / "journals").rglob("*.ndjson"), key=lambda path: int(path.stem.rpartition("-")[2]))


async def many(folder: Path, **options) -> Path:
    live = Live()
    for number in range(120):
        live.do(Push(f"text {number}", "x" * 50))
    return await put(folder, live, **options)


@pytest.mark.parametrize("kind", ["flipped", "cut", "missing", "swapped", "header"])
async def test_a_damaged_journal_is_replayed_up_to_the_damage(folder, kind):
    root = await many(folder)
    path = journals(root)[2]
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    place = len(b"".join(lines[:5]))
    if kind == "flipped":
        path.write_bytes(data[: place + 40] + bytes([data[place + 40] ^ 1]) + data[place + 41 :])
    elif kind == "cut":
        path.write_bytes(data[:place])
    elif kind == "missing":
        path.unlink()
    elif kind == "swapped":
        path.write_bytes(b"".join([*lines[:5], lines[6], lines[5], *lines[7:]]))
    else:
        path.write_bytes(b"?" + data[1:])
    last = (int(lines[4].split(b":")[1].split(b",")[0]) if kind in {"flipped", "cut", "swapped"} else None) or int(
        lines[1].split(b":")[1].split(b",")[0]
    ) - 1
    with await Replay.open(root, "user-42") as replay:
        assert (replay.damage.path, replay.damage.seq) == (str(path), last + 1)
        assert replay.damage.offset == (place if kind in {"flipped", "cut", "swapped"} else 0)
        assert replay.seqs() == range(1, last + 1)
        assert texts(replay.at(seq=last))[-1] == f"text {last - 2}"
        with pytest.raises(MomentUnknown, match=path.name):
            replay.at(seq=last + 1)
    with read_store(root) as reader:
        records = reader.records("user-42")
        assert [record.seq for record in records] == list(range(1, last + 1))
        assert str(path) in str(records.damage)


async def test_damage_of_the_log_is_named_and_other_sessions_are_whole(folder):
    root = await many(folder, segment_bytes=200_000, cut_at_close=-1)
    (segment,) = (root / "log").glob("*.ndjson")
    data = segment.read_bytes()
    place = data.index(b'"text 60"')
    segment.write_bytes(data[:place] + b"'" + data[place + 1 :])
    with await Replay.open(root, "user-42") as replay:
        assert replay.seqs() == range(1, 62)
        assert (replay.damage.path, replay.damage.seq) == (str(segment), 62)
        assert replay.damage.offset < place < replay.damage.offset + 400
        assert texts(replay.at(seq=61))[-1] == "text 59"


async def test_of_a_session_whose_first_record_is_damaged_nothing_can_be_told(folder):
    root = await many(folder)
    path = journals(root)[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"?" + lines[1][1:], *lines[2:]]))
    with pytest.raises(MomentUnknown, match=path.name):
        await Replay.open(root, "user-42")


# --- pruned sessions, and gaps --------------------------------------------------------------------------------------


async def pruned(folder: Path, rounds: int = 3) -> None:
    store = FileStore(folder, segment_bytes=20_000, journal_bytes=3_000)
    async with SessionService.open(store, idle_timeout_s=None) as service:
        session = await service.session("user-42", create=True)
        await session.push("first", "kept")
        for number in range(rounds):
            for each in range(60):
                await session.push(f"text {number} {each}", "x" * 100)
            await session.flush("synced")
            store._engine.log.seal()
            while await store._engine.cutter.cut():
                pass
            await session.pop(60)
            await session.prune()
        await session.push("last", "kept")


async def test_a_pruned_session_is_replayed_from_where_it_can(folder):
    await pruned(folder)
    with await Replay.open(folder, "user-42") as replay:
        seqs = replay.seqs()
        assert 1 < seqs.start < seqs.stop
        assert replay.damage is None
        assert texts(replay.at(seq=seqs[-1])) == ["first", "last"]
        for seq in seqs:
            assert replay.at(seq=seq).seq == seq
        assert replay.at(seq=seqs[-1]).get(1).user_input == "first"
        for before in ({"seq": 1}, {"frame": 0}):
            with pytest.raises(MomentUnknown, match="pruned"):
                replay.at(**before)
        assert replay.why(5).reason in {"pruned", "popped"}


async def test_a_frame_that_was_pruned_since_is_no_damage(folder):
    store = FileStore(folder, segment_bytes=20_000, journal_bytes=3_000)
    async with SessionService.open(store, idle_timeout_s=None) as service:
        session = await service.session("user-42", create=True)
        await session.push("first")
        for number in range(120):
            await session.push(f"text {number}", "x" * 100)
        await session.fork(60, user_input="kept")
        await session.delete_branch("main")
    async with SessionService.open(folder, idle_timeout_s=None) as service:
        session = await service.session("user-42")
        await session.prune()
        await session.push("last")
    known, gone = 0, set[int]()
    with await Replay.open(folder, "user-42") as replay:
        for seq in replay.seqs():
            moment = replay.at(seq=seq)
            for frame in range(1, moment.state.next_id):
                try:
                    if moment.state.table.has(frame):
                        known += moment.get(frame).id == frame
                except FrameUnknown:
                    gone.add(frame)
        assert replay.damage is None
    assert known > 60
    assert 100 in gone


async def test_a_pruned_session_without_a_snapshot_says_so(folder):
    await pruned(folder)
    for path in (folder / "snapshots").rglob("*.ndjson"):
        path.unlink()
    from session_actor import StoreCorrupt

    with pytest.raises(StoreCorrupt, match="pruned"):
        await Replay.open(folder, "user-42")


async def test_a_salvaged_session_is_replayed_over_its_gap(folder):
    root = await many(folder)
    path = journals(root)[2]
    data = path.read_bytes()
    place = len(b"".join(data.splitlines(keepends=True)[:5]))
    path.write_bytes(data[:place] + b"?" + data[place + 1 :])
    async with SessionService.open(FileStore(root, recovery="readable")) as service:
        session = await service.session("user-42")
        wanted = [frame.user_input for frame in await session.stack()]
        gaps = session.recovery.gaps
    assert gaps
    with await Replay.open(root, "user-42") as replay:
        assert replay.damage is None
        assert texts(replay.at(seq=replay.seqs()[-1])) == wanted
        lost = gaps[0].first
        assert replay.at(seq=lost).seq in {lost - 1, lost}
        assert len(texts(replay.at(seq=lost - 1))) == lost - 2
        state, pictures = State(), {}
        for seq in replay.seqs():
            if replay._player.timeline.position(seq) is not None:
                record = replay.record(seq)
                losses.replay(state, decode_event(record.kind, record.data), seq, record.at_us)
                state.session = "user-42"
                pictures[seq] = picture(state)
        assert sum(one.losses is not None for one in replay._player._saved) > 3
        for seq in sorted(pictures, key=lambda number: number % 7):
            assert picture(replay.at(seq=seq).state) == pictures[seq]


async def test_what_changes_under_a_replay_is_named(folder):
    root = await many(folder)
    with await Replay.open(root, "user-42") as replay:
        replay.at(seq=2)
        path = journals(root)[3]
        data = path.read_bytes()
        path.write_bytes(data[:300] + b"?????" + data[305:])
        with pytest.raises(JournalCorrupt, match=path.name):
            [replay.at(seq=seq) for seq in replay.seqs()]
