"""Two lanes, a limit, and three ways to overflow."""

import asyncio
from typing import Any

import pytest

from session_actor.supervisors import (
    DynamicSupervisor,
    MailboxFull,
    MailboxSpec,
    ServerRef,
    get_state,
    statistics,
)
from session_actor.supervisors.mailbox import WARM_MAILBOXES

from .support import Add, Hold, Life, Note, idle, turns, until


async def held_server(root: DynamicSupervisor, life: Life, overflow: Any) -> tuple[ServerRef, asyncio.Task[int]]:
    """Return a server that is busy, with room for three messages."""
    ref = root.spawn(life.spec(mailbox=MailboxSpec(limit=3, overflow=overflow)))
    held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
    await life.held.wait()
    return ref, held


async def test_block_holds_calls_in_line_in_their_order_and_refuses_casts(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref, held = await held_server(root, life, "block")
        calls = [ref.dispatch(Add(n), None) for n in range(10)]
        with pytest.raises(MailboxFull):
            ref.cast(Note())
        assert statistics(ref).mailbox_length == 10
        life.gate.set()
        await held
        for pending in calls:
            await pending.wait()
        assert life.log == ["held", *range(10)]


async def test_a_call_that_waits_in_line_can_be_given_up_and_is_never_run(life: Life, clock: Any) -> None:
    async with DynamicSupervisor(clock=clock) as root:
        ref, held = await held_server(root, life, "block")
        calls = [asyncio.create_task(ref.call(Add(n), timeout_s=1.0 if n == 5 else None)) for n in range(6)]
        await turns()
        calls[4].cancel()
        clock.advance(1.0)
        await asyncio.wait([calls[4], calls[5]])
        life.gate.set()
        await held
        await asyncio.gather(*calls[:4])
        await turns()
        assert life.log == ["held", 0, 1, 2, 3]


async def test_reject_refuses_both_and_changes_nothing(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref, held = await held_server(root, life, "reject")
        for n in range(3):
            ref.cast(Note(n))
        with pytest.raises(MailboxFull, match="limit of 3"):
            ref.cast(Note())
        with pytest.raises(MailboxFull):
            await ref.call(Add())
        life.gate.set()
        await held
        await turns()
        assert life.log == ["held", 0, 1, 2]


async def test_drop_oldest_makes_room_tells_a_dropped_caller_and_counts(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref, held = await held_server(root, life, "drop_oldest")
        first = asyncio.create_task(ref.call(Add(100), timeout_s=None))
        await turns()
        for n in range(4):
            ref.cast(Note(n))
        with pytest.raises(MailboxFull):
            await first
        assert statistics(ref).dropped == 2
        life.gate.set()
        await held
        await turns()
        assert life.log == ["held", 1, 2, 3]


async def test_given_up_calls_take_no_room(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref, held = await held_server(root, life, "reject")
        calls = [asyncio.create_task(ref.call(Add(n), timeout_s=None)) for n in range(3)]
        await turns()
        for call in calls:
            call.cancel()
        await turns()
        for n in range(3):
            ref.cast(Note(n))
        with pytest.raises(MailboxFull):
            ref.cast(Note())
        life.gate.set()
        await held
        await turns()
        assert life.log == ["held", 0, 1, 2]


async def test_control_messages_need_no_room_and_go_first(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref, held = await held_server(root, life, "reject")
        for _ in range(3):
            ref.cast(Note())
        asked = asyncio.create_task(get_state(ref))
        await turns()
        life.gate.set()
        await held
        assert (await asked)["n"] == 1


@pytest.mark.parametrize("how", ["late", "cancelled"])
async def test_given_up_control_messages_make_no_room_for_others(life: Life, clock: Any, how: str) -> None:
    async with DynamicSupervisor(clock=clock) as root:
        ref, held = await held_server(root, life, "reject")
        ref.cast(Note())
        asked = [asyncio.create_task(get_state(ref, timeout_s=1.0)) for _ in range(5)]
        await turns()
        if how == "late":
            clock.advance(1.0)
        else:
            for call in asked:
                call.cancel()
        await asyncio.wait(asked)
        assert statistics(ref).mailbox_length == 1
        ref.cast(Note())
        ref.cast(Note())
        with pytest.raises(MailboxFull):
            ref.cast(Note())
        life.gate.set()
        await held
        await until(lambda: len(life.log) == 4)
        assert statistics(ref).mailbox_length == 0


async def test_only_the_servers_used_last_keep_their_empty_lanes() -> None:
    async with DynamicSupervisor() as root:
        refs = [await idle(root.spawn(Life().spec(number))) for number in range(2 * WARM_MAILBOXES)]
        assert [ref.slot.mailbox.user for ref in refs if ref.slot.mailbox.user is not None] == []
        for _ in range(3):
            for ref in refs:
                ref.cast(Note())
                await until(lambda ref=ref: statistics(ref).mailbox_length == 0)
                assert (await get_state(ref))["n"] > 0
        assert sum(ref.slot.mailbox.user is not None for ref in refs) == WARM_MAILBOXES
        assert refs[-1].slot.mailbox.user is not None
        assert all(ref.slot.mailbox.control is None for ref in refs)


async def test_a_lane_in_use_is_not_given_back(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref, held = await held_server(root, life, "block")
        ref.cast(Note(5))
        for number in range(3 * WARM_MAILBOXES):
            root.spawn(Life().spec(number)).cast(Note())
        life.gate.set()
        await held
        await until(lambda: len(life.log) > 1)
        assert life.log == ["held", 5]


@pytest.mark.parametrize("options", [{"limit": 0}, {"overflow": "explode"}])
def test_an_impossible_mailbox_is_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="mailbox"):
        MailboxSpec(**options)
