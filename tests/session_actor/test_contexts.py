"""A session that stays loaded keeps nothing of the request that loaded it; its end is told in no request's context."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import ContextVar

from session_actor import Hook, SessionService, telemetry

from .test_passivation import until


class Body:
    """What a request holds on to."""


BODY: ContextVar[Body] = ContextVar("body")
WHO: ContextVar[str] = ContextVar("who", default="nobody")


async def test_a_session_keeps_no_context_of_the_request_that_loaded_it_and_ends_in_none(tmp_path):
    told = []
    hooked = []

    async def hook(_) -> None:
        hooked.append(WHO.get())

    async def request(service):
        body = Body()
        BODY.set(body)
        WHO.set("request")
        session = await service.session(
            "user-42", create=True, timeout_s=None
        )  # a cancelled timer stays until it is due
        await session.push("q", "a", durability="synced", timeout_s=None)
        return weakref.ref(body)

    detach = telemetry.attach(("session_actor",), lambda name, _, __: told.append((name[1:], WHO.get())))
    try:
        async with SessionService.open(
            tmp_path / "store", idle_timeout_s=0.2, hooks=[Hook("hook", hook, "passivated")]
        ) as service:
            body = await asyncio.create_task(request(service))
            await asyncio.sleep(0)
            gc.collect()
            assert (body(), service.health().live) == (None, 1)
            await until(lambda: hooked)
    finally:
        detach()
    told_as = dict(told)
    assert told_as["session", "activation", "stop"] == "request"
    assert told_as["session", "passivated"] == "nobody"
    assert hooked == ["nobody"]
