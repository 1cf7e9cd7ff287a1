"""The handler of errors in the examples, by real HTTP: no error of the library is answered with 500."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import session_actor
from session_actor import MemoryStore, Push, Session, SessionActorError, SessionBusy, SessionService, StoreDegraded
from session_actor.supervisors import resume, suspend

from .loading import load_example, serving

http_answers = load_example("http_answers")
KINDS = [
    kind
    for name in session_actor.__all__
    if isinstance(kind := getattr(session_actor, name), type) and issubclass(kind, SessionActorError)
]


class Failing(MemoryStore):
    """Its disk takes nothing any more, once that is said."""

    def admit(self, level):
        if not self.admitted:
            raise StoreDegraded("the disk takes nothing")
        super().admit(level)


async def busy(service: SessionService, session: Session) -> None:
    async with session.exchange():
        await session.exchange().__aenter__()


async def grouped(service: SessionService, session: Session) -> None:
    with http_answers.ungrouped():
        async with asyncio.TaskGroup() as outer, asyncio.TaskGroup() as group:
            outer.create_task(asyncio.sleep(0))
            for call in ("a", "b"):
                group.create_task(session.add_tool_result(call, "no such call"))


async def late(service: SessionService, session: Session) -> None:
    await suspend(session.ref)
    try:
        await session.push("hello", "hi", timeout_s=0.01)
    finally:
        await resume(session.ref)


async def crowded(service: SessionService, session: Session) -> None:
    await suspend(session.ref)
    try:
        for _ in range(3):
            session.cast(Push("hello", "hi"))
    finally:
        await resume(session.ref)


async def degraded(service: SessionService, session: Session) -> None:
    service._store.admitted = ()
    try:
        await session.push("hello", "hi")
    finally:
        service._store.admitted = ("async",)


async def missing(service: SessionService, session: Session) -> None:
    await service.session("nobody")


async def ended(service: SessionService, session: Session) -> None:
    await service.end(session.id)
    await session.push("hello", "hi")


async def deleted(service: SessionService, session: Session) -> None:
    await service.delete(session.id)
    await session.stack()


async def closed(service: SessionService, session: Session) -> None:
    await service.close()
    await session.stack()


Situation = Callable[[SessionService, Session], Awaitable[None]]
SITUATIONS: dict[Situation, tuple[int, str | None]] = {
    busy: (409, None),
    grouped: (404, None),
    late: (504, None),
    crowded: (503, "1"),
    degraded: (503, "1"),
    missing: (404, None),
    ended: (410, None),
    deleted: (404, None),
    closed: (503, "1"),
}


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
async def test_what_a_session_refuses_has_its_status_and_says_whether_to_come_again(situation: Situation):
    async with SessionService.open(Failing(), mailbox_limit=1) as service:
        session = await service.session("user-42", create=True)

        async def do(_: Request) -> JSONResponse:
            await situation(service, session)
            return JSONResponse({})

        app = Starlette(routes=[Route("/", do)], exception_handlers={SessionActorError: http_answers.failed})
        async with serving(app) as client:
            reply = await client.get("/")
    assert (reply.status_code, reply.headers.get("Retry-After")) == SITUATIONS[situation]
    assert reply.json()["error"]


def test_only_a_group_that_holds_nothing_but_errors_of_the_library_is_undone():
    busy, other = SessionBusy("user-42"), ValueError("else")
    for raised, wanted in (
        (ExceptionGroup("", [ExceptionGroup("", [busy]), SessionBusy("b")]), busy),
        (ExceptionGroup("", [busy, other]), None),
        (ExceptionGroup("", [other]), None),
        (BaseExceptionGroup("", [busy, KeyboardInterrupt()]), None),
        (busy, busy),
        (other, other),
    ):
        with pytest.raises(BaseException) as caught, http_answers.ungrouped():  # noqa: PT011 - compared below
            raise raised
        assert caught.value is (wanted or raised)
        assert traceback.format_exception(caught.value)


async def test_no_error_of_the_library_is_answered_with_500(tmp_path: Path):
    async def fail(request: Request) -> JSONResponse:
        kind = getattr(session_actor, request.path_params["kind"])
        error = kind.__new__(kind)
        error.args = ("why",)
        raise error

    app = Starlette(routes=[Route("/{kind}", fail)], exception_handlers={SessionActorError: http_answers.failed})
    async with serving(app) as client:
        replies = {kind: await client.get(f"/{kind.__name__}") for kind in KINDS}
    assert len(replies) > 60
    assert {kind: reply.status_code for kind, reply in replies.items()} == {
        kind: http_answers.status_of(kind) for kind in KINDS
    }
    soon = {kind for kind, reply in replies.items() if "Retry-After" in reply.headers}
    assert soon == {kind for kind in KINDS if issubclass(kind, http_answers.SOON)}
    assert {replies[kind].status_code for kind in soon} == {503}
    assert all(reply.json() for reply in replies.values())
