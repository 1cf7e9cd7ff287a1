"""A provider on this machine, to try agents without a key: it speaks two streaming APIs, and thinks by rules.

    pip install starlette uvicorn
    uvicorn --app-dir examples --factory scripted_provider:create_app --port 9000

    export ANTHROPIC_BASE_URL=http://localhost:9000 OPENAI_BASE_URL=http://localhost:9000/v1
    export ANTHROPIC_API_KEY=none OPENAI_API_KEY=none

It serves Anthropic's Messages (`/v1/messages`) and OpenAI's Chat Completions (`/v1/chat/completions`), as streams only,
in the form that their SDKs read.
"""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    Body = dict[str, Any]
    Model = Callable[[Body], AsyncGenerator["str | Call"]]


class Call(NamedTuple):
    """A tool call that the model makes."""

    name: str
    arguments: dict[str, Any]


class Refused(Exception):
    """Raised by a model before it says anything: the request is answered with this status and text."""

    def __init__(self, status: int, message: str) -> None:
        """`message`: in the provider's words."""
        super().__init__(message)
        self.status = status


IDS = count(1)
SUMMARY = """\
## Goal
The user watches the water of the harbour, with questions about its gauges and its lock.

## Constraints
None

## Decisions
None

## Assumptions
None

## Progress
What was asked was answered, one question after the other, and the tools were called where they were needed. Nothing \
is left to do of it; what the tools gave was told to the user each time, and the user went on to the next question.

## Files
None

## Identifiers
None

## Open question
None
"""
MOST_WORDS = 20


async def rules(body: Body) -> AsyncGenerator[str | Call]:
    """Think: call tools when certain words are said, else repeat what was said, or what the tools gave. Sum up, too."""
    said, given = newest(body)
    if "## Open question" in said:
        yield SUMMARY
    elif "compare the" in said.lower():
        yield "I'll look at both. "
        yield Call("read_gauge", {"place": "Mole"})
        yield Call("read_gauge", {"place": "Lock"})
    elif "close the" in said.lower():
        yield Call("close_lock", {"place": "north"})
    else:
        for word in said.split()[:MOST_WORDS] or ["The tools say:", *given]:
            yield f"{word} "


def newest(body: Body) -> tuple[str, list[str]]:
    """What the user said last, and the results of tools that have come since the model spoke."""
    said, given = "", list[str]()
    for message in reversed(body["messages"]):
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            given.append(texts(message["content"]))
            continue
        parts: list[Body] = message["content"] if isinstance(message["content"], list) else []
        given += [texts(part["content"]) for part in reversed(parts) if part["type"] == "tool_result"]
        said = said or texts(message["content"])
    return said, given[::-1]


def texts(content: str | list[Body]) -> str:
    """The text of a message or result, which is given plainly or in parts."""
    return content if isinstance(content, str) else " ".join(part["text"] for part in content if part["type"] == "text")


def create_app(model: Model = rules) -> Starlette:
    """Make the app; `model` gets the body of each request and yields texts and calls, or raises `Refused` first."""

    def endpoint(stream: Callable[[Body, AsyncGenerator[str | Call]], AsyncGenerator[str]]) -> Any:
        async def answer(request: Request) -> Response:
            body = await request.json()
            said = model(body)
            try:
                first = await anext(said, "")
            except Refused as error:
                why = {"type": "invalid_request_error", "message": str(error)}
                return JSONResponse({"type": "error", "error": why}, error.status)
            return StreamingResponse(stream(body, joined(first, said)), media_type="text/event-stream")

        return answer

    return Starlette(
        routes=[
            Route("/v1/messages", endpoint(as_messages), methods=["POST"]),
            Route("/v1/chat/completions", endpoint(as_completions), methods=["POST"]),
        ]
    )


async def joined(first: str | Call, rest: AsyncGenerator[str | Call]) -> AsyncGenerator[str | Call]:
    """All that a model says, of which the first was taken."""
    yield first
    async for piece in rest:
        yield piece


def event(data: Body) -> str:
    """One server-sent event."""
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def tokens(body: Body) -> int:
    """How long a request is, as this provider counts."""
    return len(json.dumps([body.get("system"), body.get("tools"), body["messages"]])) // 4


async def as_messages(body: Body, said: AsyncGenerator[str | Call]) -> AsyncGenerator[str]:
    """Say it as Anthropic's Messages API does."""
    message: Body = {
        "id": f"msg_{next(IDS)}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
    }
    usage = {"input_tokens": tokens(body), "output_tokens": 1}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    yield event({"type": "message_start", "message": message})
    index, is_open, stop_reason = -1, False, "end_turn"
    async for piece in said:
        if isinstance(piece, Call) or not is_open:
            if is_open:
                yield event({"type": "content_block_stop", "index": index})
            index, is_open = index + 1, True
            block = {"type": "text", "text": ""} if isinstance(piece, str) else tool_use(piece)
            yield event({"type": "content_block_start", "index": index, "content_block": block})
        if isinstance(piece, str):
            delta = {"type": "text_delta", "text": piece}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(piece.arguments)}
            stop_reason = "tool_use"
        yield event({"type": "content_block_delta", "index": index, "delta": delta})
    yield event({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": stop_reason, "stop_sequence": None}
    yield event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 20}})
    yield event({"type": "message_stop"})


def tool_use(call: Call) -> Body:
    """The beginning of a call."""
    return {"type": "tool_use", "id": f"toolu_{next(IDS)}", "name": call.name, "input": {}}


async def as_completions(body: Body, said: AsyncGenerator[str | Call]) -> AsyncGenerator[str]:
    """Say it as OpenAI's Chat Completions API does."""
    head = {"id": f"chatcmpl-{next(IDS)}", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}

    def chunk(delta: Body, finish_reason: str | None = None) -> str:
        return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    yield chunk({"role": "assistant", "content": ""})
    calls = 0
    async for piece in said:
        if isinstance(piece, str):
            yield chunk({"content": piece})
            continue
        function = {"name": piece.name, "arguments": json.dumps(piece.arguments)}
        yield chunk(
            {"tool_calls": [{"index": calls, "id": f"call_{next(IDS)}", "type": "function", "function": function}]}
        )
        calls += 1
    yield chunk({}, "tool_calls" if calls else "stop")
    usage = {"prompt_tokens": tokens(body), "completion_tokens": 20, "total_tokens": tokens(body) + 20}
    yield event({**head, "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"
