"""Run as a process of its own: pushes for ever, and prints the id of each frame when it is acknowledged."""

from __future__ import annotations

import asyncio
import sys

from session_actor import SessionService


async def main(folder: str, level: str) -> None:
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        for number in range(1_000_000):
            frame = await session.push(f"q{number}", "x" * (number % 300), durability=level)
            print(frame.id, flush=True)  # noqa: T201 - the parent reads it


asyncio.run(main(*sys.argv[1:]))
