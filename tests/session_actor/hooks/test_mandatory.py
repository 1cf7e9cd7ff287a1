"""Hooks that must run: tried again, set aside, driven again, held back, and never forgotten."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from session_actor import HooksHealth, HookUnknown, SessionEnded, SessionNotFound, telemetry
from session_actor.commands import End
from session_actor.hooks.breaker import REST_S
from session_actor.server.session import SessionServer

from .conftest import idle, opened, pass_time, turns, until


async def ended(service, session_id: str = "user-42") -> None:
    session = await service.session(session_id, create=True)
    await session.push("hello", "hi")
    await service.end(session_id, "paid")


async def test_they_begin_in_the_reverse_order_of_their_priority_and_are_gone_when_done(calls, store):
    hooks = calls.must("first", priority=90), calls.must("last", priority=1), calls.must("second")
    async with opened(store, *hooks) as service:
        await ended(service)
        assert [hook.name for hook in service.hooks.pending()] == ["first", "second", "last"]
        assert service.health().hooks.pending == 3
        await idle(service)
        assert calls.names == ["first", "second", "last"]
        assert service.health().hooks.pending == 0
        ctx = calls.contexts[0]
        assert (ctx.session_id, ctx.phase, ctx.attempt, ctx.reason) == ("user-42", "ended", 1, "paid")
        assert [frame.assistant_output for frame in await ctx.view.stack()] == ["hi"]
        assert len({ctx.key for ctx in calls.contexts}) == 3
    async with opened(store, *hooks) as service:
        await turns()
    assert len(calls.names) == 3


async def test_what_is_pending_is_written_before_the_end_is_answered(calls, tmp_path):
    calls.gates["bill"] = asyncio.Event()
    async with opened(tmp_path / "store", calls.must("bill"), durability="async") as service:
        session = await service.session("user-42", create=True)
        await service.end("user-42")
        assert session.durable_seq["written"] == session.durable_seq["async"]
        assert service._people().hooks.keeper._lease.written_seq >= 1
        calls.gates["bill"].set()
        await idle(service)


async def test_whoever_ends_a_session_a_second_time_is_answered_when_the_first_end_is_written(calls, tmp_path):
    async with opened(tmp_path / "store", calls.must("bill")) as service:
        session = await service.session("user-42", create=True)
        first = asyncio.ensure_future(service.end("user-42"))
        await service.end("user-42")
        assert session.durable_seq["written"] == session.durable_seq["async"]
        await first
        await idle(service)
    assert calls.names == ["bill"]


async def test_every_way_to_end_a_session_runs_them_once(calls, store):
    async with opened(store, calls.must("bill")) as service:
        session = await service.session("user-42", create=True)
        await session.ref.call(End("by message", key="k"))
        await session.ref.call(End("by message", key="k"))
        with pytest.raises(SessionEnded):
            await session.ref.call(End("another"))
        (await service.session("user-43", create=True)).ref.cast(End("by cast"))
        await until(lambda: len(calls.names) == 2)
        await idle(service)
    assert [ctx.reason for ctx in calls.contexts] == ["by message", "by cast"]


async def test_a_refused_end_makes_nothing_pending(calls, store):
    from session_actor import HeadMoved

    async with opened(store, calls.must("bill")) as service:
        await service.session("user-42", create=True)
        with pytest.raises(HeadMoved):
            await service.end("user-42", expect_head=7)
        assert service.hooks.pending() == []


@pytest.mark.usefixtures("evenly")
async def test_one_that_fails_is_tried_again_later_and_later_with_one_key_and_then_is_dead(calls, store, clock):
    calls.fails["bill"] = -1
    waits = [1, 4, REST_S + 16, REST_S + 64]
    async with opened(store, calls.must("bill"), clock=clock) as service:
        with capture_logs() as logs:
            await ended(service)
            for number, wait_s in enumerate(waits, 1):
                await until(lambda number=number: len(calls.names) == number)
                await turns()
                clock.advance(wait_s)
            await until(service.hooks.dead_letters)
        (letter,) = service.hooks.dead_letters()
        assert (letter.session_id, letter.name, letter.attempts, letter.error) == ("user-42", "bill", 5, "ValueError")
        assert [ctx.attempt for ctx in calls.contexts] == [1, 2, 3, 4, 5]
        assert {ctx.key for ctx in calls.contexts} == {letter.key}
        assert (service.health().hooks.pending, service.health().hooks.dead) == (0, 1)
        assert logs[-1]["event"] == "hook_dead"
        assert "canary" not in str(logs)
        clock.advance(10_000)
        await turns()
        assert len(calls.names) == 5


async def dead(calls, store, clock) -> None:
    """A service after which one hook is dead."""
    calls.fails["bill"] = -1
    async with opened(store, calls.must("bill"), clock=clock) as service:
        await ended(service)
        await pass_time(clock, service.hooks.dead_letters)


async def test_a_dead_letter_can_be_driven_again_after_a_restart_and_has_all_its_tries(calls, store, clock):
    await dead(calls, store, clock)
    calls.fails["bill"] = 3
    async with opened(store, calls.must("bill"), clock=clock) as service:
        await turns()
        assert len(calls.names) == 5
        (letter,) = service.hooks.dead_letters()
        await service.hooks.drive(letter)
        assert service.hooks.dead_letters() == []
        with pytest.raises(HookUnknown):
            await service.hooks.drive(letter)
        await pass_time(clock, lambda: not service.hooks.pending())
        assert service.hooks.dead_letters() == []
    assert [ctx.attempt for ctx in calls.contexts] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert len({ctx.key for ctx in calls.contexts}) == 1


async def test_a_dead_letter_can_be_given_up(calls, store, clock):
    await dead(calls, store, clock)
    async with opened(store, calls.must("bill")) as service:
        await service.hooks.discard(service.hooks.dead_letters()[0])
        assert service.hooks.dead_letters() == []
    async with opened(store, calls.must("bill")) as service:
        await turns()
        assert service.hooks.pending() == []
    assert len(calls.names) == 5


async def test_a_hook_whose_name_is_not_registered_waits_until_it_is(calls, store):
    calls.gates["bill"] = asyncio.Event()
    async with opened(store, calls.must("bill", priority=90), calls.must("learn"), close_timeout_s=0.1) as service:
        await ended(service)
    calls.names.clear()
    async with opened(store, calls.must("learn"), calls.hook("bill", "created")) as service:
        await until(lambda: calls.names)
        await turns()
        assert calls.names == ["learn"]
        assert service.health().hooks.unregistered == ("bill",)
        (pending,) = service.hooks.pending()
        assert (pending.name, pending.registered, pending.attempts) == ("bill", False, 0)
        assert service.hooks.dead_letters() == []
    async with opened(store) as service:
        assert service.health().hooks.unregistered == ("bill",)
    calls.gates["bill"].set()
    async with opened(store, calls.must("bill")) as service:
        await idle(service)
        assert service.health().hooks.unregistered == ()
    assert calls.names == ["learn", "bill"]


async def test_one_that_waits_for_its_hook_can_be_given_up_and_one_that_will_run_cannot(calls, store):
    calls.gates["bill"] = asyncio.Event()
    async with opened(store, calls.must("bill"), close_timeout_s=0.1) as service:
        await ended(service)
        with pytest.raises(HookUnknown):
            await service.hooks.discard(service.hooks.pending()[0])
    async with opened(store) as service:
        await service.hooks.discard(service.hooks.pending()[0].key)
        assert service.health().hooks.unregistered == ()


async def test_what_failed_at_once_is_not_tried_again_at_once(calls, store, clock):
    names = [f"bill{number}" for number in range(20)]
    for name in names:
        calls.fails[name] = 1
    async with opened(store, *(calls.must(name) for name in names), clock=clock) as service:
        await ended(service)
        await until(lambda: len(calls.names) == len(names))
        await turns()
        clock.advance(0.79)
        tried = []
        for _ in range(42):
            await turns(5)
            tried.append(len(calls.names) - len(names))
            clock.advance(0.01)
        await idle(service)
    assert tried[0] == 0
    assert tried[-1] == len(names)  # a second, and a fifth of it more or less
    assert len(set(tried)) > 5


@pytest.mark.usefixtures("evenly")
async def test_a_failing_hook_holds_up_no_other(calls, store, clock):
    calls.fails["bill"] = 1
    async with opened(store, calls.must("bill", priority=90), calls.must("learn"), clock=clock) as service:
        await ended(service)
        await until(lambda: len(calls.names) == 2)
        await turns()
        assert calls.names == ["bill", "learn"]
        clock.advance(1)
        await idle(service)
    assert calls.names == ["bill", "learn", "bill"]


async def test_a_hanging_hook_is_cut_after_its_time_and_holds_up_nobody(calls, store, clock):
    calls.gates["bill"] = asyncio.Event()
    hooks = calls.must("bill", priority=90, timeout_s=9), calls.must("learn")
    async with opened(store, *hooks, clock=clock, close_timeout_s=0.1) as service:
        await ended(service)
        await until(lambda: calls.names)
        session = await service.session("user-43", create=True)
        await session.push("others", "go on")
        clock.advance(9)
        await until(lambda: len(calls.names) == 2)
        await turns()
        assert service.hooks.pending()[0].error == "HookLate"


async def test_one_that_swallows_its_cancellation_is_never_run_twice_at_a_time(store, clock):
    from session_actor import Hook

    running, most, release = 0, 0, asyncio.Event()

    async def stubborn(ctx):
        nonlocal running, most
        running += 1
        most = max(most, running)
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        running -= 1

    hook = Hook("bill", stubborn, "ended", mandatory=True, timeout_s=0.01)
    try:
        async with opened(store, hook, close_timeout_s=0.05) as service:  # time passes by itself: it is killed
            await ended(service)
            await until(lambda: service.health().hooks.pending and service._people().hooks.tries._running == 0)
            assert (running, service.hooks.pending()[0].attempts) == (1, 1)
        async with opened(store, hook, clock=clock) as service:  # the old try is still there
            for _ in range(5):
                await turns()
                clock.advance(10)
            assert (running, most) == (1, 1)
            release.set()
            await until(lambda: not running)
            clock.advance(10)
            await idle(service)
            assert most == 1
    finally:
        release.set()


async def test_three_failures_in_a_minute_leave_a_hook_alone_for_all_sessions(calls, store, clock):
    calls.fails["bill"] = 3
    told = []
    detach = telemetry.attach(("session_actor", "hook", "breaker"), lambda name, _, what: told.append(what["state"]))
    async with opened(store, calls.must("bill"), calls.must("learn"), clock=clock) as service:
        for number in range(3):
            await ended(service, f"user-{number}")
        await until(lambda: calls.names.count("bill") == 3)
        await turns()
        assert service.health().hooks.breakers_open == ("bill",)
        await ended(service, "user-3")
        await until(lambda: calls.names.count("learn") == 4)
        await turns()
        assert calls.names.count("bill") == 3
        assert service.health().hooks.pending == 4
        clock.advance(REST_S)
        await idle(service)
        assert service.health().hooks.breakers_open == ()
    detach()
    assert calls.names.count("bill") == 7
    assert told == ["open", "closed"]


async def test_at_the_start_no_session_is_opened_but_those_with_pending_hooks(calls, store, clock, monkeypatch):
    calls.fails["bill"] = 1
    async with opened(store, calls.must("bill"), clock=clock) as service:
        for number in range(20):
            await service.session(f"other-{number}", create=True)
        await ended(service)
        await until(lambda: calls.names)
        await turns()
    loaded = []
    load = SessionServer._load

    async def counted(server):
        loaded.append(server._cell.id)
        await load(server)

    monkeypatch.setattr(SessionServer, "_load", counted)
    async with opened(store, calls.must("bill"), calls.hook("look", "activated")) as service:
        await idle(service)
        await until(lambda: not service.health().live)  # and it is let go of
    assert loaded == ["user-42"]
    assert calls.names == ["bill", "bill"]


async def test_what_is_due_for_an_end_that_never_came_is_void(calls, store):
    """A crash may leave the record of what is due alone, without that of the end behind it."""
    for hooks in ([calls.must("bill")], []):
        async with opened(store, calls.must("bill")) as service:
            session = await service.session("user-42", create=True)
            await session.push("hello", "hi")
            cell = session._cell
            service._people().hooks.promise(cell.lease, cell.state, "done", delete=True)
        async with opened(store, *hooks) as service:
            assert service.health().hooks.pending == 1
            if hooks:
                await until(lambda: not service.hooks.pending())
                await (await service.session("user-42")).push("and", "on")
            else:
                await service.delete("user-42")
                with pytest.raises(SessionNotFound):
                    await service.session("user-42")
            assert service.health().hooks == HooksHealth()
    assert calls.names == []


async def test_the_book_of_what_is_pending_is_hidden(calls, store):
    from session_actor import UnusableId
    from session_actor.service.reserved import HOOKS

    async with opened(store, calls.must("bill")) as service:
        await ended(service)
        await idle(service)
        assert [info.id async for info in service.sessions()] == ["user-42"]
        for wrong in (service.session(HOOKS), service.session(HOOKS, create=True), service.delete(HOOKS)):
            with pytest.raises(UnusableId, match="the library's own"):
                await wrong


async def test_a_hook_whose_session_cannot_be_shown_is_dead_in_the_end_and_not_forgotten(calls, store, clock):
    calls.fails["bill"] = 1
    async with opened(store, calls.must("bill"), clock=clock) as service:
        await ended(service)
        await until(lambda: calls.names)
        await turns()
        people = service._people()
        await people.rest("user-42")
        await until(lambda: not service.health().live)
        lease = await people.store.acquire("user-42", create=False)
        await people.store.delete(lease)  # behind the service's back
        await pass_time(clock, service.hooks.dead_letters)
        assert service.hooks.dead_letters()[0].error == "SessionNotFound"


async def test_many_sessions_that_end_at_once_are_all_served(calls, store):
    async with opened(store, calls.must("bill"), calls.must("learn")) as service:
        for number in range(60):
            await service.session(f"user-{number}", create=True)
        await asyncio.gather(*(service.end(f"user-{number}") for number in range(60)))
        await idle(service)
    assert sorted((ctx.session_id, name) for ctx, name in zip(calls.contexts, calls.names, strict=True)) == sorted(
        (f"user-{number}", name) for number in range(60) for name in ("bill", "learn")
    )


async def test_events_tell_of_every_try_and_of_no_content(calls, store, clock):
    calls.fails["bill"] = 1
    told = []
    detach = telemetry.attach(("session_actor", "hook"), lambda *event: told.append(event))
    async with opened(store, calls.must("bill"), clock=clock) as service:
        await ended(service)
        await until(lambda: calls.names)
        await turns()
        clock.advance(2)
        await idle(service)
    detach()
    assert [name[-1] for name, _, _ in told] == ["start", "exception", "start", "stop"]
    assert all(what["session"] == "user-42" and what["hook"] == "bill" for _, _, what in told)
    assert [what["attempt"] for _, _, what in told] == [1, 1, 2, 2]
    assert told[1][1]["duration_ns"] > 0
    assert "canary" not in repr(told)
