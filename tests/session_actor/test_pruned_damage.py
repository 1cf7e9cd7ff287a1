"""A pruned session that lost its snapshots: verify says so, repair leaves it alone, and salvage makes it load again."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from session_actor import SessionService, StoreCorrupt
from session_actor.persistence import FileStore
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import repair

from .conftest import reopened


def opened(folder: Path, recovery: str = "strict") -> SessionService:
    return SessionService.open(FileStore(folder, journal_bytes=2_000, recovery=recovery))


async def inputs(session) -> list[str]:
    return [frame.user_input for frame in await session.stack()]


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A session that was pruned: what it has from its first record on is not enough to load it."""
    folder = tmp_path / "conversations"
    for rest in range(2):  # closing moves the log into the journals
        async with opened(folder) as service:
            session = await service.session("user-42", create=not rest)
            for number in range(60):
                await session.push(f"question {rest} {number}", "answer " * 10)
            await session.pop(50 * (1 - rest) or 2)
    async with opened(folder) as service:
        report = await (await service.session("user-42")).prune()
        assert report.files > 1
    assert check(folder).list == []
    return folder


def snapshots(folder: Path) -> list[Path]:
    return sorted((folder / "snapshots").glob("*/*.ndjson"))


def lose(folder: Path, how: str) -> None:
    """Lose both snapshots."""
    first, second = snapshots(folder)
    for path in (first, second):
        if how == "removed" or (how == "one of each" and path == second):
            path.unlink()
        else:
            content = path.read_bytes()
            path.write_bytes(content[:-30] + b"x" + content[-29:] if how == "data" else b"xx" + content[2:])


EXPECTED = [f"question 0 {number}" for number in range(10)] + [f"question 1 {number}" for number in range(58)]


@pytest.mark.parametrize("how", ["header", "data", "removed", "one of each"])
@pytest.mark.parametrize("salvage", ["readable", "prefix"])
async def test_lost_snapshots_are_damage_and_salvage_makes_it_load(folder, how, salvage):
    lose(folder, how)
    left = {path.name: path.read_bytes() for path in snapshots(folder)}
    (finding,) = [finding for finding in check(folder).list if finding.severity == "damage"]
    assert (finding.kind, finding.session) == ("pruned", "user-42")
    assert "--salvage" in finding.advice

    repairs = repair(folder, write=True)
    assert ([step.kind for step in repairs.steps], [one.kind for one in repairs.left]) == ([], ["pruned"])
    assert {path.name: path.read_bytes() for path in snapshots(folder)} == left
    async with opened(folder) as service:
        with pytest.raises(StoreCorrupt, match="pruned"):
            await service.session("user-42")

    repairs = repair(folder, write=True, salvage=salvage)
    assert ([step.kind for step in repairs.steps], repairs.left) == (["journal"], [])
    assert check(folder).list == []
    kept = [path.read_bytes() for path in (folder / "aside").iterdir()]
    assert all(content in kept for content in left.values())
    async with reopened(folder) as session:
        assert [gap.why for gap in session.recovery.gaps] == ["pruned"]
        assert await inputs(session) == EXPECTED
        pushed = await session.push("and on", "")
    async with reopened(folder) as session:
        assert await inputs(session) == [*EXPECTED, "and on"]
        assert (await session.head()) == pushed.id


@pytest.mark.parametrize("recovery", ["readable", "prefix"])
async def test_salvage_at_load_does_the_same(folder, recovery):
    lose(folder, "header")
    async with opened(folder, recovery) as service:
        session = await service.session("user-42")
        assert [gap.why for gap in session.recovery.gaps] == ["pruned"]
        assert await inputs(session) == EXPECTED
    assert check(folder).list == []


async def test_one_good_snapshot_is_enough_and_the_other_goes_aside(folder):
    path = snapshots(folder)[0]
    path.write_bytes(b"xx" + path.read_bytes()[2:])
    assert [finding.kind for finding in check(folder).list] == ["snapshot"]
    assert [step.kind for step in repair(folder, write=True).steps] == ["snapshot"]
    assert check(folder).list == []
    async with reopened(folder) as session:
        assert await inputs(session) == EXPECTED


@pytest.mark.parametrize("salvage", ["readable", "prefix"])
async def test_records_lost_as_well_are_lost_as_ever(folder, salvage):
    lose(folder, "header")
    (path,) = [path for path in (folder / "journals").glob("*/*.ndjson") if b'"question 1 40"' in path.read_bytes()]
    path.write_bytes(path.read_bytes().replace(b'"question 1 40"', b'"question X 40"'))
    repairs = repair(folder, write=True, salvage=salvage)
    assert ([step.kind for step in repairs.steps], repairs.left) == (["journal"], [])
    assert check(folder).list == []
    async with reopened(folder) as session:
        assert [gap.why for gap in session.recovery.gaps] == ["pruned", "missing"]
        assert await inputs(session)


@pytest.mark.parametrize("salvage", ["readable", "prefix"])
@pytest.mark.parametrize("number", [0, 4, 9, 12])
async def test_after_damage_below_the_snapshot_every_frame_can_be_read_and_none_is_back(folder, salvage, number):
    """An earlier state would have what was popped and pruned since, so `prefix` keeps what is readable."""
    text = b'"question 0 %d"' % number
    (path,) = [path for path in (folder / "journals").glob("*/*.ndjson") if text in path.read_bytes()]
    path.write_bytes(path.read_bytes().replace(text, b'"question X"'))
    repairs = repair(folder, write=True, salvage=salvage)
    assert ([step.kind for step in repairs.steps], repairs.left, check(folder).list) == (["journal"], [], [])
    async with reopened(folder) as session:
        found = await inputs(session)
        assert found == EXPECTED[-len(found) :]
        assert len(found) >= len(EXPECTED) - number - 1
        for tip in (await session.checkpoints()).values():
            assert (await session.get(tip)).user_input in EXPECTED
        pushed = await session.push("and on", "")
    async with reopened(folder) as session:
        assert await inputs(session) == [*found, "and on"]
        assert (await session.head()) == pushed.id


async def test_snapshots_that_only_the_session_cannot_use_are_no_base_for_salvage_either(folder):
    async with store_alone(folder) as store:
        lease = await store.acquire("user-42", create=False)
        for _ in range(2):
            seq = (await store.load(lease)).report.seq + 1
            store.append(lease, seq, 1, "checkpointed", b'{"name":"here%d","frame":5}' % seq, 100)
            store.save(lease, seq, b'{"version":9}')
            await store.saved(lease, seq)
    assert check(folder).list == []
    async with opened(folder) as service:
        with pytest.raises(StoreCorrupt, match="pruned"):
            await service.session("user-42")
    async with opened(folder, "readable") as service:
        session = await service.session("user-42")
        assert [gap.why for gap in session.recovery.gaps] == ["pruned"]
        assert await inputs(session) == EXPECTED
    assert check(folder).list == []


@asynccontextmanager
async def store_alone(folder: Path):
    """The store alone."""
    store = FileStore(folder, journal_bytes=2_000)
    await store.open()
    try:
        yield store
    finally:
        await store.close()
