"""Conversations of agents whose next requests are compared: before a kill and after recovery, byte for byte.

They hold what makes requests hard: parallel calls, errors, calls that are held or never answered, replies that broke
off, thinking, forks, gotos, pops, other instructions, trims for a small window, and what was learned of real lengths.
"""

from __future__ import annotations

import base64
from random import Random
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import orjson

from bench.conversations import text
from session_actor import ModelProfile, Refused, Text, Thinking, Tool, ToolCall, Usage
from session_actor.dialects import Dialect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from bench.conversations import Tally
    from session_actor import Request, Session, SessionService

SEED = 20_250_102
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
FAMILIES = ("o200k", "o200k", "claude47", "gemma3")
MODELS = {
    f"bench-{dialect}": ModelProfile(name=f"bench-{dialect}", window=3_000, max_output=500, family=family)
    for dialect, family in zip(DIALECTS, FAMILIES, strict=True)
}
SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}}
TOOLS = [Tool("look_up", "Look something up.", SCHEMA), Tool("change", "Change something.", SCHEMA)]


class Asked(msgspec.Struct):
    """What one conversation would ask next: by dialect the request as JSON, or the kind of the refusal."""

    session: str
    requests: dict[str, str]


async def build(service: SessionService, sessions: int, exchanges: int) -> AsyncIterator[Asked]:
    """Hold conversations of up to so many exchanges, and tell of each what it would ask."""
    rng = Random(SEED)
    for number in range(sessions):
        session = await service.session(f"agent-{number}", create=True)
        await converse(session, rng, DIALECTS[number % len(DIALECTS)], rng.randrange(1, exchanges + 1))
        await asked(session)  # a trim that one model needs may show in the request for another
        found = await asked(session)
        await session.flush("written")
        yield found


async def asked(session: Session) -> Asked:
    """What a session would ask now."""
    return Asked(session.id, {dialect: await request_of(session, dialect) for dialect in DIALECTS})


async def compare(session: Session, wanted: Asked, tally: Tally) -> None:
    """Compare what a recovered session asks with what it would have asked before."""
    found = await asked(session)
    for dialect, request in wanted.requests.items():
        tally.mark("requests", right=found.requests[dialect] == request)


async def request_of(session: Session, dialect: Dialect) -> str:
    """The next request of a session in one dialect, as JSON."""
    try:
        request = await session.build_request(dialect, model=f"bench-{dialect}")
    except Refused as error:
        return type(error).__name__
    return orjson.dumps(request, default=lambda data: base64.b64encode(data).decode()).decode()


async def converse(session: Session, rng: Random, dialect: Dialect, exchanges: int) -> None:
    """Let an agent answer questions, and move about between them."""
    await session.configure(system=text(rng), tools=TOOLS, model=f"bench-{dialect}")
    frames = [(await session.add_user(text(rng))).id]
    for _ in range(exchanges):
        await move(session, rng, frames)
        frames.append((await session.add_user(text(rng))).id)
        for _ in range(rng.randrange(1, 5)):
            if not await step(session, rng, rng.choice(DIALECTS) if rng.random() < 0.1 else dialect):
                break


async def move(session: Session, rng: Random, frames: Sequence[int]) -> None:
    """Fork, go elsewhere, take something off, give other instructions; mostly nothing."""
    chance = rng.random()
    if chance < 0.05:
        await session.fork(rng.choice(frames))
    elif chance < 0.1:
        await session.goto(rng.choice(sorted(await session.branches())))
    elif chance < 0.2:
        await session.pop(rng.randrange(1, 3), unit=rng.choice(("frame", "step", "exchange")))
    elif chance < 0.25:
        await session.configure(system=text(rng))
    elif chance < 0.3:
        await session.add_reference(text(rng), source="a page")


async def step(session: Session, rng: Random, dialect: Dialect) -> bool:
    """Ask, reply, and answer most of the calls; return whether there were any."""
    request: Request | None = None
    try:
        request = await session.build_request(dialect, model=f"bench-{dialect}")
    except Refused:
        return False
    await reply(session, rng, request)
    calls = [call for call in await session.pending_calls() if call.held is None]
    for call in calls:
        chance = rng.random()
        if chance < 0.85:
            words = " ".join(text(rng) for _ in range(rng.choice((1, 1, 1, 40))))
            await session.add_tool_result(call.ref, words, is_error=chance < 0.1)
        elif chance < 0.93:
            await session.hold_call(call.ref, "approval")
    return bool(calls)


async def reply(session: Session, rng: Random, request: Request) -> None:
    """Reply as the model of the request does: with thinking, text and calls, whole or broken off."""
    broke_off = rng.random() < 0.1
    calls = [
        ToolCall(f"call-{rng.randrange(1_000)}", rng.choice(TOOLS).name, '{"what": "it"' + "}" * (not broke_off))
        for _ in range(rng.choice((0, 0, 1, 2, 3)))
    ]
    real = round(request.input_tokens * rng.uniform(0.9, 1.3))
    if request.dialect == "anthropic" and not broke_off:
        await session.add_response(message(rng, request.model, calls, real), request=request)
        return
    thinking = [Thinking(text(rng), "c2lnbmVk")] if rng.random() < 0.3 else []
    await session.add_assistant(
        [*thinking, Text(text(rng))],
        tool_calls=calls,
        usage=Usage(real, 20),
        model=request.model,
        dialect=request.dialect,
        stop_reason="aborted" if broke_off else "stop",
    )


def message(rng: Random, model: str, calls: Sequence[ToolCall], real: int) -> dict[str, Any]:
    """A reply as Anthropic's API gives it."""
    content: list[dict[str, Any]] = [{"type": "thinking", "thinking": text(rng), "signature": "c2lnbmVk"}]
    content.append({"type": "text", "text": text(rng)})
    content += [{"type": "tool_use", "id": call.id, "name": call.name, "input": {"what": "it"}} for call in calls]
    usage = {"input_tokens": real, "output_tokens": 20}
    return {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "usage": usage,
    }
