"""A small chat server: one conversation a user, kept on disk, whatever happens to the server or to the client.

    pip install . starlette uvicorn
    cd examples
    uvicorn --factory starlette_app:create_app
    curl -N -d 'Is the tide in?' -H 'Idempotency-Key: 1' localhost:8000/chat/mira
    curl localhost:8000/chat/mira

It streams the answer. A client that leaves in the middle loses nothing: the question is recorded before the model is
asked, and what the model had said by then is recorded as an aborted turn. A client that sends its request again with
the same Idempotency-Key gets the recorded answer; when there is none, or only a part, the model is asked again. What is
refused is answered as `http_answers.py` says.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from http_answers import failed
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from session_actor import SessionActorError, SessionService

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from session_actor import Frame, Session, Stack

    Model = Callable[[Stack], AsyncIterator[str]]

WAIT_S = 30.0  # how long a question waits for the answer to the one before it


async def parrot(stack: Stack) -> AsyncIterator[str]:
    """Stand in for a model: says the last question again, a word at a time. Call your provider here."""
    for word in stack.turns()[-1].text.split():
        yield f"{word} "


def create_app(directory: str = "conversations/", model: Model = parrot) -> Starlette:
    """Make the app; `directory` holds the conversations, `model` answers."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with SessionService.open(directory, durability="written") as service:
            app.state.service = service
            app.state.model = model
            yield

    routes = [Route("/chat/{user}", chat, methods=["POST"]), Route("/chat/{user}", history, methods=["GET"])]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={SessionActorError: failed})


async def chat(request: Request) -> Response:
    """Take a question as the request's body and stream the answer; a retry sends the same Idempotency-Key.

    Everything that can be refused comes before the response, so that it has a status.
    """
    try:
        question = (await request.body()).decode()
    except UnicodeDecodeError:
        return JSONResponse({"error": "the body must be text in UTF-8"}, status_code=400)
    session = await request.app.state.service.session(request.path_params["user"], create=True)
    async with AsyncExitStack() as held:
        await held.enter_async_context(session.exchange(wait_s=WAIT_S))
        asked = await session.add_user(question, key=request.headers.get("Idempotency-Key"))
        stack = await session.stack()
        answer = recorded_answer(stack, asked)
        if answer is not None:
            return PlainTextResponse(answer)
        if stack.top is None or stack.top.exchange != asked.id:
            error = "the conversation went on without an answer to this question; ask it again with a new key"
            return JSONResponse({"error": error}, status_code=409)
        if stack.top.id != asked.id:  # take off what an attempt that was broken off has left
            await session.pop(stack.top.depth - asked.depth)
            stack = await session.stack()
        said = answers(session, stack, request.app.state.model)
        held.push_async_callback(said.aclose)
        return Answer(said, held.pop_all())


def recorded_answer(stack: Stack, asked: Frame) -> str | None:
    """Return what was answered to the question of this frame; None: nothing, or not to the end."""
    turns = [turn for frame in stack if frame.exchange == asked.id for turn in frame.turns if turn.role == "assistant"]
    if not turns or turns[-1].stop_reason == "aborted":
        return None
    return "".join(turn.text for turn in turns)


async def answers(session: Session, stack: Stack, model: Model) -> AsyncGenerator[str]:
    """Ask the model, and record what it said, even when the client leaves in the middle."""
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


class Answer(StreamingResponse):
    """An answer that is streamed while its exchange is held; leaves it when the stream ends, or never begins."""

    def __init__(self, said: AsyncGenerator[str], held: AsyncExitStack) -> None:
        """`held`: what to leave afterwards."""
        super().__init__(said, media_type="text/plain; charset=utf-8")
        self.held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        async with self.held:
            await super().__call__(scope, receive, send)


async def history(request: Request) -> Response:
    """List the conversation of a user."""
    session = await request.app.state.service.session(request.path_params["user"])
    turns = (await session.stack()).turns()
    return JSONResponse([{"role": turn.role, "text": turn.text, "stop": turn.stop_reason} for turn in turns])
