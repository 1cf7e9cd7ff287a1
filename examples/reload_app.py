"""A chat server that is edited and reloaded while people talk to it: no conversation breaks off.

    pip install . starlette uvicorn
    cd examples
    uvicorn --factory reload_app:create_app --reload
    curl -d 'Is the tide in?' -H 'Idempotency-Key: 1' localhost:8000/chat/mira
    # now edit ANSWER below, save, and ask again: the conversation goes on, with the new code

At each change uvicorn ends its process and starts another one on the same socket. The old one hands the conversations
over when it goes, the new one waits for them. The same lines roll a server over to a new version: start the new
process, then send SIGTERM to the old one. Several workers cannot have one store at once: see docs/handover.md.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from session_actor import ServiceClosed, SessionService

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.responses import Response

    from session_actor import Stack

WAIT_S = 10.0  # how long a new process waits for the old one to hand over
ANSWER = "You have asked {count} times."


def answer(stack: Stack) -> str:
    """Stand in for a model: it remembers how often it was asked. Call your provider here."""
    return ANSWER.format(count=sum(turn.role == "user" for turn in stack.turns()))


def create_app(directory: str = "conversations/") -> Starlette:
    """Make the app; `directory` holds the conversations."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with SessionService.open(directory, durability="written", lock_timeout_s=WAIT_S) as service:
            app.state.service = service
            yield
            await service.handover("process")  # requests that are still there get HandedOver: they are to come again

    routes = [Route("/chat/{user}", chat, methods=["POST"]), Route("/chat/{user}", history, methods=["GET"])]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={ServiceClosed: handed_over})


async def chat(request: Request) -> Response:
    """Take a question as the request's body and answer it; sent again with its Idempotency-Key, it is recorded once."""
    question = (await request.body()).decode(errors="replace")
    key = request.headers.get("Idempotency-Key")
    session = await request.app.state.service.session(request.path_params["user"], create=True)
    async with session.exchange(wait_s=WAIT_S):
        asked = await session.add_user(question, key=key)
        stack = await session.stack()
        if stack.top is not None and stack.top.id == asked.id:
            await session.add_assistant(answer(stack))
        return PlainTextResponse((await session.stack()).turns()[-1].text)


async def history(request: Request) -> Response:
    """List the conversation of a user."""
    session = await request.app.state.service.session(request.path_params["user"])
    return JSONResponse([[turn.role, turn.text] for turn in (await session.stack()).turns()])


async def handed_over(_request: Request, error: Exception) -> Response:
    """Ask the client to send it again: the next process has the conversations."""
    return JSONResponse({"error": str(error)}, status_code=503, headers={"Retry-After": "1"})
