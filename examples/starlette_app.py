"""A small chat server: one conversation a user, kept on disk, whatever happens to the server or to the client.

    pip install session-actor starlette uvicorn
    uvicorn --factory starlette_app:create_app
    curl -N -d 'Is the tide in?' -H 'Idempotency-Key: 1' localhost:8000/chat/mira
    curl localhost:8000/chat/mira

It streams the answer. A client that leaves in the middle loses nothing: the question is recorded before the model is
asked, and what the model had said by then is recorded as an aborted turn.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from session_actor import SessionActorError, SessionNotFound, SessionService, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from session_actor import Session, Stack, Turn

    Model = Callable[[Stack], AsyncIterator[str]]


async def parrot(stack: Stack) -> AsyncIterator[str]:
    """Stand in for a model: says the last question again, a word at a time. Call your provider here."""
    for word in text_of(stack.turns()[-1]).split():
        yield f"{word} "


def text_of(turn: Turn) -> str:
    """Return what a turn says."""
    return "".join(block.text for block in turn.blocks if isinstance(block, Text))


def create_app(directory: str = "conversations/", model: Model = parrot) -> Starlette:
    """Make the app; `directory` holds the conversations, `model` answers."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with SessionService.open(directory, durability="written") as service:
            app.state.service = service
            app.state.model = model
            yield

    routes = [Route("/chat/{user}", chat, methods=["POST"]), Route("/chat/{user}", history, methods=["GET"])]
    handlers = {SessionNotFound: not_found, SessionActorError: unavailable}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


async def chat(request: Request) -> Response:
    """Take a question as the request's body and stream the answer; a retry sends the same Idempotency-Key."""
    session = await request.app.state.service.session(request.path_params["user"], create=True)
    question = (await request.body()).decode()
    answer = answers(session, question, request.headers.get("Idempotency-Key"), request.app.state.model)
    return StreamingResponse(answer, media_type="text/plain; charset=utf-8")


async def answers(session: Session, question: str, key: str | None, model: Model) -> AsyncIterator[str]:
    """Record the question, ask the model, and record what it said, even when the client leaves in the middle."""
    async with session.exchange(wait_s=30.0):
        asked = await session.add_user(question, key=key)
        stack = await session.stack()
        if stack[-1].id != asked.id:  # a retry: it is recorded already, and answered
            yield "".join(text_of(turn) for frame in stack if frame.parent == asked.id for turn in frame.turns)
            return
        said: list[str] = []
        stop_reason = "aborted"
        try:
            async for word in model(stack):
                said.append(word)
                yield word
            stop_reason = "end_turn"
        finally:
            # A request that is cancelled comes here, too: a change is made before its await can be cancelled.
            await session.add_assistant("".join(said), stop_reason=stop_reason)


async def history(request: Request) -> Response:
    """List the conversation of a user."""
    session = await request.app.state.service.session(request.path_params["user"])
    turns = (await session.stack()).turns()
    return JSONResponse([{"role": turn.role, "text": text_of(turn), "stop": turn.stop_reason} for turn in turns])


async def not_found(_request: Request, error: Exception) -> Response:
    """Answer for a user who has no conversation."""
    return JSONResponse({"error": str(error)}, status_code=404)


async def unavailable(_request: Request, error: Exception) -> Response:
    """Answer for a conversation that cannot take the change now; nothing was changed, or the key makes a retry safe."""
    return JSONResponse({"error": str(error)}, status_code=503)
