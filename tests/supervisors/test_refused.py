"""What a refused call leaves behind: nothing, whichever way it was run."""

from __future__ import annotations

import asyncio
import gc
from math import inf

import anyio
import pytest

from session_actor.supervisors import Call, GenServer, Refusal, Supervisor, handles
from session_actor.supervisors.child_spec import ChildSpec

from .support import idle


class No(Refusal):
    pass


class Ask(Call[None]):
    pass


class Refusing(GenServer):
    leaf = True

    @handles(Ask)
    def ask(self, _: Ask) -> None:
        raise No

    def lent(self, content: object) -> None:
        del content
        raise No


class Tasks(GenServer):
    """Its handlers need a running task."""

    @handles(Ask)
    def ask(self, _: Ask) -> None:
        anyio.CancelScope()
        assert anyio.get_current_task().id
        assert asyncio.current_task() is not None


def spend(ref, bears_until: float) -> None:
    """The budget of this turn of the loop is spent; leaves are run until `bears_until` all the same."""
    budget = ref.slot.floor.budget
    budget._ask_for_turn()
    budget.check_at, budget.bears_until = -inf, bears_until


async def inline(ref) -> None:
    await ref.call(Ask())


async def borrowed(ref) -> None:
    await idle(ref)
    ref.borrow(None)


async def overdrawn(ref) -> None:
    spend(ref, inf)
    await ref.call(Ask())


async def queued(ref) -> None:
    spend(ref, -inf)
    await ref.call(Ask())


@pytest.mark.parametrize("way", [inline, borrowed, overdrawn, queued])
async def test_a_refusal_is_freed_without_the_collector(way) -> None:
    async with Supervisor([ChildSpec("refusing", start=Refusing)]) as root:
        ref = root.child("refusing")
        await ref.started()
        await asyncio.sleep(0)
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                with pytest.raises(No):
                    await way(ref)
                await asyncio.sleep(0)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            assert not [left for left in gc.garbage if isinstance(left, No | Ask)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()


async def test_sync_handlers_that_need_a_task_have_one_although_the_budget_is_spent() -> None:
    async with Supervisor([ChildSpec("tasks", start=Tasks)]) as root:
        ref = root.child("tasks")
        await ref.started()
        await asyncio.sleep(0)
        for _ in range(3):
            await queued(ref)
            await asyncio.sleep(0)
