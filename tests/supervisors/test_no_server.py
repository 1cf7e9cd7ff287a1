"""A supervisor or a bare task in a tree takes no messages, and says so at once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from session_actor.supervisors import (
    ChildSpec,
    DynamicSupervisor,
    ServerRef,
    Supervisor,
    SystemCallFailed,
    UnknownMessage,
    change_code,
    get_state,
    replace_state,
    resume,
    suspend,
    swap,
)

from .support import AT_ONCE, Add, Life, Note, Server, turns, until

KINDS = ["a supervisor", "a bare task"]


def spec(kind: str, **options: Any) -> ChildSpec:
    if kind == "a supervisor":
        return ChildSpec("it", start=Supervisor, **options)
    return ChildSpec("it", task=lambda: asyncio.sleep(3600), **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["up", "new"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda ref: get_state(ref, None),
        lambda ref: replace_state(ref, lambda state: state, None),
        lambda ref: suspend(ref, None),
        lambda ref: resume(ref, None),
        lambda ref: change_code(ref, lambda: Server(Life()), None),
        lambda ref: swap(ref, None),
    ],
)
async def test_looking_into_what_is_no_server_is_refused_at_once_by_name(
    kind: str, when: str, ask: Callable[[ServerRef], Any]
) -> None:
    async with DynamicSupervisor() as root:
        ref = root.spawn(spec(kind))
        if when == "up":
            await ref.started()
            await turns()
        with pytest.raises(SystemCallFailed, match=f"'it' is {kind}"):
            await asyncio.wait_for(ask(ref), 5)
        await ref.started()
        assert ref.phase == "running"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["up", "new"])
async def test_a_message_to_what_is_no_server_is_refused_at_once_by_name(kind: str, when: str) -> None:
    async with DynamicSupervisor() as root:
        ref = root.spawn(spec(kind))
        if when == "up":
            await ref.started()
            with pytest.raises(UnknownMessage, match=f"'it' is {kind}"):
                ref.cast(Note())
        with pytest.raises(UnknownMessage, match=f"'it' is {kind}"):
            await asyncio.wait_for(ref.call(Add(), timeout_s=None), 5)
        await ref.started()
        assert ref.phase == "running"


async def test_a_place_whose_function_makes_a_server_next_time_takes_messages_then(life: Life) -> None:
    made: list[Any] = [Server(life), Supervisor()]
    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = root.spawn(ChildSpec("it", start=made.pop))
        await ref.started()
        ref.kill()
        await until(lambda: life.starts == 1)
        assert await ref.call(Add(3)) == 3
