"""Elixir's registry tests for unique keys: one living server per name, and names that go with their servers."""

import asyncio
import gc
import weakref

import pytest

from session_actor.supervisors import (
    AlreadyRegistered,
    ChildSpec,
    DynamicSupervisor,
    InitFailed,
    ManualClock,
    Registry,
    Supervisor,
)

from .support import SHORT, Boom, Hold, Leave, Life, Ping, crash, crash_and_restart, pass_time, settle


@pytest.fixture
async def supervisor(clock: ManualClock):
    async with DynamicSupervisor(clock=clock, backoff=SHORT) as running:
        yield running


@pytest.fixture
def registry() -> Registry:
    return Registry()


async def test_an_empty_registry_has_no_names(registry: Registry) -> None:
    assert list(registry.names()) == []
    assert registry.whereis("hello") is None


async def test_names_lists_what_is_registered(registry: Registry, supervisor: DynamicSupervisor) -> None:
    registry.register("hello", supervisor.spawn(Life("a").spec()))
    registry.register("world", supervisor.spawn(Life("b").spec()))
    assert sorted(map(str, registry.names())) == ["hello", "world"]


async def test_a_holder_may_take_its_name_again_and_more_names(
    registry: Registry, supervisor: DynamicSupervisor
) -> None:
    """Elixir refuses the second time; here it changes nothing."""
    ref = supervisor.spawn(Life("a").spec())
    registry.register("hello", ref)
    registry.register("hello", ref)
    registry.register("world", ref)
    assert registry.whereis("hello") is registry.whereis("world") is ref


async def test_a_taken_name_is_refused_to_another_server_and_stays_with_the_first(
    registry: Registry, supervisor: DynamicSupervisor
) -> None:
    first, second = supervisor.spawn(Life("a").spec()), supervisor.spawn(Life("b").spec())
    registry.register("hello", first)
    with pytest.raises(AlreadyRegistered, match="hello"):
        registry.register("hello", second)
    assert registry.whereis("hello") is first


async def test_of_many_racing_registrations_exactly_one_wins(registry: Registry, supervisor: DynamicSupervisor) -> None:
    async def race(number: int) -> bool:
        ref = await supervisor.start_child(Life(f"racer-{number}").spec())
        try:
            registry.register("prize", ref)
        except AlreadyRegistered:
            return False
        return True

    won = await asyncio.gather(*(race(n) for n in range(20)))
    assert won.count(True) == 1


async def test_a_name_is_free_as_soon_as_its_holder_has_been_killed(
    registry: Registry, supervisor: DynamicSupervisor
) -> None:
    """The holder is killed in the middle of a message, and the successor comes right after its end."""
    life = Life("a")
    holder = await supervisor.start_child(life.spec(restart="temporary"))
    registry.register("hello", holder)
    call = asyncio.ensure_future(holder.call(Hold()))
    await life.held.wait()
    holder.kill()
    await asyncio.gather(call, return_exceptions=True)
    await settle()
    successor = supervisor.spawn(Life("b").spec())
    registry.register("hello", successor)
    assert registry.whereis("hello") is successor


@pytest.mark.parametrize("end", ["stop", "leave", "crash", "kill", "terminate", "supervisor"])
async def test_every_end_of_the_holder_frees_all_its_names(registry: Registry, clock: ManualClock, end: str) -> None:
    supervisor = DynamicSupervisor(clock=clock, backoff=SHORT)
    await supervisor.start()
    ref = await supervisor.start_child(Life("a").spec(restart="temporary"))
    registry.register("hello", ref)
    registry.register("world", ref)
    if end == "stop":
        await ref.stop()
    elif end == "leave":
        await ref.call(Leave())
    elif end == "crash":
        await crash(ref)
    elif end == "kill":
        ref.kill()
    elif end == "terminate":
        await supervisor.terminate_child("a")
    else:
        await supervisor.stop()
    await settle()
    assert list(registry.names()) == []
    await supervisor.stop()


async def test_a_name_stays_across_a_restart_and_through_the_backoff(
    registry: Registry, supervisor: DynamicSupervisor, clock: ManualClock
) -> None:
    ref = await supervisor.start_child(Life("a").spec())
    registry.register("hello", ref)
    await crash(ref)
    assert registry.whereis("hello") is ref
    with pytest.raises(AlreadyRegistered):
        registry.register("hello", supervisor.spawn(Life("b").spec()))
    await pass_time(clock)
    assert await ref.call(Ping()) == 2
    assert registry.whereis("hello") is ref


async def test_a_child_that_fails_to_start_keeps_no_name(registry: Registry, supervisor: DynamicSupervisor) -> None:
    ref = supervisor.spawn(Life("a", script=[Boom()]).spec())
    registry.register("hello", ref)
    with pytest.raises(InitFailed):
        await ref.started()
    await settle()
    assert registry.whereis("hello") is None


async def test_an_ended_server_cannot_take_a_name(registry: Registry, supervisor: DynamicSupervisor) -> None:
    ref = await supervisor.start_child(Life("a").spec())
    await ref.stop()
    try:
        registry.register("hello", ref)
    except Exception as refusal:  # noqa: BLE001 - refusing is as good as forgetting at once
        assert not isinstance(refusal, AlreadyRegistered)  # noqa: PT017
    assert registry.whereis("hello") is None


async def test_names_are_compared_as_python_compares_keys(registry: Registry, supervisor: DynamicSupervisor) -> None:
    """Elixir keeps 1 and 1.0 apart; in Python they are one key, as in every dict."""
    registry.register(1, supervisor.spawn(Life("a").spec()))
    with pytest.raises(AlreadyRegistered):
        registry.register(1.0, supervisor.spawn(Life("b").spec()))
    registry.register("1", supervisor.spawn(Life("c").spec()))
    assert len(list(registry.names())) == 2


async def test_unregistering_frees_one_name_only(registry: Registry, supervisor: DynamicSupervisor) -> None:
    ref = await supervisor.start_child(Life("a").spec())
    registry.register("hello", ref)
    registry.register("world", ref)
    registry.unregister("hello")
    assert list(registry.names()) == ["world"]
    registry.unregister("world")
    assert list(registry.names()) == []
    assert ref.alive
    registry.register("hello", ref)


async def test_unregistering_an_unknown_name_is_no_error(registry: Registry) -> None:
    registry.unregister("hello")
    assert registry.whereis("hello") is None


async def test_the_end_of_an_earlier_holder_does_not_take_the_name_from_the_next(
    registry: Registry, supervisor: DynamicSupervisor
) -> None:
    first, second = supervisor.spawn(Life("a").spec()), supervisor.spawn(Life("b").spec())
    registry.register("hello", first)
    registry.unregister("hello")
    registry.register("hello", second)
    await first.stop()
    assert registry.whereis("hello") is second


async def test_refused_registrations_and_ended_servers_leave_nothing_behind(
    registry: Registry, supervisor: DynamicSupervisor
) -> None:
    holder = await supervisor.start_child(Life("holder").spec())
    registry.register("hello", holder)
    ref = await supervisor.start_child(Life("other").spec())
    for _ in range(3):
        with pytest.raises(AlreadyRegistered):
            registry.register("hello", ref)
    gone = weakref.ref(ref)
    await ref.stop()
    await settle()
    del ref
    gc.collect()
    assert gone() is None
    assert list(registry.names()) == ["hello"]


async def test_a_registered_name_can_be_called_through_whereis(registry: Registry, clock: ManualClock) -> None:
    async with Supervisor(children=[Life("a").spec()], clock=clock, backoff=SHORT) as root:
        registry.register("hello", root.child("a"))
        found = registry.whereis("hello")
        assert found is not None
        assert await found.call(Ping()) == 1
        await crash_and_restart(clock, found)
        assert await found.call(Ping()) == 2


async def test_a_supervisor_under_a_name_goes_with_its_children(registry: Registry, clock: ManualClock) -> None:
    inner = DynamicSupervisor()
    async with Supervisor(children=[ChildSpec("inner", start=lambda: inner)], clock=clock) as root:
        registry.register("inner", root.child("inner"))
        registry.register("leaf", await inner.start_child(Life("leaf").spec()))
    assert list(registry.names()) == []
