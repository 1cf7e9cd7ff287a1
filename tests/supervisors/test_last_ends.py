"""The last end of a slot, also of one without a task: it is told once, to all, and its id and its name are free."""

import asyncio
import gc
import weakref
from typing import Any, Literal

import pytest

from session_actor.supervisors import (
    Backoff,
    ChildSpec,
    Down,
    DynamicSupervisor,
    Event,
    Exit,
    GenServer,
    Intensity,
    Registry,
    ServerCrashed,
    Supervisor,
    handles,
    monitor,
)

from .support import AT_ONCE, Add, Boom, Crash, Hold, Life, Run, RunAsync, idle, turns, until

SLOWLY = Backoff(initial_s=3600.0, max_s=3600.0)


async def crash(ref: Any) -> None:
    with pytest.raises(ServerCrashed):
        await ref.call(Crash())


@pytest.mark.parametrize("how", ["stop", "terminate", "close"])
@pytest.mark.parametrize("where", ["backoff", "quarantined"])
async def test_who_watches_a_server_that_ends_between_two_lives_hears_of_it(life: Life, where: str, how: str) -> None:
    limit = Intensity(max_restarts=0 if where == "quarantined" else 3)
    names = Registry()
    async with DynamicSupervisor(on_exhausted="quarantine", intensity=limit, backoff=SLOWLY) as root:
        ref = await idle(root.spawn(life.spec()))
        follower = await idle(root.spawn(life.spec("follower", restart="temporary")))
        names.register("name", ref)
        watch = monitor(ref)
        await crash(ref)
        assert (await watch).restarting
        assert ref.phase == where
        await follower.call(Run(lambda server: server.link(ref)))
        if how == "stop":
            await ref.stop()
        elif how == "terminate":
            await root.terminate_child("server")
        else:
            await root.stop()
        down = await asyncio.wait_for(watch, 5)
        assert (down.reason, down.restarting) == (ref.reason, False)
        assert [late async for late in watch] == []
        assert names.names() == ()
        await until(lambda: follower.phase == "ended")


async def test_who_watches_a_server_in_backoff_hears_that_its_supervisor_gave_up(life: Life) -> None:
    root = DynamicSupervisor(backoff=SLOWLY)
    await root.start()
    waits = await idle(root.spawn(life.spec("waits")))
    other = await idle(root.spawn(life.spec("other", intensity=Intensity(max_restarts=0))))
    watch = monitor(waits)
    await crash(waits)
    assert (await watch).restarting
    await crash(other)
    assert not (await asyncio.wait_for(watch, 5)).restarting


async def test_a_monitor_hears_of_the_last_end_once(life: Life) -> None:
    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = await idle(root.spawn(life.spec()))
        watch = monitor(ref)
        await crash(ref)
        await idle(ref)
        await ref.stop()
        assert [down.restarting async for down in watch] == [True, False]


@pytest.mark.parametrize("how", ["ended", "cancelled"])
async def test_a_server_that_monitors_many_short_lived_ones_keeps_nothing_of_them(life: Life, how: str) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))

        async def watch_many(server: Any) -> list[Any]:
            gone = []
            for number in range(20):
                child = await root.start_child(life.spec(number, restart="temporary"))
                watch = server.monitor(child)
                if how == "cancelled":
                    watch.cancel()
                await child.stop()
                gone.append(weakref.ref(child.slot.ref))
            return gone

        gone = await ref.call(RunAsync(watch_many))
        await turns(50)
        assert not ref.slot.owned
        gc.collect()
        assert [one for one in gone if one() is not None] == []


async def test_a_monitor_of_a_server_that_restarts_goes_on_and_ends_with_its_owner(life: Life) -> None:
    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        watched = await idle(root.spawn(life.spec("watched")))
        ref = await idle(root.spawn(life.spec()))
        await ref.call(Run(lambda server: server.monitor(watched) and None))
        await crash(watched)
        await idle(watched)
        assert ref.slot.owned
        assert watched.slot.watchers
        await ref.stop()
        assert not watched.slot.watchers


@pytest.mark.parametrize("kind", ["static", "dynamic"])
async def test_while_a_tree_closes_no_child_in_backoff_is_started(life: Life, clock: Any, kind: str) -> None:
    class Slow(GenServer):
        async def terminate(self, reason: Any) -> None:
            life.held.set()
            await life.gate.wait()

    backoff = Backoff(initial_s=1.0, jitter=0.0)
    specs = [life.spec(), ChildSpec("slow", start=Slow, shutdown_s=None)]
    if kind == "static":
        root: Supervisor | DynamicSupervisor = Supervisor(specs, backoff=backoff, clock=clock)
        await root.start()
    else:
        root = DynamicSupervisor(backoff=backoff, clock=clock)
        await root.start()
        for spec in specs:
            await root.start_child(spec)
    await idle(root.child("slow"))
    await crash(await idle(root.child("server")))
    await until(lambda: root.child("server").phase == "backoff")
    closing = asyncio.create_task(root.stop())
    await life.held.wait()
    clock.advance(2.0)
    await turns()
    life.gate.set()
    await closing
    assert life.starts == 1


@pytest.mark.parametrize("how", ["stop", "crash"])
async def test_a_hook_that_hears_of_the_last_end_may_use_the_id_again(life: Life, how: str) -> None:
    seen: list[str] = []

    def hook(event: Event) -> None:
        seen.append(event.kind)
        if event.kind == "stopped" and seen.count("stopped") == 1:
            root.spawn(life.spec())

    async with DynamicSupervisor(on_event=hook, max_children=1) as root:
        ref = await idle(root.spawn(life.spec(restart="temporary")))
        if how == "stop":
            await ref.stop()
        else:
            await crash(ref)
        await until(lambda: ref.phase == "ended")
        again = await idle(root.child("server"))
        assert again is not ref
        assert await again.call(Add(2)) == 2
        assert root.on_event is hook


async def test_a_bare_task_that_is_stopped_before_its_first_step_was_stopped() -> None:
    async def never() -> None:
        raise Boom

    async with DynamicSupervisor() as root:
        ref = root.spawn(ChildSpec("task", task=never))
        watch = monitor(ref)
        await ref.stop()
        assert (await watch).reason.kind == "stopped"
        ref = root.spawn(ChildSpec("task", task=never))
        watch = monitor(ref)
        ref.kill()
        assert (await watch).reason.kind == "killed"


async def test_a_bare_task_that_somebody_cancels_before_its_first_step_was_killed() -> None:
    async with DynamicSupervisor() as root:
        ref = root.spawn(ChildSpec("task", task=lambda: asyncio.sleep(3600)))
        watch = monitor(ref)
        assert ref.slot.task is not None
        ref.slot.task.cancel()
        down = await watch
        assert (down.reason.kind, down.restarting) == ("killed", False)


@pytest.mark.parametrize("strategy", ["one_for_all", "rest_for_one"])
async def test_a_bare_task_whose_group_restarts_before_its_first_step_is_started_with_it(
    life: Life, strategy: Literal["one_for_all", "rest_for_one"]
) -> None:
    begun: list[int] = []

    async def work() -> None:
        begun.append(life.starts)
        await asyncio.sleep(3600)

    async with Supervisor([life.spec()], strategy=strategy, backoff=AT_ONCE) as root:
        server = await idle(root.child("server"))
        await crash(server)
        await until(lambda: server.phase == "backoff")  # in the next turn the supervisor stops the group
        ref = await root.start_child(ChildSpec("task", task=work))
        await until(lambda: bool(begun))
        assert (begun, ref.phase, root.child("task")) == ([2], "running", ref)


async def test_a_link_that_init_makes_is_trapped_as_any_other(life: Life) -> None:
    heard: list[Any] = []

    class Trapping(GenServer):
        trap_exit = True

        async def init(self) -> None:
            self.link(ended)
            self.link(lives)
            lives.kill()
            await turns()

        async def handle_info(self, message: Any) -> None:
            heard.append(message)

        @handles(Hold)
        def ping(self, message: Hold) -> int:
            return 1

    async with DynamicSupervisor() as root:
        ended = await idle(root.spawn(life.spec("ended", restart="temporary")))
        lives = await idle(root.spawn(life.spec("lives", restart="temporary")))
        ended.kill()
        await until(lambda: ended.phase == "ended")
        ref = await root.start_child(ChildSpec("trapping", start=Trapping, restart="temporary"))
        assert await ref.call(Hold()) == 1
        assert [(type(one), one.ref, one.reason.kind) for one in heard] == [
            (Exit, ended, "killed"),
            (Exit, lives, "killed"),
        ]
        assert Down not in map(type, heard)
