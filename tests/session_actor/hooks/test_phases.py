"""When hooks are called, with what, and that nothing waits for them."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from session_actor import BranchUnknown, SessionService, Usage

from ..compaction.compacted import MODELS, compact, converse
from .conftest import Calls, idle, opened, turns, until

PHASES = ("created", "activated", "passivated", "ended")


def every(calls: Calls):
    return [calls.hook(phase, phase) for phase in PHASES]


async def test_a_session_is_created_activated_and_passivated_by_closing_and_not_ended(calls, store):
    async with opened(store, *every(calls)) as service:
        session = await service.session("user-42", create=True, metadata={"plan": "gold"})
        await session.push("hello", "hi")
    assert calls.names == ["created", "activated", "passivated"]
    created, activated, passivated = calls.contexts
    assert (created.phase, created.reason, created.attempt) == ("created", "", 1)
    assert created.view.metadata == {"plan": "gold"}
    assert activated.reason == "created"
    assert passivated.reason == "closed"
    assert [frame.user_input for frame in await passivated.view.stack()] == ["hello"]


async def test_a_session_that_is_loaded_again_is_activated_alone(calls, store):
    async with opened(store) as service:
        await service.session("user-42", create=True)
    async with opened(store, *every(calls)) as service:
        await service.session("user-42", create=True)
        await until(lambda: calls.names)
        assert [(ctx.phase, ctx.reason) for ctx in calls.contexts] == [("activated", "loaded")]


async def test_a_session_that_restarts_after_a_crash_is_not_activated_again(calls, store):
    async with opened(store, *every(calls)) as service:
        session = await service.session("user-42", create=True)
        await until(lambda: len(calls.names) == 2)
        session.ref.kill()
        await turns()
        await session.push("on", "and on")
        await turns()
        assert calls.names == ["created", "activated"]


async def test_an_idle_session_is_passivated_and_activated_by_its_next_message(calls, store):
    async with opened(store, *every(calls), idle_timeout_s=0.02) as service:
        session = await service.session("user-42", create=True)
        await until(lambda: "passivated" in calls.names)
        assert calls.contexts[-1].reason == "unloaded"
        await session.push("back", "again")
        await until(lambda: calls.names.count("activated") == 2)


async def test_a_session_that_has_ended_is_read_without_hooks(calls, store):
    async with opened(store, *every(calls)) as service:
        await service.session("user-42", create=True)
        await service.end("user-42", "paid")
        await until(lambda: "ended" in calls.names)
        assert calls.contexts[-1].reason == calls.contexts[-1].view.ended == "paid"
    count = len(calls.names)
    async with opened(store, *every(calls)) as service:
        session = await service.session("user-42")
        assert await session.ended() == "paid"
        await service.end("user-42", "again")
        await turns()
    assert len(calls.names) == count


async def test_a_copied_session_is_created_too(calls, store):
    async with opened(store, *every(calls)) as service:
        await service.session("user-42", create=True)
        await service.fork("user-42", "eval-1")
        await until(lambda: len(calls.names) == 4)
        assert sorted({ctx.session_id for ctx in calls.contexts if ctx.phase == "created"}) == ["eval-1", "user-42"]


async def test_a_hook_that_hangs_holds_up_no_push_and_no_other_hook_after_its_time(calls, store, clock):
    calls.gates["stuck"] = asyncio.Event()
    hooks = calls.hook("stuck", "created", timeout_s=7), calls.hook("next", "created")
    async with opened(store, *hooks, clock=clock) as service:
        session = await service.session("user-42", create=True)
        await session.push("hello", "hi")
        await until(lambda: calls.names)
        await session.push("and", "so on")
        await turns()
        assert calls.names == ["stuck"]
        with capture_logs() as logs:
            clock.advance(7)
            await until(lambda: len(calls.names) == 2)
            await turns()
        assert [(line["event"], line["hook"], line["error"]) for line in logs] == [("hook_failed", "stuck", "HookLate")]


async def test_what_a_hook_raises_is_told_by_its_type_and_stops_nobody(calls, store):
    calls.fails["bad"] = -1
    async with opened(store, calls.hook("bad", "created"), calls.hook("good", "created")) as service:
        with capture_logs() as logs:
            await service.session("user-42", create=True)
            await until(lambda: len(calls.names) == 2)
            await turns()
        assert calls.names == ["bad", "good"]
        assert [(line["hook"], line["error"]) for line in logs] == [("bad", "ValueError")]
        assert "canary" not in str(logs)


async def test_a_hook_that_is_no_async_function_fails_and_is_told(store):
    from session_actor import Hook

    async with opened(store, Hook("plain", lambda ctx: None, "created")) as service:
        with capture_logs() as logs:
            await service.session("user-42", create=True)
            await until(lambda: logs)
        assert logs[0]["error"] == "HookNotAsync"


async def test_hooks_that_are_not_mandatory_are_called_once_whatever_happens(calls, store):
    calls.fails["ended"] = 1
    async with opened(store, calls.hook("ended")) as service:
        await service.session("user-42", create=True)
        await service.end("user-42")
        await until(lambda: calls.names)
        assert service.health().hooks.pending == 0
    async with opened(store, calls.hook("ended")):
        await turns()
    assert calls.names == ["ended"]


async def test_a_compaction_is_between_the_hooks_before_and_after_it(calls, store):
    hooks = calls.hook("after", "after_compaction"), calls.hook("before", "before_compaction")
    async with opened(store, *hooks, models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await converse(session)
        await compact(session)
        await until(lambda: len(calls.names) == 2)
        before, after = calls.contexts
        assert calls.names == ["before", "after"]
        assert after.view.seq == before.view.seq + 1
        assert before.view.head == after.view.head == await session.head()
        assert before.key != after.key


async def test_hooks_of_a_change_at_written_leave_when_that_is_reached(calls, tmp_path):
    seen: list[int] = []

    async with opened(tmp_path / "store", calls.hook("ended"), durability="synced") as service:
        session = await service.session("user-42", create=True)
        hook = service._people().hooks._hooks["ended"][0]
        plain = hook.fn

        async def look(ctx):
            seen.append(session.durable_seq["synced"])
            await plain(ctx)

        object.__setattr__(hook, "fn", look)
        await service.end("user-42")
        await until(lambda: calls.names)
        assert seen == [calls.contexts[0].view.seq]


async def test_a_view_is_a_value(calls, store):
    async with opened(store, calls.hook("ended")) as service:
        session = await service.session("user-42", create=True, metadata=["a"])
        await session.add_user("hello")
        await session.add_assistant("hi", usage=Usage(input_tokens=5))
        await session.checkpoint("here")
        await session.fork(1, user_input="or else", branch="idea")
        await service.end("user-42")
        await until(lambda: calls.names)
        view = calls.contexts[0].view
        assert (view.branch, view.head, view.branches) == ("idea", 3, {"main": 2, "idea": 3})
        assert view.checkpoints == {"here": 2}
        assert view.usage.input_tokens == 5
        assert view.created_at == await session.created_at()
        assert [frame.id for frame in await view.stack("main")] == [1, 2]
        with pytest.raises(BranchUnknown):
            await view.stack("nowhere")
        with pytest.raises(AttributeError):
            view.head = 1
        with pytest.raises(TypeError):
            view.branches["main"] = 7
        view.metadata.append("b")
        assert view.metadata == ["a"]
        assert "hello" not in repr(view) + repr(calls.contexts[0])


async def test_a_service_without_hooks_is_as_ever_and_keeps_no_book(store):
    async with opened(store) as service:
        await service.session("user-42", create=True)
        await service.end("user-42")
        assert [info.id async for info in service._store.sessions()] == ["user-42"]
        assert service.hooks.pending() == service.hooks.dead_letters() == []


async def test_a_closed_service_has_no_hooks_to_ask_for(store):
    from session_actor import ServiceClosed

    service = SessionService.open(store)
    with pytest.raises(ServiceClosed):
        _ = service.hooks


async def test_hooks_in_mind_do_not_outlive_the_service(calls, store):
    async with opened(store, *every(calls)) as service:
        await service.session("user-42", create=True)
        await service.end("user-42")
        await idle(service)
    assert asyncio.all_tasks() == {asyncio.current_task()}
