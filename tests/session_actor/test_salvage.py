"""A session that lost records: refused, or salvaged when it is loaded; then it works on as any other."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from session_actor import FrameUnknown, InvalidArgument, RecordsLost, SessionService, StoreCorrupt
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import repair
from session_actor.server import snapshots

from .conftest import reopened, seen
from .test_passivation import until

LOST = [b"question 0", b"question 4", b"newest", b'"here"', b'"new_branch":"idea"', b'"who":"me"']
"""What a record says that is damaged: frames, a checkpoint, a branch, the first record of all."""


async def write(folder: Path, count: int = 12) -> None:
    """A session in the log and in the journal, with branches, checkpoints and pops."""
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True, metadata={"who": "me"})
        other = await service.session("other", create=True)
        for number in range(count):
            await session.push(f"question {number}", "answer")
            await other.push(f"other {number}", "answer")
        await session.checkpoint("here")
        await session.pop(2)
        await session.fork(3, user_input="aside", branch="idea")
        await session.goto("main")
        await session.push("newest", "answer")


def damage(folder: Path, text: bytes) -> None:
    """Change a byte of the record that holds `text`, wherever it lies."""
    found = 0
    for path in [*folder.glob("log/*.ndjson"), *folder.glob("journals/*/*.ndjson")]:
        data = bytearray(path.read_bytes())
        at = data.find(text)
        if at >= 0:
            data[at + len(text) - 1] ^= 1
            path.write_bytes(data)
            found += 1
    assert found == 1


async def inputs(session) -> list[str]:
    return [frame.user_input for frame in await session.stack()]


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    await write(tmp_path / "conversations")
    return tmp_path / "conversations"


async def test_a_damaged_session_is_refused_and_others_load(folder):
    damage(folder, b"question 4")
    async with SessionService.open(folder) as service:
        with pytest.raises(StoreCorrupt, match="python -m session_actor repair"):
            await service.session("user-42")
        assert len(await inputs(await service.session("other"))) == 12


async def test_readable_recovery_keeps_what_is_behind_the_loss(folder):
    damage(folder, b"question 4")
    async with SessionService.open(folder, recovery="readable") as service:
        session = await service.session("user-42")
        assert [(gap.first, gap.last) for gap in session.recovery.gaps] == [(6, 6)]
        assert session.recovery.kept_at
        assert all(Path(place).exists() for place in session.recovery.kept_at)
        assert await inputs(session) == [*(f"question {number}" for number in range(5, 10)), "newest"]
        assert await session.checkpoints() == {"gap-4": 4, "here": 12}
        assert session.recovery.checkpoints == ("gap-4",)
        assert set(await session.branches()) == {"main", "idea"}
        assert [frame.user_input for frame in await session.on("idea").stack()] == [
            "question 0",
            "question 1",
            "question 2",
            "aside",
        ]
        assert await session.metadata() == {"who": "me"}
        for ask in (session.get(5), session.goto(5), service.fork("user-42", "copy", 5)):
            with pytest.raises(FrameUnknown, match=r"came with a record that is lost \(lost: 6;"):
                await ask
        with pytest.raises(FrameUnknown, match="never had it, or it was pruned"):
            await session.get(1000)
        assert len(await inputs(await service.session("other"))) == 12


async def test_prefix_recovery_keeps_what_is_before_the_loss(folder):
    damage(folder, b"question 4")
    async with SessionService.open(folder, recovery="prefix") as service:
        session = await service.session("user-42")
        assert session.recovery.gaps == ()
        assert session.recovery.dropped > 5
        assert session.recovery.kept_at
        assert await inputs(session) == [f"question {number}" for number in range(4)]


@pytest.mark.parametrize("recovery", ["prefix", "readable"])
@pytest.mark.parametrize(
    "text", [b"question 0", b"question 4", b"newest", b'"here"', b'"new_branch":"idea"', b'"who":"me"']
)
async def test_after_salvage_the_session_works_on_and_comes_back_the_same(folder, recovery, text):
    damage(folder, text)
    async with SessionService.open(folder, recovery=recovery) as service:
        if text == b'"who":"me"' and recovery == "prefix":
            with pytest.raises(StoreCorrupt):
                await service.session("user-42")
            return
        session = await service.session("user-42")
        lost = session.recovery
        pushed = await session.push("after the loss", "answer")
        await session.fork(pushed.id, user_input="later", branch="later")
        await session.goto("main")
        await session.pop(1)
        await session.push("and on", "answer")
        await service.fork("user-42", "copy")
        expected = await picture(session)
        ids = [frame.id for frame in expected["frames"]]
        assert ids == sorted(set(ids))
    for options in ({}, {"recovery": recovery}):
        async with reopened(folder, **options) as again:
            assert await picture(again) == expected
            if recovery == "readable":
                assert again.recovery.gaps == lost.gaps
    assert not check(folder).damaged
    async with reopened(folder, "copy") as copy:
        assert (await inputs(copy))[-1] == "and on"


async def picture(session) -> dict[str, object]:
    frames = []
    for frame_id in range(1, 40):
        with suppress(FrameUnknown):
            frames.append(await session.get(frame_id))
    return {
        "frames": frames,
        "seen": [seen(frame) for frame in frames],
        "branches": await session.branches(),
        "checkpoints": await session.checkpoints(),
        "head": await session.head(),
        "stack": await inputs(session),
    }


async def test_a_session_with_gaps_is_not_pruned_and_a_fork_of_it_is_sound(folder):
    damage(folder, b"question 4")
    async with SessionService.open(folder, recovery="readable") as service:
        session = await service.session("user-42")
        before = await picture(session)
        with pytest.raises(RecordsLost, match=r"'user-42'.*service\.fork"):
            await session.prune()
        assert await picture(session) == before

        copy = await service.fork("user-42", "copy")
        assert (await copy.prune()).frames == 0
        await copy.pop()
        assert (await copy.prune()).frames == 1
    async with reopened(folder, "copy") as copy:
        assert copy.recovery.snapshot_seq > 0
        assert await inputs(copy) == before["stack"][:-1]


async def test_a_session_with_gaps_is_left_alone_where_all_are_pruned_when_they_rest(folder):
    damage(folder, b"question 4")
    async with SessionService.open(folder, recovery="readable", retention="prune", max_live=1) as service:
        session = await service.session("user-42")
        before = await picture(session)
        ref = session.ref
        await service.session("other")
        await until(lambda: ref.phase == "ended")
        assert await picture(session) == before


@pytest.mark.parametrize("recovery", ["strict", "readable"])
async def test_damage_below_the_snapshot_fails_the_read_of_the_frame_and_is_repaired(tmp_path, monkeypatch, recovery):
    """Loading does not read what lies below: whatever the recovery, the error says how to mend it."""
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 1)
    folder = tmp_path / "conversations"
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        for number in range(100):
            await session.push(f"question {number}", "answer")
    damage(folder, b'"question 4"')
    async with reopened(folder, recovery=recovery) as session:
        assert (session.recovery.snapshot_seq, session.recovery.gaps) == (101, ())
        with pytest.raises(StoreCorrupt, match=r"python -m session_actor repair.*--salvage"):
            await session.get(5)
        assert (await session.get(100)).user_input == "question 99"
        await session.push("and on", "")
    repairs = repair(folder, write=True, salvage="readable")
    assert ([step.kind for step in repairs.steps], repairs.left) == (["journal"], [])
    async with reopened(folder) as session:
        assert [(gap.first, gap.last) for gap in session.recovery.gaps] == [(6, 6)]
        assert (await session.get(4)).user_input == "question 3"
        with pytest.raises(FrameUnknown):
            await session.get(5)


async def test_an_unknown_way_of_recovery_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="recovery"):
        SessionService.open(tmp_path, recovery="lenient")
