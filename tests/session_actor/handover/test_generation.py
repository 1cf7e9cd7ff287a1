"""A service is handed over to the next generation of the code in its own process, while its sessions are used."""

from __future__ import annotations

import asyncio
import json

import pytest

from session_actor import (
    HandoverFailed,
    InvalidArgument,
    MemoryStore,
    ServiceClosed,
    SessionCrashed,
    SessionDeleted,
    SessionEnded,
    SessionQuarantined,
    SessionService,
    telemetry,
)
from session_actor.server.outputs import OutputGate
from session_actor.supervisors import CrashSummary

from ..compaction.compacted import MODELS
from ..compaction.summarising import Scripted, good_summary, to_yellow
from ..conftest import Poison, reopened
from .handing import Talker, children_of, generations, inputs


@pytest.fixture(params=["memory", "file"])
def store(request, folder):
    return MemoryStore() if request.param == "memory" else folder


async def test_a_thousand_handovers_under_load_lose_and_double_nothing(folder):
    handovers, sessions = 50, 20
    async with generations(folder) as lives:
        talkers = [Talker(await lives.service.session(f"s{number}", create=True)) for number in range(sessions)]
        tasks = [asyncio.create_task(talker.talk()) for talker in talkers]

        def said() -> int:
            return sum(len(talker.answered) for talker in talkers)

        for _ in range(handovers):
            await lives.next()
            assert children_of(lives.service) == sorted(talker.session.id for talker in talkers)
            enough = said() + sessions
            while said() < enough:  # noqa: ASYNC110 - so much must have been answered in between
                await asyncio.sleep(0)
        for talker in talkers:
            talker.enough.set()
        await asyncio.gather(*tasks)
        for talker in talkers:
            assert len(talker.servers) > 5
            assert await inputs(talker.session) == talker.answered
            assert await inputs(await lives.service.session(talker.session.id)) == talker.answered
    for talker in talkers[:3]:
        async with reopened(folder, talker.session.id) as session:
            assert await inputs(session) == talker.answered


async def test_what_waits_is_answered_by_the_new_code_in_its_order(store):
    async with generations(store) as lives:
        session = await lives.service.session("a", create=True)
        await session.push("0")
        swapped = await session.swap()
        waiting = [asyncio.create_task(session.push(str(number))) for number in range(1, 6)]
        await asyncio.sleep(0)
        taking = asyncio.create_task(lives.next())
        await asyncio.sleep(0)
        assert not any(push.done() for push in waiting)
        swapped.resume()
        await taking

        assert [frame.user_input for frame in await asyncio.gather(*waiting)] == ["1", "2", "3", "4", "5"]
        assert await inputs(session) == ["0", "1", "2", "3", "4", "5"]


async def test_a_code_change_that_raises_leaves_the_old_generation_with_all_sessions_and_messages(folder):
    def refuse_the_third(version: int, value: dict) -> dict:
        seen.append((version, value["session"]))
        if len(seen) == 3:
            raise ValueError("not this one")
        return value

    seen: list = []
    async with generations(folder) as lives:
        talkers = [Talker(await lives.service.session(f"s{number}", create=True)) for number in range(5)]
        tasks = [asyncio.create_task(talker.talk()) for talker in talkers]
        for _ in range(10):
            seen.clear()
            heir = SessionService.take(await lives.service.handover(), code_change=refuse_the_third)
            with pytest.raises(HandoverFailed, match="ValueError raised in") as caught:
                await heir.start()
            assert isinstance(caught.value.__cause__, CrashSummary), "what it says may be private"
            assert seen[2][1] in str(caught.value)
            assert children_of(lives.service) == [f"s{number}" for number in range(5)]
            await asyncio.sleep(0)
        for talker in talkers:
            talker.enough.set()
        await asyncio.gather(*tasks)
        for talker in talkers:
            assert await inputs(talker.session) == talker.answered
        await lives.next()
        assert await inputs(await lives.service.session("s0")) == talkers[0].answered


@pytest.mark.parametrize("turns", range(0, 16, 2))
async def test_a_handover_that_is_cancelled_leaves_the_old_generation_with_all_sessions(turns):
    async with generations(MemoryStore()) as lives:
        sessions = [await lives.service.session(f"s{number}", create=True) for number in range(5)]
        heir = SessionService.take(await lives.service.handover())
        taking = asyncio.create_task(heir.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        pushed = [asyncio.create_task(session.push("x")) for session in sessions]
        if taking.cancel():
            with pytest.raises(asyncio.CancelledError):
                await taking
        else:  # it was through
            lives.service = heir
        await asyncio.gather(*pushed)

        for session in sessions:
            assert (await session.push("y")).depth == 2
        assert children_of(lives.service) == [f"s{number}" for number in range(5)]
        assert (await lives.service.session("s1")).id == "s1"


async def test_a_code_change_sees_every_value_as_plain_json_and_its_version(store):
    values: list[dict] = []

    def look(version: int, value: dict) -> dict:
        assert version == 1
        values.append(json.loads(json.dumps(value)))
        return value

    async with generations(store) as lives:
        session = await lives.service.session("a", create=True, metadata={"who": "me"})
        await session.push("first")
        await session.checkpoint("here")
        await lives.next(code_change=look)

        (value,) = values
        assert (value["session"], value["seq"]) == ("a", 3)
        assert value["state"]["checkpoints"] == [["here", 1]]
        assert "first" not in json.dumps(value)
        assert (await session.checkpoints(), session.id) == ({"here": 1}, "a")
        assert [frame.id for frame in await session.pop(1)] == [1]


async def test_handles_stacks_exchanges_branches_and_keys_go_on(store):
    async with generations(store) as lives:
        session = await lives.service.session("a", create=True)
        first = await session.push("one", key="k")
        await session.fork(first.id, user_input="aside", branch="idea")
        idea, stack = session.on("idea"), await session.stack()
        async with session.exchange():
            await lives.next()
            assert await session.push("one", key="k") == first
            assert (await idea.push("more")).depth == 3
            assert await session.get(first.id) is first, "what was in memory is not read again"
            with pytest.raises(Exception, match="exchange"):
                async with (await lives.service.session("a")).exchange():
                    pass
        assert [frame.user_input for frame in stack] == ["one", "aside"]
        assert (await lives.former[0].session("a")).id == "a"
        assert (await lives.former[0].session("new", create=True)).id == "new"
        assert children_of(lives.service) == ["a", "new"]


async def test_sessions_that_rest_ended_or_are_deleted_are_what_they_were(folder):
    async with generations(folder) as lives:
        service = lives.service
        resting, ended, deleted = [await service.session(name, create=True) for name in ("resting", "ended", "deleted")]
        await resting.push("x")
        people = service._lifetime.population
        assert await people._passivate(resting._cell)
        await service.end("ended")
        await service.delete("deleted")
        await lives.next()

        assert await inputs(resting) == ["x"]
        with pytest.raises(SessionEnded):
            await ended.push("y")
        with pytest.raises(SessionDeleted):
            await deleted.push("y")


async def test_a_session_in_quarantine_gets_another_chance_with_the_new_code(store):
    async with generations(store, max_restarts=0) as lives:
        session = await lives.service.session("a", create=True)
        await session.push("x")
        with pytest.raises(SessionCrashed):
            await session.send(Poison("y"))
        await asyncio.sleep(0)
        with pytest.raises(SessionQuarantined):
            await session.push("z")
        await lives.next(max_restarts=0)

        assert lives.service.health().quarantined == ()
        assert (await session.push("z")).depth == 2


async def test_a_session_that_crashed_restarts_with_the_new_code(store):
    async with generations(store) as lives:
        session = await lives.service.session("a", create=True)
        await session.push("x")
        with pytest.raises(SessionCrashed):
            await session.send(Poison("y"))
        push = asyncio.create_task(session.push("z"))
        await lives.next()

        assert (await push).depth == 2
        assert children_of(lives.service) == ["a"]


def test_replies_that_wait_for_the_disk_leave_before_those_of_the_new_generation():
    disk, replies = SlowDisk(), []
    old = OutputGate(disk, lambda: Answers(replies))
    old.release_at("synced", 1, "first")
    new = OutputGate(disk, lambda: Answers(replies))
    new.go_on_after(old)
    new.release_at("written", 2, "second")

    disk.reached("written")
    assert replies == []
    assert new.holding
    disk.reached("synced")
    assert replies == ["first", "second"]
    assert new.release_at("async", 0, "third") == "third"


class Answers:
    def __init__(self, replies: list[str]) -> None:
        self.reply = replies.append


class SlowDisk:
    """A store that says when it likes that a level is reached."""

    written_position = synced_position = 0

    def __init__(self) -> None:
        self.waiting: list = []

    def reach(self, level) -> None:
        """Nothing comes sooner by being asked for."""

    def when(self, level, position, tell) -> None:
        self.waiting.append((level, tell))

    def reached(self, level) -> None:
        for waiting, tell in self.waiting:
            if waiting == level:
                tell(None)


async def test_the_old_service_is_no_longer_its_own_to_close(folder):
    first = SessionService.open(folder)
    async with first:
        session = await first.session("a", create=True)
        second = SessionService.take(await first.handover())
        await second.start()
    assert (await session.push("x")).id == 1
    third = SessionService.take(await second.handover())
    async with third:
        assert (await session.push("y")).id == 2
        await second.close()
        assert (await session.push("z")).id == 3
    for service in (first, second, third):
        with pytest.raises(ServiceClosed):
            await service.session("a")
    with pytest.raises(ServiceClosed):
        await session.push("late")


async def test_a_handover_is_taken_once_and_only_from_a_running_service(store):
    closed = SessionService.open(store)
    with pytest.raises(ServiceClosed):
        await closed.handover()
    with pytest.raises(InvalidArgument, match="handover"):
        SessionService.take(closed)
    async with generations(store) as lives:
        with pytest.raises(InvalidArgument, match="to must be one of"):
            await lives.service.handover("elsewhere")
        handover = await lives.service.handover()
        await lives.next()
        with pytest.raises(HandoverFailed, match="taken over already"):
            await SessionService.take(handover).start()
        for to in ("generation", "process"):
            with pytest.raises(HandoverFailed, match="taken over already"):
                await lives.former[0].handover(to)
        with pytest.raises(InvalidArgument, match="durability"):
            SessionService.take(await lives.service.handover(), durability="never")


async def test_closing_during_a_handover_waits_for_it_and_leaves_the_heir_open(folder):
    first = SessionService.open(folder)
    await first.start()
    for number in range(10):
        await first.session(f"s{number}", create=True)
    heir = SessionService.take(await first.handover())
    taking = asyncio.create_task(heir.start())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.gather(first.close(), taking)

    assert (await (await heir.session("s3")).push("x")).id == 1
    await heir.close()


async def test_the_options_are_those_of_the_new_generation(store):
    async def summarize(prompt, *, max_tokens, session_id):
        return ""

    async with generations(store, durability="async") as lives:
        session = await lives.service.session("a", create=True)
        assert session._cell.automatic is None
        level = "async" if isinstance(store, MemoryStore) else "written"  # all that it can promise
        await lives.next(summarizer=summarize, durability=level)

        assert session._cell.automatic is lives.service._lifetime.population.automatic is not None
        assert session._cell.ref.slot.server._level == level
        await lives.next()
        assert session._cell.automatic is None


async def test_a_summary_that_is_being_written_is_finished_by_the_code_that_began_it():
    release = asyncio.Event()

    async def summarize(prompt, *, max_tokens, session_id):
        await release.wait()
        return good_summary()

    async with generations(MemoryStore(), models=MODELS, summarizer=summarize) as lives:
        session = await lives.service.session("user-42", create=True)
        await to_yellow(session)
        begun = session._cell.automatic
        await lives.next(models=MODELS, summarizer=Scripted(""))
        assert session._cell.automatic is not begun
        running = begun._rounds[session._cell].done
        release.set()
        await running
        assert (await session.build_request("anthropic")).generation == 1


async def test_each_handover_and_each_session_in_it_is_told(folder):
    told: list = []
    detach = telemetry.attach(("session_actor", "handover"), lambda *event: told.append(event))
    try:
        async with generations(folder) as lives:
            await lives.service.session("a", create=True)
            await lives.next()
            with pytest.raises(HandoverFailed):
                await lives.next(code_change=lambda version, value: None)
    finally:
        detach()

    names = [(name[2], metadata.get("session") or metadata["to"]) for name, _, metadata in told]
    assert names == [
        ("start", "generation"),
        ("session", "a"),
        ("stop", "generation"),
        ("start", "generation"),
        ("exception", "generation"),
    ]
    assert told[1][1]["gap_us"] > 0
    assert told[2][1]["sessions"] == 1
