"""Inline dispatch: each bar, and that nothing else can be observed."""

import asyncio
import threading
from typing import Any

import pytest

from session_actor.supervisors import (
    AsyncioOnly,
    DynamicSupervisor,
    PendingReply,
    ServerCrashed,
    Supervisor,
    TraceEvent,
    WrongLoop,
    get_state,
    monitor,
    resume,
    statistics,
    suspend,
    trace,
)

from .support import (
    AT_ONCE,
    WHO,
    Add,
    Crash,
    Get,
    Hold,
    Life,
    No,
    Note,
    Refuse,
    Run,
    RunAsync,
    Server,
    idle,
    turns,
)


class Subclassed(Add, frozen=True):
    """Has no handler of its own."""


async def test_an_idle_server_answers_in_the_callers_task_without_suspending(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        tasks: list[Any] = []
        assert ref.dispatch(Add(3)) == 3
        assert ref.dispatch(Run(lambda _: tasks.append(asyncio.current_task()))) is None
        assert tasks == [asyncio.current_task()]


async def test_before_its_init_is_through_a_server_queues(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = root.spawn(life.spec())
        pending = ref.dispatch(Add())
        assert isinstance(pending, PendingReply)
        assert await pending.wait() == 1


async def test_a_busy_server_queues(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        held = ref.dispatch(Hold())
        await life.held.wait()
        pending = ref.dispatch(Get())
        assert isinstance(pending, PendingReply)
        life.gate.set()
        assert (await held.wait(), await pending.wait()) == (1, 1)


async def test_behind_a_waiting_message_a_call_queues_so_that_order_holds(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        ref.cast(Note(1))
        pending = ref.dispatch(Add(2))
        assert isinstance(pending, PendingReply)
        await pending.wait()
        assert life.log == [1, 2]


async def test_an_async_handler_is_never_run_inline(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        pending = ref.dispatch(RunAsync(lambda _: asyncio.sleep(0, "slept")))
        assert isinstance(pending, PendingReply)
        assert await pending.wait() == "slept"


async def test_a_suspended_server_queues(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        await suspend(ref)
        pending = ref.dispatch(Add())
        assert isinstance(pending, PendingReply)
        await turns()
        assert life.log == []
        await resume(ref)
        assert await pending.wait() == 1


async def test_a_server_in_its_backoff_queues_and_answers_after_the_restart(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = await idle(root.child("server"))
        with pytest.raises(ServerCrashed):
            ref.dispatch(Crash())
        await turns()
        assert ref.phase == "backoff"
        pending = ref.dispatch(Add(), None)
        assert isinstance(pending, PendingReply)
        clock.advance(1.0)
        assert await pending.wait() == 1


async def test_a_draining_server_refuses_new_calls_and_runs_the_old_ones(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        ref.cast(Note(1))
        ref.cast(Note(2))
        stopping = asyncio.create_task(ref.stop(drain=True))
        await turns(1)
        assert not ref.alive
        await stopping
        assert life.log == [1, 2]


async def test_a_message_of_a_subclass_queues_and_is_answered(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        pending = ref.dispatch(Subclassed(4))
        assert isinstance(pending, PendingReply)
        assert await pending.wait() == 4


async def test_a_traced_server_queues_and_shows_the_same_steps_for_every_call(life: Life) -> None:
    steps: list[TraceEvent] = []
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        trace(ref, steps.append)
        assert await ref.call(Add()) == 1
        with pytest.raises(No):
            await ref.call(Refuse())
        trace(ref, None)
        await turns()
        await ref.call(Add())
    assert [(step.kind, step.message_type) for step in steps] == [
        ("received", Add),
        ("handled", Add),
        ("received", Refuse),
        ("refused", Refuse),
    ]


async def test_another_thread_is_refused_by_name(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        errors: list[BaseException] = []

        def outside() -> None:
            for send in (ref.dispatch, ref.cast, lambda _: ref.kill(), lambda _: root.child("server").slot.admit()):
                try:
                    send(Add())
                except WrongLoop as error:
                    errors.append(error)

        thread = threading.Thread(target=outside)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert len(errors) == 4
        assert await ref.call(Get()) == 0


def test_a_loop_that_goes_on_in_another_thread_takes_everything_there_and_nothing_elsewhere() -> None:
    async def build() -> tuple[Supervisor, Any]:
        root = Supervisor([Life().spec()])
        await root.start()
        return root, await idle(root.child("server"))

    async def use() -> list[Any]:
        ref.cast(Note())
        queued = ref.dispatch(Add(10))
        return [type(queued), await queued.wait(), ref.dispatch(Add(100)), await get_state(ref) is not None]

    loop = asyncio.new_event_loop()
    root, ref = loop.run_until_complete(build())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        given: Any = asyncio.run_coroutine_threadsafe(use(), loop).result(10)
        assert given == [PendingReply, 11, 111, True]
        for send in (ref.dispatch, ref.cast, monitor):
            with pytest.raises(WrongLoop):
                send(ref)
        asyncio.run_coroutine_threadsafe(root.stop(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_another_loop_of_the_same_thread_is_refused_by_name() -> None:
    refs: list[Any] = []
    roots: list[Any] = []

    async def build() -> None:
        roots.append(Supervisor([Life().spec()]))
        await roots[0].start()
        refs.append(await idle(roots[0].child("server")))

    async def outside() -> None:
        with pytest.raises(WrongLoop):
            refs[0].dispatch(Add())
        with pytest.raises(WrongLoop):
            refs[0].cast(Note())
        with pytest.raises(WrongLoop):
            await roots[0].stop()

    first = asyncio.new_event_loop()
    first.run_until_complete(build())
    asyncio.run(outside())
    first.run_until_complete(roots[0].stop())
    first.close()


def test_without_asyncio_the_start_is_refused_by_name() -> None:
    starting = Supervisor().start()
    with pytest.raises(AsyncioOnly, match="trio"):
        starting.send(None)


@pytest.mark.parametrize("way", ["inline", "queued", "async"])
async def test_a_handler_sees_a_copy_of_its_callers_context(life: Life, way: str) -> None:
    def look(_: Any) -> str:
        before = WHO.get()
        WHO.set("the handler")
        return before

    async def look_async(_: Any) -> str:
        await asyncio.sleep(0)
        before = WHO.get()
        WHO.set("the handler")
        await asyncio.sleep(0)
        assert WHO.get() == "the handler"
        return before

    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        WHO.set("the caller")
        if way == "queued":
            ref.cast(Note())
        message = RunAsync(look_async) if way == "async" else Run(look)
        assert await ref.call(message) == "the caller"
        assert WHO.get() == "the caller"


@pytest.mark.parametrize("queued", [False, True])
async def test_a_crash_is_the_same_for_all_who_look_inline_and_queued(life: Life, queued: bool) -> None:
    events: list[Any] = []
    async with Supervisor([life.spec()], on_event=events.append, backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        watched = monitor(ref)
        await ref.call(Add(5))
        events.clear()
        if queued:
            ref.cast(Note(0))
        with pytest.raises(ServerCrashed, match="Boom"):
            await ref.call(Crash())
        assert (await watched).reason.kind == "crashed"
        await ref.started()
        assert [event.kind for event in events] == ["crashed", "restarting", "started"]
        assert [reason.kind for reason in life.ends] == ["crashed"]
        assert statistics(ref).crashes == statistics(ref).restarts == 1
        assert await ref.call(Get()) == 0


@pytest.mark.parametrize("queued", [False, True])
async def test_the_figures_are_the_same_inline_and_queued(life: Life, queued: bool) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        for _ in range(3):
            if queued:
                ref.slot.wake()
            await ref.call(Add())
            await turns()
        with pytest.raises(No):
            await ref.call(Refuse())
        figures = statistics(ref)
        assert (figures.handled, figures.dropped, figures.crashes, figures.mailbox_length) == (4, 0, 0, 0)
        assert figures.handler_time_s > 0


async def test_what_an_inline_handler_casts_to_its_own_server_runs_next(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        ref.dispatch(Run(lambda server: server.ref.cast(Note(1))))
        pending = ref.dispatch(Add(2))
        assert isinstance(pending, PendingReply)
        await pending.wait()
        assert life.log == [1, 2]


async def test_a_server_that_stops_itself_inline_still_answers_and_ends(life: Life) -> None:
    async with Supervisor([life.spec(restart="temporary")]) as root:
        ref = await idle(root.child("server"))
        assert ref.dispatch(Run(lambda server: server.stop_self() or "bye")) == "bye"
        await turns()
        assert ref.phase == "ended"
        assert [reason.kind for reason in life.ends] == ["normal"]


async def test_an_inline_call_may_call_another_server_inline(life: Life) -> None:
    other = Life()
    async with Supervisor([life.spec(1), other.spec(2)]) as root:
        first, second = await idle(root.child(1)), await idle(root.child(2))
        assert first.dispatch(Run(lambda _: second.dispatch(Add(7)))) == 7


def test_the_sync_handlers_of_a_class_are_those_that_are_not_async() -> None:
    assert Add in Server.sync_handlers()
    assert Hold not in Server.sync_handlers()
