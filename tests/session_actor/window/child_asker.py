"""Run as a process of its own: asks for a request in the middle of parallel tool calls, and is killed there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

from session_actor import SessionService, Tool, ToolCall, Usage
from session_actor.requests.canonical import canonical

DIALECTS = ("anthropic", "openai_chat", "openai_responses", "gemini")


async def main(folder: str) -> None:
    async with SessionService.open(folder, durability="written") as service:
        session = await service.session("user-42", create=True)
        await session.configure(system="Be brief.", tools=[Tool("ls", "List.", {"type": "object"})], model="gpt-4o")
        for number in range(5):
            await session.add_user(f"question {number}")
            request = await session.build_request("openai_chat")
            usage = Usage(input_tokens=request.input_tokens + 20 * number, output_tokens=9)
            reply = {
                "id": "x",
                "object": "chat.completion",
                "model": "gpt-4o",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "well"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": usage.input_tokens, "completion_tokens": 9},
            }
            await session.add_response(reply, request=request)
        await session.add_user("List three folders.")
        await session.add_assistant("", tool_calls=[ToolCall(f"call_{n}", "ls", "{}") for n in range(3)])
        await session.add_tool_result("call_1", "b.py")
        requests = {dialect: await session.build_request(dialect) for dialect in DIALECTS}
        print(json.dumps({name: canonical(request).hex() for name, request in requests.items()}), flush=True)  # noqa: T201 - the parent reads it
        os.kill(os.getpid(), signal.SIGKILL)


asyncio.run(main(*sys.argv[1:]))
