"""A hook cannot change the session that it was called for."""

from __future__ import annotations

import asyncio

import pytest

from session_actor import Hook, InsideHook
from session_actor.commands import End, Push

from .conftest import opened, until

WAYS = {
    "a handle from before": lambda service, session: session.push("x", "y"),
    "a handle from the service": lambda service, session: again(service, lambda same: same.push("x", "y")),
    "another branch": lambda service, session: session.on("main").add_user("x"),
    "a typed message": lambda service, session: session.ref.call(Push("x", "y")),
    "a dispatched message": lambda service, session: dispatched(session),
    "a request": lambda service, session: session.build_request("anthropic", model="m"),
    "pruning": lambda service, session: session.prune(),
    "ending": lambda service, session: service.end("user-42"),
    "an end by message": lambda service, session: session.ref.call(End()),
    "deleting": lambda service, session: service.delete("user-42"),
    "a task": lambda service, session: asyncio.ensure_future(session.push("x", "y")),
    "a task of a task": lambda service, session: asyncio.ensure_future(
        again(service, lambda same: asyncio.ensure_future(same.push("x", "y")))
    ),
    "a thread's coroutine": lambda service, session: asyncio.to_thread(
        from_thread, asyncio.get_running_loop(), session
    ),
}


async def again(service, change):
    return await change(await service.session("user-42"))


async def dispatched(session):
    reply = session.ref.dispatch(Push("x", "y"))
    return await reply.wait()  # it is refused at once, or in a later turn of the loop when this one is spent


def from_thread(loop, session):
    return asyncio.run_coroutine_threadsafe(session.push("x", "y"), loop).result(5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("phase", ["created", "ended"])
async def test_changing_the_own_session_is_refused_whatever_the_way(way, phase, store):
    refused = []

    async def fn(ctx):
        session = await service.session("user-42")
        try:
            await WAYS[way](service, session)
        except InsideHook as error:
            refused.append(error)

    async with opened(store, Hook("own", fn, phase, mandatory=phase == "ended")) as service:
        session = await service.session("user-42", create=True)
        await session.push("hello", "hi")
        if phase == "ended":
            await service.end("user-42")
        await until(lambda: refused and not service._people().hooks.tries.supervisor.which_children())
        assert len(refused) == 1
        assert refused[0].session == "user-42"
        assert await session.head() == 1


async def test_a_task_that_outlives_its_hook_is_still_inside(store):
    tasks = []

    async def fn(ctx):
        async def late():
            await leave.wait()
            await session.push("x", "y")

        tasks.append(asyncio.ensure_future(late()))

    leave = asyncio.Event()
    async with opened(store, Hook("own", fn, "created")) as service:
        session = await service.session("user-42", create=True)
        await until(lambda: tasks and not service._people().hooks.tries.supervisor.which_children())
        leave.set()
        with pytest.raises(InsideHook):
            await tasks[0]


async def test_it_may_be_passivated_meanwhile_and_is_refused_all_the_same(store):
    done = []

    async def fn(ctx):
        try:
            await service.delete("user-42")
        except InsideHook:
            done.append(ctx.phase)

    async with opened(store, Hook("own", fn, "passivated"), idle_timeout_s=0.02) as service:
        await service.session("user-42", create=True)
        await until(lambda: done)
        assert [info.id async for info in service.sessions()] == ["user-42"]


async def test_others_and_reading_are_free_and_whoever_wakes_a_session_leaves_no_mark_on_it(store):
    async def fn(ctx):
        if ctx.session_id == "user-42":
            diary = await service.session("diary", create=True)
            await diary.push("it was made", "indeed")
            session = await service.session("user-42")
            assert await session.head() is None
            done.append(await session.flush("async"))

    done = []
    async with opened(store, Hook("own", fn, "created")) as service:
        session = await service.session("user-42", create=True)
        await until(lambda: done)
        diary = await service.session("diary")
        await diary.push("more", "of it")
        await session.push("hello", "hi")
        assert await diary.head() == 2


async def test_the_same_id_in_another_service_is_another_session(store, tmp_path):
    async def export(ctx):
        session = await archive.session(ctx.session_id, create=True)
        for frame in await ctx.view.stack():
            await session.push(frame.user_input, frame.assistant_output)
        done.append(ctx)

    done = []
    async with (
        opened(tmp_path / "archive", Hook("look", export, "after_compaction")) as archive,
        opened(store, Hook("export", export, "ended", mandatory=True)) as service,
    ):
        session = await service.session("user-42", create=True)
        await session.push("hello", "hi")
        await service.end("user-42")
        await until(lambda: done)
        assert await (await archive.session("user-42")).head() == 1
