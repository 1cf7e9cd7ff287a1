"""A circle of waits that exists already, or is just being dissolved, holds up nobody who looks at it."""

import asyncio
from typing import Any

from session_actor.supervisors import ChildSpec, DynamicSupervisor, ServerRef

from .support import Defer, Get, Life, RunAsync, Server, turns


async def test_who_gives_the_reply_that_others_wait_for_in_a_circle_may_call_one_of_them_in_the_same_step() -> None:
    lives = {name: Life() for name in "abc"}
    refs: dict[str, ServerRef] = {}

    def calling(name: str, message: Any) -> RunAsync:
        async def handler(_: Any) -> Any:
            return await refs[name].call(message, timeout_s=None)

        return RunAsync(handler)

    async def solve(_: Any) -> Any:
        lives["c"].deferred[0].reply("given")
        return await refs["b"].call(Get(), timeout_s=None)

    async with DynamicSupervisor() as root:
        for name, life in lives.items():
            spec = ChildSpec(name, start=lambda life=life: Server(life))
            refs[name] = await root.start_child(spec)
        first = asyncio.create_task(refs["b"].call(calling("c", Defer()), timeout_s=None))
        await turns()
        second = asyncio.create_task(refs["c"].call(calling("b", Get()), timeout_s=None))
        await turns()
        assert (await asyncio.wait_for(refs["a"].call(RunAsync(solve), timeout_s=None), 5)) == 0
        assert (await first, await second) == ("given", 0)
