"""What a handler goes on with after it belongs to its incarnation: it is done before any other message, or never."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from session_actor.supervisors import (
    Backoff,
    Continue,
    DynamicSupervisor,
    ServerCrashed,
    ServerKilled,
    WrongLoop,
    change_code,
    handles,
    statistics,
)

from .support import AT_ONCE, Add, Boom, ChildSpec, Get, Hold, Life, Note, Run, RunAsync, Server, idle, turns, until


class Going(Server):
    """Notes which of its lives goes on with what."""

    def __init__(self, life: Life) -> None:
        super().__init__(life)
        self.number = life.starts + 1

    @handles(Note)
    def note(self, message: Note) -> None:
        self.life.log.append(message.n)
        self.continue_with(-message.n)

    async def handle_continue(self, argument: Any) -> Continue | None:
        self.life.log.append((self.number, argument))
        if argument == "crash":
            raise Boom
        return None


def going(life: Life, **options: Any) -> ChildSpec:
    return ChildSpec("server", start=lambda: Going(life), **options)


@pytest.mark.parametrize("how", ["stop", "close"])
async def test_a_stop_that_drains_lets_each_handler_go_on_before_the_next_message(life: Life, how: str) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(going(life, drain=True)))
        running = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        for n in (1, 2, 3):
            ref.cast(Note(n))
        stopping = asyncio.create_task(ref.stop(drain=True) if how == "stop" else root.stop())
        await until(lambda: ref.phase == "draining")
        life.gate.set()
        assert await running == 1
        await stopping
        assert life.log == ["held", 1, (1, -1), 2, (1, -2), 3, (1, -3)]
        assert [end.kind for end in life.ends] == ["stopped" if how == "stop" else "parent"]
        assert statistics(ref).crashes == 0


async def test_a_stop_during_a_handler_that_goes_on_leaves_its_caller_the_reply(life: Life) -> None:
    async def handler(server: Going) -> str:
        life.held.set()
        await life.gate.wait()
        server.continue_with("never")
        return "reply"

    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(going(life)))
        running = asyncio.create_task(ref.call(RunAsync(handler), timeout_s=None))
        await life.held.wait()
        stopping = asyncio.create_task(ref.stop())
        await until(lambda: ref.phase == "stopping")
        life.gate.set()
        assert await running == "reply"
        await stopping
        assert (life.log, [end.kind for end in life.ends]) == ([], ["stopped"])


@pytest.mark.parametrize("queued", [False, True])
async def test_what_a_handler_that_crashes_wanted_to_go_on_with_is_dropped(life: Life, queued: bool) -> None:
    def crash(server: Going) -> None:
        server.continue_with("crash")
        raise Boom

    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = root.spawn(going(life))
        if not queued:
            await idle(ref)
        with pytest.raises(ServerCrashed):
            await ref.call(Run(crash))
        await idle(ref)
        assert await ref.call(Get()) == 0
        assert (life.log, life.starts, statistics(ref).crashes) == ([], 2, 1)
        assert not ref.slot.owned


async def test_a_server_of_an_earlier_life_goes_on_with_nothing(life: Life) -> None:
    old: list[Any] = []
    async with DynamicSupervisor(backoff=Backoff(initial_s=3600.0)) as root:
        ref = await idle(root.spawn(going(life)))
        await ref.call(Run(old.append))
        ref.kill()
        await until(lambda: ref.phase == "backoff")
        old[0].continue_with("in backoff")
        await ref.stop()
        again = await idle(root.spawn(going(life)))
        old[0]._slot = again.slot  # as if it were of the same place
        old[0].continue_with("in a later life")
        await turns()
        assert (life.log, life.starts) == ([], 2)
        assert not again.slot.owned


async def test_code_that_is_changed_between_a_handler_and_its_going_on_goes_on(life: Life) -> None:
    class Newer(Going):
        async def handle_continue(self, argument: Any) -> Continue | None:
            life.log.append(("newer", argument))
            return None

    async def handler(server: Going) -> None:
        changing.append(asyncio.create_task(change_code(ref, lambda: Newer(life))))
        await turns()
        server.continue_with("job")

    changing: list[asyncio.Task[None]] = []
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(going(life)))
        await ref.call(RunAsync(handler))
        await changing[0]
        await idle(ref)
        assert life.log == [("newer", "job")]


async def test_going_on_belongs_to_the_thread_of_the_server(life: Life) -> None:
    servers: list[Any] = []
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(going(life)))
        await ref.call(Run(servers.append))
        with pytest.raises(WrongLoop):
            await asyncio.to_thread(servers[0].continue_with, "elsewhere")
        assert await ref.call(Add()) == 1


def plainly(method: Callable[..., Any]) -> Any:
    """Decorate without telling that the method is async."""

    def wrapper(self: Any, message: object) -> Any:
        return method(self, message)

    return wrapper


async def test_a_decorated_handler_that_is_killed_before_its_first_step_is_closed_and_never_run(life: Life) -> None:
    class Decorated(Server):
        @handles(Add)
        @plainly
        async def add(self, message: Add) -> int:
            life.log.append("run")
            return 1

    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = await idle(root.spawn(ChildSpec("server", start=lambda: Decorated(life))))
        waiting = ref.dispatch(Add(), None)
        ref.kill()
        with pytest.raises(ServerKilled):
            await waiting.wait()
        await idle(ref)
        assert (life.log, life.starts) == ([], 2)
        assert await ref.call(Add()) == 1
