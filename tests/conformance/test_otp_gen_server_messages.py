"""OTP's gen_server_SUITE, what needs no second node: cast, info, continue and sys."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from session_actor.supervisors import (
    ChildSpec,
    Continue,
    DynamicSupervisor,
    GenServer,
    ManualClock,
    ServerStopped,
    SystemCallFailed,
    change_code,
    get_state,
    handles,
    monitor,
    replace_state,
    resume,
    suspend,
)

from .listener import ContinueWith, Listener, Tell, TellLater, UnheardCast, Words
from .support import SHORT, Boom, CrashCast, Hold, Life, Ping, pass_time, settle


@pytest.fixture
async def supervisor(clock: ManualClock):
    async with DynamicSupervisor(clock=clock, backoff=SHORT) as running:
        yield running


# Cast, info, continue


async def test_casts_are_handled_in_order_and_return_at_once(supervisor: DynamicSupervisor, clock: ManualClock) -> None:
    listener = Listener()
    ref = await supervisor.start_child(ChildSpec("listener", start=lambda: listener))
    for word in ("one", "two"):
        assert ref.cast(Tell(word)) is None  # type: ignore[func-returns-value]
    ref.cast(TellLater(1.0))
    assert await ref.call(Words()) == ["one", "two"]
    await pass_time(clock, 1.0)
    assert await ref.call(Words()) == ["one", "two", "late"]


async def test_a_cast_to_a_busy_server_returns_at_once_and_waits_its_turn(supervisor: DynamicSupervisor) -> None:
    life = Life("a")
    ref = await supervisor.start_child(life.spec(restart="temporary"))
    holding = asyncio.ensure_future(ref.call(Hold()))
    await life.held.wait()
    ref.cast(CrashCast())
    await settle()
    assert ref.alive
    life.gate.set()
    assert await holding == "held"
    await settle()
    assert not ref.alive


async def test_a_cast_that_crashes_crashes_the_server(supervisor: DynamicSupervisor) -> None:
    ref = await supervisor.start_child(Life("a").spec(restart="temporary"))
    watch = monitor(ref)
    ref.cast(CrashCast())
    assert (await watch).reason.kind == "crashed"


async def test_a_message_without_a_handler_goes_to_handle_info(supervisor: DynamicSupervisor) -> None:
    listener = Listener()
    ref = await supervisor.start_child(ChildSpec("listener", start=lambda: listener))
    ref.cast(UnheardCast())
    await settle()
    assert listener.words == ["info UnheardCast"]


async def test_without_a_handle_info_of_its_own_a_server_drops_what_it_does_not_know(
    supervisor: DynamicSupervisor,
) -> None:
    ref = await supervisor.start_child(Life("a").spec())
    ref.cast(UnheardCast())
    await settle()
    assert await ref.call(Ping()) == 1


async def test_a_handle_info_that_raises_crashes_the_server(supervisor: DynamicSupervisor) -> None:
    class Raises(GenServer):
        async def handle_info(self, message: object) -> None:
            raise Boom from None

    ref = await supervisor.start_child(ChildSpec("raises", start=Raises, restart="temporary"))
    watch = monitor(ref)
    ref.cast(UnheardCast())
    assert (await watch).reason.kind == "crashed"


async def test_a_continue_from_init_runs_before_any_message(supervisor: DynamicSupervisor) -> None:
    listener = Listener(first=Continue("first"))
    ref = supervisor.spawn(ChildSpec("listener", start=lambda: listener))
    ref.cast(Tell("waiting since before the start"))
    assert await ref.call(Words()) == ["continue first", "waiting since before the start"]


async def test_a_continue_from_a_handler_runs_after_the_reply_and_before_the_next_message(
    supervisor: DynamicSupervisor,
) -> None:
    listener = Listener()
    ref = await supervisor.start_child(ChildSpec("listener", start=lambda: listener))
    reply = asyncio.ensure_future(ref.call(ContinueWith("again")))
    await asyncio.sleep(0)
    ref.cast(Tell("next"))
    assert await reply == "replied"
    assert await ref.call(Words()) == ["continue again", "continue after", "next"]


async def test_a_continue_may_end_the_server(supervisor: DynamicSupervisor) -> None:
    listener = Listener()
    ref = await supervisor.start_child(ChildSpec("listener", start=lambda: listener, restart="temporary"))
    watch = monitor(ref)
    assert await ref.call(ContinueWith("stop")) == "replied"
    assert (await watch).reason.kind == "normal"


async def test_a_continue_that_nobody_handles_is_nothing(supervisor: DynamicSupervisor) -> None:
    class Continues(GenServer):
        async def init(self) -> Continue:
            return Continue("nobody listens")

        @handles(Ping)
        def ping(self, _: Ping) -> int:
            return 1

    ref = await supervisor.start_child(ChildSpec("continues", start=Continues))
    assert await ref.call(Ping()) == 1


# sys


async def test_the_state_can_be_read_also_while_the_server_is_suspended(supervisor: DynamicSupervisor) -> None:
    listener = Listener()
    ref = await supervisor.start_child(ChildSpec("listener", start=lambda: listener))
    await ref.call(ContinueWith("one"))
    await settle()
    running = await get_state(ref)
    assert running["words"] == ["continue one"]
    await suspend(ref)
    ref.cast(Tell("later"))
    await settle()
    assert (await get_state(ref))["words"] == ["continue one"]
    await resume(ref)
    assert await ref.call(Words()) == ["continue one", "later"]


async def test_a_suspended_server_answers_nobody_until_it_is_resumed(supervisor: DynamicSupervisor) -> None:
    ref = await supervisor.start_child(Life("a").spec())
    await suspend(ref)
    call = asyncio.ensure_future(ref.call(Ping()))
    await settle()
    assert not call.done()
    await resume(ref)
    assert await call == 1


async def test_a_suspended_server_can_be_stopped(supervisor: DynamicSupervisor) -> None:
    life = Life("a")
    ref = await supervisor.start_child(life.spec())
    await suspend(ref)
    call = asyncio.ensure_future(ref.call(Ping()))
    await settle()
    await ref.stop()
    with pytest.raises(ServerStopped):
        await call
    assert [reason.kind for reason in life.reasons] == ["stopped"]


async def test_the_state_can_be_replaced_also_while_the_server_is_suspended(supervisor: DynamicSupervisor) -> None:
    ref = await supervisor.start_child(ChildSpec("listener", start=Listener))

    def add(word: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        return lambda state: {**state, "words": [*state["words"], word]}

    assert (await replace_state(ref, add("one")))["words"] == ["one"]
    await suspend(ref)
    await replace_state(ref, add("two"))
    await resume(ref)
    assert await ref.call(Words()) == ["one", "two"]


async def test_a_replacement_that_raises_changes_nothing_and_the_server_lives(supervisor: DynamicSupervisor) -> None:
    ref = await supervisor.start_child(ChildSpec("listener", start=Listener))
    ref.cast(Tell("kept"))
    assert await ref.call(Words()) == ["kept"]

    def fails(_: object) -> object:
        raise Boom

    with pytest.raises(SystemCallFailed, match="Boom"):
        await replace_state(ref, fails)
    assert await ref.call(Words()) == ["kept"]


class Counter(GenServer):
    version = 1

    def __init__(self) -> None:
        self.words: list[str] = []

    @handles(Tell)
    def tell(self, message: Tell) -> None:
        self.words.append(message.word)

    @handles(Words)
    def all_words(self, _: Words) -> list[str]:
        return list(self.words)


class LouderCounter(Counter):
    version = 2

    async def code_change(self, old_version: int, state: dict[str, list[str]]) -> dict[str, list[str]]:
        return {"words": [f"{word} from {old_version}" for word in state["words"]]}


class BrokenCounter(Counter):
    version = 3

    async def code_change(self, old_version: int, state: dict[str, list[str]]) -> dict[str, list[str]]:
        raise Boom


async def test_new_code_takes_the_old_state_over(supervisor: DynamicSupervisor) -> None:
    ref = await supervisor.start_child(ChildSpec("counter", start=Counter))
    ref.cast(Tell("word"))
    assert await ref.call(Words()) == ["word"]
    await change_code(ref, LouderCounter)
    assert await ref.call(Words()) == ["word from 1"]


async def test_new_code_that_cannot_take_the_state_over_leaves_the_old_server_running(
    supervisor: DynamicSupervisor,
) -> None:
    ref = await supervisor.start_child(ChildSpec("counter", start=Counter))
    ref.cast(Tell("word"))
    with pytest.raises(SystemCallFailed, match="Boom"):
        await change_code(ref, BrokenCounter)
    ref.cast(Tell("another"))
    assert await ref.call(Words()) == ["word", "another"]
