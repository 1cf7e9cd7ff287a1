"""Run as a process of its own: works with a store while its system calls are interrupted.

    python interrupted.py FOLDER

Stops itself until strace is there; prints as JSON whether all that was acknowledged is there afterwards.
"""

from __future__ import annotations

import asyncio
import json
import sys

from tracing import stop

from session_actor import FileStore, SessionService


def opened() -> SessionService:
    store = FileStore(sys.argv[1], segment_bytes=20_000, journal_bytes=10_000)
    return SessionService.open(store, durability="synced")


async def main() -> None:
    acknowledged: list[str] = []
    async with opened() as service:
        session = await service.session("a", create=True)
        await session.push("first", "")
        stop()
        for number in range(150):
            await session.push(str(number), "x" * 300)
            acknowledged.append(str(number))
        await service.session("gone", create=True)
        await service.delete("gone")
    async with opened() as service:
        stack = await (await (await service.session("a")).stack()).load()
        ids = [info.id async for info in service.sessions()]
    print(json.dumps([["first", *acknowledged] == [frame.user_input for frame in stack], ids]))  # noqa: T201


asyncio.run(main())
