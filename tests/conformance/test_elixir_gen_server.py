"""Elixir's gen_server_test.exs: calling, casting, finding and stopping one server."""

import asyncio

import msgspec
import pytest

from session_actor.supervisors import (
    Call,
    CallTimeout,
    Cast,
    ChildSpec,
    DeadlockError,
    DynamicSupervisor,
    GenServer,
    ManualClock,
    Registry,
    ServerError,
    ServerRef,
    ServerStopped,
    handles,
)

from .support import Crash, Hold, Life, Ping, pass_time, settle


class Pop(msgspec.Struct, Call[str], frozen=True):
    pass


class Push(msgspec.Struct, Cast, frozen=True):
    item: str


class CallYourself(msgspec.Struct, Call[str], frozen=True):
    pass


class StopYourself(msgspec.Struct, Call[str], frozen=True):
    pass


class Stack(GenServer):
    def __init__(self, *items: str) -> None:
        self.items = list(items)

    @handles(Pop)
    def pop(self, _: Pop) -> str:
        return self.items.pop()

    @handles(Push)
    def push(self, message: Push) -> None:
        self.items.append(message.item)

    @handles(CallYourself)
    async def call_yourself(self, _: CallYourself) -> str:
        try:
            return await self.ref.call(Pop())
        except DeadlockError as refusal:
            return f"refused: {len(refusal.chain)}"

    @handles(StopYourself)
    async def stop_yourself(self, _: StopYourself) -> str:
        try:
            await self.ref.stop()
        except DeadlockError:
            return "refused"
        return "stopped"


@pytest.fixture
async def supervisor(clock: ManualClock):
    async with DynamicSupervisor(clock=clock) as running:
        yield running


async def stack(supervisor: DynamicSupervisor, *items: str) -> ServerRef:
    return await supervisor.start_child(ChildSpec(object(), start=lambda: Stack(*items)))


async def test_a_server_is_started_called_cast_to_and_stopped(supervisor: DynamicSupervisor) -> None:
    ref = await stack(supervisor, "hello")
    assert await ref.call(Pop()) == "hello"
    ref.cast(Push("world"))
    assert await ref.call(Pop()) == "world"
    await ref.stop()
    assert not ref.alive


async def test_a_call_that_cannot_be_answered_says_which_way_it_failed(
    supervisor: DynamicSupervisor, clock: ManualClock
) -> None:
    ref = await stack(supervisor, "hello")
    assert await ref.call(CallYourself()) == "refused: 2"

    busy = Life("busy")
    held = await supervisor.start_child(busy.spec())
    waiting = asyncio.ensure_future(held.call(Hold(), timeout_s=1.0))
    await busy.held.wait()
    await pass_time(clock, 2.0)
    with pytest.raises(CallTimeout):
        await waiting
    busy.gate.set()
    await settle()

    await ref.stop()
    with pytest.raises(ServerStopped):
        await ref.call(Pop())


async def test_a_servers_crash_does_not_touch_who_started_it(supervisor: DynamicSupervisor) -> None:
    life = Life("a")
    ref = await supervisor.start_child(life.spec(restart="temporary"))
    with pytest.raises(ServerError):
        await ref.call(Crash())
    await settle()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert supervisor.alive


async def test_a_server_needs_no_name(supervisor: DynamicSupervisor) -> None:
    registry = Registry()
    ref = await stack(supervisor, "hello")
    assert list(registry.names()) == []
    assert await ref.call(Pop()) == "hello"


async def test_a_name_leads_to_its_server_and_an_unknown_name_to_none(supervisor: DynamicSupervisor) -> None:
    registry = Registry()
    ref = await stack(supervisor)
    registry.register(("name", 1), ref)
    assert registry.whereis(("name", 1)) is ref
    assert registry.whereis("another") is None


async def test_stopping_ends_the_server_once_and_refuses_the_server_itself(supervisor: DynamicSupervisor) -> None:
    life = Life("a")
    ref = await supervisor.start_child(life.spec())
    await ref.stop()
    await ref.stop()
    assert [reason.kind for reason in life.reasons] == ["stopped"]

    itself = await stack(supervisor)
    assert await itself.call(StopYourself()) == "refused"
    assert itself.alive

    registry = Registry()
    registry.register("name", itself)
    found = registry.whereis("name")
    assert found is not None
    await found.stop()
    assert registry.whereis("name") is None


async def test_a_cast_to_an_ended_server_never_reaches_the_next_one(supervisor: DynamicSupervisor) -> None:
    """Elixir answers ok whether the server lives or not; here a sender that can know is told."""
    ref = await stack(supervisor)
    await ref.stop()
    with pytest.raises(ServerStopped):
        ref.cast(Push("lost"))
    again = await stack(supervisor, "kept")
    assert await again.call(Pop()) == "kept"
    assert await (await supervisor.start_child(Life("other").spec())).call(Ping()) == 1
