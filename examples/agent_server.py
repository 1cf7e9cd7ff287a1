"""An agent behind HTTP: it streams its answers, uses tools side by side, and waits for a human where one must decide.

    pip install . starlette uvicorn anthropic openai
    uvicorn --app-dir examples --factory agent_server:create_app    # without API keys: see scripted_provider.py

    curl -N -d 'Compare the gauges.' localhost:8000/chat/mira
    curl -N -d 'Close the lock.' 'localhost:8000/chat/mira?dialect=openai_chat'    # event: held, frame 8, index 0
    curl -N -d 'yes' localhost:8000/calls/mira/8/0    # approves it, and the agent goes on
    curl -N -d '' localhost:8000/chat/mira    # goes on with what was broken off, by a kill for example

Every step is on the disk before the next is taken. Whatever breaks off, the conversation stays valid and goes on.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anthropic
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from session_actor import CallRef, ModelProfile, SessionNotFound, SessionService, Tool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from starlette.requests import Request as HttpRequest

    from session_actor import PendingCall, Request, Session, Summarizer

WAITING, APPROVED = "approval", "approved"  # why a call is held
SYSTEM = "You watch the water of a harbour. Be brief."
MODELS = {"anthropic": "claude-sonnet-5", "openai_chat": "gpt-5"}
# Small windows, to see old messages being summed up. The real ones are known: leave `models` out below.
SMALL = {name: ModelProfile(name=name, window=8_000, max_output=1_000, family="o200k") for name in MODELS.values()}


@dataclass(frozen=True)
class Skill:
    """A tool as the model sees it, and the function behind it."""

    tool: Tool
    run: Callable[..., Awaitable[str]]
    needs_approval: bool = False
    repeatable: bool = True  # whether it may run again when nobody knows how far it came the first time


async def read_gauge(place: str) -> str:
    """Stand in for something slow."""
    return f"{place}: {1 + len(place) / 4:.2f} m"


async def close_lock(place: str) -> str:
    """Stand in for something that must not happen by mistake."""
    return f"The {place} lock is closed."


PLACE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
SKILLS = (
    Skill(Tool("read_gauge", "Read the level of the water at a place.", PLACE), read_gauge),
    Skill(Tool("close_lock", "Close a lock.", PLACE), close_lock, needs_approval=True, repeatable=False),
)


@dataclass(frozen=True)
class Agent:
    """One exchange: asks the model, runs the tools, and tells the client; what was said is the session's to know."""

    session: Session
    dialect: Any
    skills: dict[str, Skill]
    anthropic: anthropic.AsyncAnthropic
    openai: openai.AsyncOpenAI
    tell: Callable[..., None]

    async def answer(self, question: str) -> None:
        """Answer a question; an empty one: go on with what was broken off."""
        if await self.session.instructions() is None:
            await self.session.configure(system=SYSTEM, tools=[skill.tool for skill in self.skills.values()])
        # Calls that a kill, or a client that left, has cut short. Left alone, they are shown to the model as
        # interrupted once the user has spoken. Here they run again, where that does no harm.
        lost = [call for call in await self.session.pending_calls() if call.held != WAITING]
        await self.run(lost, again=True)
        if question:
            await self.session.add_user(question)
        await self.go_on()

    async def decide(self, ref: CallRef, *, approved: bool) -> None:
        """Run the call that waits for a human, or refuse it, and go on: now, or days and deploys later."""
        held = [call for call in await self.session.pending_calls() if call.held == WAITING]
        step = {call.ref: call for call in held if call.ref.frame == ref.frame}
        if ref not in step:
            raise LookupError("no such call waits for a decision")
        if approved:
            await self.session.hold_call(ref, APPROVED)  # so that a kill from here on does not ask the human again
            await self.run([step[ref]], approved=True)
        else:
            await self.session.add_tool_result(ref, "The user does not allow it.", is_error=True)
        if len(step) == 1:  # else the others of this step wait for their decision
            await self.go_on()

    async def go_on(self) -> None:
        """Ask the model and run the tools that it calls, until it has said all, or a call waits for a human."""
        while True:
            request = await self.session.build_request(self.dialect, model=MODELS[self.dialect])
            try:
                await self.ask(request)
            except (anthropic.APIStatusError, openai.APIStatusError) as error:
                if not await self.session.request_failed(request, error):
                    raise
                continue  # the provider found it too long: the next one is shorter
            calls = [call for call in await self.session.pending_calls() if call.held is None]
            if not calls or await self.run(calls):
                return

    async def ask(self, request: Request) -> None:
        """Send a request and record the reply; of one that breaks off, what has come of it."""
        reply: object = None
        stream = self.from_anthropic if request.dialect == "anthropic" else self.from_openai
        try:
            async with aclosing(stream(request)) as pieces:
                async for text, so_far in pieces:
                    reply = so_far
                    if text:
                        self.tell("text", text=text)
        finally:
            # When the client has left, this task is cancelled; a change is made before its await can be.
            if reply is not None:
                await self.session.add_response(reply, request=request)

    async def from_anthropic(self, request: Request) -> AsyncGenerator[tuple[str, object]]:
        """A reply of Anthropic's Messages API: each new text, and all that has come so far."""
        async with self.anthropic.messages.stream(**request) as stream:
            async for event in stream:
                yield event.text if event.type == "text" else "", stream.current_message_snapshot

    async def from_openai(self, request: Request) -> AsyncGenerator[tuple[str, object]]:
        """The same of OpenAI's Chat Completions API."""
        state = ChatCompletionStreamState[None]()
        options: Any = {"include_usage": True}
        async with await self.openai.chat.completions.create(**request, stream=True, stream_options=options) as stream:
            async for chunk in stream:
                state.handle_chunk(chunk)
                yield "".join(each.delta.content or "" for each in chunk.choices), state.current_completion_snapshot

    async def run(self, calls: Sequence[PendingCall], *, approved: bool = False, again: bool = False) -> bool:
        """Run calls side by side; return whether one of them now waits for a human. `again`: it may have run before."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.run_one(call, approved=approved, again=again)) for call in calls]
        return any(task.result() for task in tasks)

    async def run_one(self, call: PendingCall, *, approved: bool, again: bool) -> bool:
        """Run a call and record its result; or hold it, and return True."""
        skill = self.skills.get(call.name)
        if skill and skill.needs_approval and not (approved or call.held):
            await self.session.hold_call(call.ref, WAITING)
            self.tell("held", frame=call.ref.frame, index=call.ref.index, tool=call.name, arguments=call.arguments)
            return True
        failed, result = True, "The server stopped while this ran. Find out how far it came before you try again."
        if skill is None:
            result = f"There is no tool {call.name}."
        elif skill.repeatable or not again:
            try:
                failed, result = False, await skill.run(**json.loads(call.arguments or "{}"))
            except Exception as error:  # noqa: BLE001 - whatever it raises, the model is told
                failed, result = True, f"{type(error).__name__}: {error}"
        await self.session.add_tool_result(call.ref, result, is_error=failed)
        self.tell("result", tool=call.name, result=result)
        return False


def streamed(request: HttpRequest, work: Callable[[Agent], Awaitable[None]]) -> StreamingResponse:
    """Let an agent work, and stream what it tells; a client that leaves cancels it."""
    told: asyncio.Queue[str | None] = asyncio.Queue()
    state, dialect = request.app.state, request.query_params.get("dialect", "anthropic")

    def tell(kind: str, **data: Any) -> None:
        told.put_nowait(f"event: {kind}\ndata: {json.dumps(data)}\n\n")

    async def worked() -> None:
        try:
            session = await state.service.session(request.path_params["user"], create=True)
            async with session.exchange(wait_s=30.0):
                await work(Agent(session, dialect, state.skills, state.anthropic, state.openai, tell))
            tell("done")
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told; `starlette_app.py` sorts them
            tell("error", error=f"{type(error).__name__}: {error}")

    async def events() -> AsyncGenerator[str]:
        task = asyncio.create_task(worked())
        task.add_done_callback(lambda _: told.put_nowait(None))
        try:
            while (event := await told.get()) is not None:
                yield event
        finally:
            task.cancel()

    return StreamingResponse(events(), media_type="text/event-stream")


async def chat(request: HttpRequest) -> StreamingResponse:
    """Take a question as the request's body, and stream the answer."""
    question = (await request.body()).decode(errors="replace")
    return streamed(request, lambda agent: agent.answer(question))


async def decide(request: HttpRequest) -> StreamingResponse:
    """Take the decision on a call that waits: `yes`, or anything else. Stream what follows."""
    ref = CallRef(request.path_params["frame"], request.path_params["index"])
    answer = await request.body()
    return streamed(request, lambda agent: agent.decide(ref, approved=answer == b"yes"))


async def history(request: HttpRequest) -> JSONResponse:
    """Tell what was said, and which calls wait for a human."""
    try:
        session: Session = await request.app.state.service.session(request.path_params["user"])
    except SessionNotFound as error:
        return JSONResponse({"error": str(error)}, status_code=404)
    turns = (await (await session.stack()).load()).turns()
    said = [{"role": turn.role, "text": turn.text, "stop": turn.stop_reason} for turn in turns]
    waiting = [[call.ref.frame, call.ref.index] for call in await session.pending_calls() if call.held == WAITING]
    return JSONResponse({"said": said, "waiting": waiting})


async def summarize(prompt: str, *, max_tokens: int, session_id: str) -> str:  # noqa: ARG001 - who pays for it
    """Have a model write what is to stand for old messages; where that fails, the session does without a model."""
    message = {"role": "user", "content": prompt}
    asked: Any = {"model": MODELS["anthropic"], "max_tokens": max_tokens, "messages": [message]}
    async with anthropic.AsyncAnthropic() as client, client.messages.stream(**asked) as stream:
        return await stream.get_final_text()


def create_app(
    directory: str = "conversations/", skills: Sequence[Skill] = SKILLS, summarizer: Summarizer | None = summarize
) -> Starlette:
    """Make the app; `directory` holds the conversations. Without a summarizer what has no room is left out."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        # `written`: what was answered survives a kill. A session recovers when it is first asked for.
        service = SessionService.open(directory, durability="written", models=SMALL, summarizer=summarizer)
        async with service, anthropic.AsyncAnthropic() as app.state.anthropic, openai.AsyncOpenAI() as app.state.openai:
            app.state.service, app.state.skills = service, {skill.tool.name: skill for skill in skills}
            yield

    routes = [
        Route("/chat/{user}", chat, methods=["POST"]),
        Route("/chat/{user}", history, methods=["GET"]),
        Route("/calls/{user}/{frame:int}/{index:int}", decide, methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)
