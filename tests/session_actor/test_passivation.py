"""Sessions that rest: unloaded when idle or crowded out, back with the next call."""

from __future__ import annotations

import asyncio

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from session_actor import CallTimeout, MemoryStore, SessionService
from session_actor.commands import Push
from session_actor.server.recency import Recency
from session_actor.server.session import Passivate
from session_actor.supervisors import get_state, resume, suspend

from .conftest import seen


async def until(condition, turns: int = 100_000) -> None:
    """Let the loop turn until the condition holds."""
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came true")


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    """Either store."""
    return MemoryStore() if request.param == "memory" else tmp_path / "conversations"


async def test_an_idle_session_is_unloaded_and_the_next_call_brings_it_back(store):
    async with SessionService.open(store, idle_timeout_s=0.02) as service:
        session = await service.session("user-42", create=True, metadata={"n": 1})
        before = seen(await session.push("q", "a"))
        stack = await session.stack()
        await until(lambda: service.health().live == 0)
        assert seen(await session.get(1)) == before
        assert service.health().live == 1
        await until(lambda: service.health().live == 0)
        assert (await session.push("on", "")).id == 2
        assert [frame.id for frame in stack] == [1]
        assert await session.metadata() == {"n": 1}


async def test_the_least_recently_used_above_max_live_are_unloaded_and_the_others_stay(store):
    async with SessionService.open(store, max_live=3, idle_timeout_s=None) as service:
        sessions = {name: await service.session(name, create=True) for name in "abc"}
        refs = {name: session.ref for name, session in sessions.items()}
        for name in "abca":
            await sessions[name].push("q", "a")
        for name, gone, stay in (("d", "b", "acd"), ("e", "c", "ade")):
            refs[name] = (await service.session(name, create=True)).ref
            await until(lambda gone=gone: refs[gone].phase == "ended")
            for _ in range(100):
                await asyncio.sleep(0)
            assert {name for name, ref in refs.items() if ref.alive} == set(stay)
        assert service.health().live == 3
        assert len(await sessions["b"].stack()) == 1


async def test_an_open_exchange_keeps_a_session_loaded(store):
    async with SessionService.open(store, idle_timeout_s=0.01) as service:
        session = await service.session("user-42", create=True)
        ref = session.ref
        async with session.exchange():
            await asyncio.sleep(0.05)
            assert ref.alive
        await until(lambda: not ref.alive)
        assert service.health().live == 0


async def test_pushes_and_passivations_in_a_race_lose_nothing_and_never_make_two_incarnations(store):
    async with SessionService.open(store, idle_timeout_s=0.001) as service:
        session = await service.session("user-42", create=True)
        for number in range(150):
            await session.push(str(number), "")
            if number % 5 == 0:
                await asyncio.sleep(0.002)
        assert [frame.user_input for frame in await session.stack()] == [str(number) for number in range(150)]


async def test_messages_sent_in_one_turn_to_a_resting_session_keep_their_order(store):
    async with SessionService.open(store, idle_timeout_s=0.01) as service:
        session = await service.session("user-42", create=True)
        await until(lambda: service.health().live == 0)
        pushes = [asyncio.ensure_future(session.push(str(number), "")) for number in range(10)]
        assert [(await push).user_input for push in pushes] == [str(number) for number in range(10)]
        await until(lambda: service.health().live == 0)
        session.ref.cast(Push("cast", ""))
        await session.flush("async")
        assert (await session.stack())[-1].user_input == "cast"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=40))
def test_recency_always_gives_the_one_used_longest_ago(uses):
    used: dict[str, int] = {}
    recency = Recency[str](used.get)
    for tick, (item, gone) in enumerate(uses):
        if gone:
            used.pop(item, None)
        else:
            if item not in used:
                recency.add(item, tick)
            used[item] = tick
    expected = sorted(used, key=lambda item: used[item])
    found = []
    while (item := recency.least()) is not None:
        if item not in found:
            found.append(item)
    assert found == expected


def test_recency_keeps_what_was_used_since_the_given_tick():
    used = {"old": 1, "new": 9}
    recency = Recency[str](used.get)
    recency.add("old", 1)
    recency.add("new", 2)
    assert recency.least(before_s=5) == "old"
    assert recency.least(before_s=5) is None
    assert recency.least() == "new"


async def test_loading_that_takes_too_long_is_a_call_timeout_and_goes_on(store):
    async with SessionService.open(store) as service:
        with pytest.raises(CallTimeout):
            await service.session("user-42", create=True, timeout_s=0)
        assert (await (await service.session("user-42")).push("a", "b")).id == 1


async def test_sessions_that_are_gone_are_let_go_of_by_the_sweeper(store):
    async with SessionService.open(store, idle_timeout_s=None) as service:
        for number in range(300):
            await service.session(f"s{number}", create=True)
            await service.delete(f"s{number}")
        assert service.health().live == 0
        assert len(service._lifetime.population._recency) < 150


def test_recency_forgets_what_is_gone_without_being_asked():
    used: dict[int, int] = {}
    recency = Recency[int](used.get)
    for item in range(10_000):
        used[item] = item
        recency.add(item, item)
        if item % 100:
            del used[item]
    assert len(recency) < 400
    assert [recency.least() for _ in range(3)] == [0, 100, 200]


async def test_newcomers_in_quick_succession_unload_no_more_than_they_must(store):
    async with SessionService.open(store, max_live=3, idle_timeout_s=None) as service:
        refs = [(await service.session(f"s{number}", create=True)).ref for number in range(8)]
        await until(lambda: service.health().live == 3)
        for _ in range(50):
            await asyncio.sleep(0)
        assert [ref.alive for ref in refs] == [False] * 5 + [True] * 3


async def test_a_surplus_that_could_not_be_unloaded_is_tried_again_soon(store):
    async with SessionService.open(store, max_live=1, idle_timeout_s=None) as service:
        busy = await service.session("busy", create=True)
        async with busy.exchange():
            other = await service.session("other", create=True)
            async with other.exchange():
                await asyncio.sleep(0.1)
                assert service.health().live == 2
        await until(lambda: service.health().live == 1)


class DeletesMeanwhile(MemoryStore):
    """Its first flush takes until a session was deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.deletion = None

    async def flush(self, level, position=None):
        if self.deletion is not None:
            deletion, self.deletion = self.deletion, None
            await deletion
        await super().flush(level, position)


async def test_a_session_that_is_deleted_while_it_is_passivated_does_not_crash_the_sweeper():
    store = DeletesMeanwhile()
    async with SessionService.open(store, max_live=1, idle_timeout_s=None) as service:
        await service.session("first", create=True)
        store.deletion = service.delete("first")
        with structlog.testing.capture_logs() as logs:
            await service.session("second", create=True)
            await until(lambda: store.deletion is None and service.health().live == 1)
            for _ in range(20):
                await asyncio.sleep(0)
        assert logs == []


async def test_who_gave_up_asking_a_session_for_its_state_does_not_keep_it_loaded(store):
    async with SessionService.open(store, idle_timeout_s=0.01) as service:
        session = await service.session("user-42", create=True)
        await until(lambda: service.health().live == 0)
        push = asyncio.ensure_future(session.push("q", "a"))
        asked = [asyncio.ensure_future(get_state(session.ref, timeout_s=None)) for _ in range(3)]
        await asyncio.sleep(0)
        for each in asked:
            each.cancel()
        assert (await push).id == 1
        await asyncio.wait(asked)
        assert all(each.cancelled() for each in asked)
        await until(lambda: service.health().live == 0)
        assert len(await session.stack()) == 1


async def test_a_session_is_not_unloaded_before_a_message_that_waits_behind(store):
    async with SessionService.open(store, idle_timeout_s=None) as service:
        session = await service.session("user-42", create=True)
        await session.push("q", "a")
        ref = session.ref
        seq = (await get_state(ref)).seq
        await suspend(ref)
        rests = ref.dispatch(Passivate(seq))
        push = asyncio.ensure_future(session.push("more", ""))
        await asyncio.sleep(0)
        await resume(ref)
        assert await rests.wait() is False
        assert (await push).id == 2
        assert ref.alive
        assert service.health().live == 1
