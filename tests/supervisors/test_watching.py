"""Monitors, links, the registry, and looking into servers."""

import asyncio
import contextlib
import time
from typing import Any

import pytest

from session_actor.supervisors import (
    AlreadyRegistered,
    Backoff,
    ChildSpec,
    Down,
    DynamicSupervisor,
    Exit,
    GenServer,
    Registry,
    ServerCrashed,
    ServerStopped,
    Supervisor,
    SystemCallFailed,
    WrongLoop,
    change_code,
    get_state,
    handles,
    monitor,
    replace_state,
    resume,
    statistics,
    suspend,
    trace,
)

from .support import AT_ONCE, Add, Boom, Crash, CrashNote, Get, Hold, Life, No, Note, Run, RunAsync, idle, turns, until


@pytest.mark.parametrize(
    ("end", "kind"),
    [("stop", "stopped"), ("self", "normal"), ("kill", "killed"), ("crash", "crashed"), ("parent", "parent")],
)
async def test_a_monitor_hears_every_kind_of_end(life: Life, end: str, kind: str) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec(restart="temporary")))
        watched = monitor(ref)
        if end == "stop":
            await ref.stop()
        elif end == "self":
            await ref.call(Run(lambda server: server.stop_self()))
        elif end == "kill":
            ref.kill()
        elif end == "crash":
            ref.cast(CrashNote())
        else:
            await root.terminate_child("server")
        down = await watched
        assert (down.ref, down.reason.kind, down.restarting) == (ref, kind, False)
        assert [reason.kind for reason in life.ends] == [kind]
        assert (await monitor(ref)).reason.kind == kind


async def test_a_monitor_tells_each_incarnation_and_ends_with_the_last(life: Life) -> None:
    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = await idle(root.spawn(life.spec()))
        watched = monitor(ref)
        ref.cast(CrashNote())
        await until(lambda: life.starts == 2)
        await ref.started()
        await ref.stop()
        downs = [down async for down in watched]
        assert [(down.reason.kind, down.restarting) for down in downs] == [("crashed", True), ("stopped", False)]
        with pytest.raises(LookupError):
            await watched


async def test_monitors_belong_to_the_thread_of_their_server(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        watched = monitor(ref)
        with pytest.raises(WrongLoop):
            await asyncio.to_thread(monitor, ref)
        with pytest.raises(WrongLoop):
            await asyncio.to_thread(lambda: asyncio.run(anext(watched)))
        ref.kill()
        assert (await watched).reason.kind == "killed"


async def test_a_suspension_that_is_refused_leaves_those_of_others(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        await suspend(ref)
        with pytest.raises(WrongLoop):
            await asyncio.to_thread(lambda: asyncio.run(suspend(ref)))
        assert ref.phase == "suspended"
        await resume(ref)


async def test_a_cancelled_monitor_hears_no_more(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        watched = monitor(ref)
        waiting = asyncio.create_task(watched._next())
        await turns()
        watched.cancel()
        with pytest.raises(LookupError):
            await waiting
        await ref.stop()
        assert [down async for down in watched] == []


class Watcher(GenServer):
    trap_exit = True

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @handles(Run)
    def run(self, message: Run) -> Any:
        return message.function(self)

    async def handle_info(self, message: Any) -> None:
        self.seen.append(message)


class Linked(Watcher):
    trap_exit = False


async def test_a_server_gets_down_messages_of_what_it_monitors(life: Life) -> None:
    async with Supervisor([life.spec("watched"), ChildSpec("watcher", start=Watcher)], backoff=AT_ONCE) as root:
        ref, watcher = await idle(root.child("watched")), await idle(root.child("watcher"))
        await watcher.call(Run(lambda server: server.monitor(ref) and None))
        ref.cast(CrashNote())
        await until(lambda: life.starts == 2)
        await turns()
        seen = await watcher.call(Run(lambda server: server.seen))
        assert [(type(down), down.ref, down.reason.kind, down.restarting) for down in seen] == [
            (Down, ref, "crashed", True)
        ]


@pytest.mark.parametrize("ending", ["crash", "kill", "normal", "stop"])
async def test_a_link_passes_every_end_but_normal_on(life: Life, ending: str) -> None:
    async with DynamicSupervisor(backoff=Backoff(initial_s=100)) as root:
        ref = await idle(root.spawn(life.spec("first")))
        linked = await idle(root.spawn(ChildSpec("linked", start=Linked, restart="temporary")))
        await linked.call(Run(lambda server: server.link(ref)))
        if ending == "crash":
            ref.cast(CrashNote())
        elif ending == "kill":
            ref.kill()
        elif ending == "normal":
            await ref.call(Run(lambda server: server.stop_self()))
        else:
            await ref.stop()
        await turns(10)
        reason = linked.reason
        assert (None if reason is None else reason.kind) == {
            "crash": "crashed",
            "kill": "crashed",
            "normal": None,
            "stop": "stopped",
        }[ending]


async def test_a_link_works_in_both_directions_and_a_trapping_server_gets_a_message(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec("server", restart="temporary")))
        watcher = await idle(root.spawn(ChildSpec("watcher", start=Watcher)))
        await watcher.call(Run(lambda server: server.link(ref)))
        ref.cast(CrashNote())
        await until(lambda: ref.phase == "ended")
        await turns()
        seen = await watcher.call(Run(lambda server: server.seen))
        assert [(type(message), message.reason.kind) for message in seen] == [(Exit, "crashed")]
        await watcher.call(Run(lambda server: server.link(ref)))
        await turns()
        assert len(await watcher.call(Run(lambda server: server.seen))) == 2


async def test_a_name_belongs_to_one_living_server_over_its_restarts(life: Life) -> None:
    registry = Registry()
    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref, other = root.spawn(life.spec(1)), root.spawn(Life().spec(2))
        registry.register("name", ref)
        registry.register("name", ref)
        with pytest.raises(AlreadyRegistered) as caught:
            registry.register("name", other)
        assert caught.value.holder is ref
        await ref.started()
        ref.kill()
        await until(lambda: life.starts == 2)
        assert registry.whereis("name") is ref
        await ref.stop()
        assert registry.whereis("name") is None
        registry.register("name", other)
        assert registry.names() == ("name",)
        registry.unregister("name")
        registry.unregister("name")
        assert registry.whereis("name") is None
        with pytest.raises(ServerStopped):
            registry.register("late", ref)


async def test_state_is_read_and_replaced_between_messages_even_while_suspended(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        await ref.call(Add(3))
        await suspend(ref)
        await suspend(ref)
        ref.cast(Note())
        assert (await get_state(ref))["n"] == 3
        assert ref.phase == "suspended"
        await replace_state(ref, lambda state: state | {"n": 10})
        await resume(ref)
        assert await ref.call(Get()) == 11


async def test_code_of_others_that_raises_in_a_system_call_harms_nobody(life: Life) -> None:
    def broken(_: Any) -> Any:
        raise Boom

    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        with pytest.raises(SystemCallFailed, match="Boom"):
            await replace_state(ref, broken)
        assert (await ref.call(Add()), statistics(ref).crashes) == (1, 0)


class Newer(Linked):
    version = 2

    async def code_change(self, old_version: int, state: Any) -> Any:
        if old_version != 1:
            raise Boom
        return {"seen": ["changed", state["n"]]}


async def test_changed_code_takes_the_state_over_or_leaves_the_old_server(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        await ref.call(Add(3))
        await change_code(ref, Newer)
        assert await ref.call(Run(lambda server: server.seen)) == ["changed", 3]
        with pytest.raises(SystemCallFailed):
            await change_code(ref, Newer)
        assert await ref.call(Run(lambda server: server.seen)) == ["changed", 3]


@pytest.mark.parametrize("error", [Boom, asyncio.CancelledError, GeneratorExit])
async def test_a_trace_function_that_raises_is_detached(life: Life, error: type[BaseException]) -> None:
    def raising(_: Any) -> None:
        raise error

    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        trace(ref, raising)
        assert await ref.call(Add()) == 1
        assert ref.slot.trace is None


async def test_the_figures_count_what_happened(life: Life) -> None:
    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        held = asyncio.create_task(ref.call(Hold()))
        await life.held.wait()
        ref.cast(Note())
        ref.cast(Note())
        assert statistics(ref).mailbox_length == 2
        life.gate.set()
        await held
        with pytest.raises(ServerCrashed, match="Boom"):
            await ref.call(Crash())
        assert statistics(ref).crashes == 1
        await until(lambda: life.starts == 2)
        figures = statistics(ref)
        assert (figures.mailbox_length, figures.crashes, figures.restarts) == (0, 1, 1)
        assert figures.handled == 3


@pytest.mark.parametrize("how", ["inline", "queued", "cast", "refused", "async"])
async def test_the_time_in_handlers_is_counted_however_the_message_came(life: Life, how: str) -> None:
    def work(_: Any) -> None:
        end_s = time.perf_counter() + 0.002
        while time.perf_counter() < end_s:
            pass
        if how == "refused":
            raise No

    async def work_async(_: Any) -> None:
        work(_)

    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        begun_s = time.perf_counter()
        for _ in range(3):
            if how == "cast":
                ref.cast(Run(work))
            else:
                await idle(ref)
                if how in {"queued", "refused"}:
                    ref.cast(Note())  # shuts the door: the call waits in the mailbox
                with contextlib.suppress(No):
                    await ref.call(RunAsync(work_async) if how == "async" else Run(work))
        await until(lambda: not statistics(ref).mailbox_length)
        await ref.call(Get())
        assert 0.006 <= statistics(ref).handler_time_s <= time.perf_counter() - begun_s
