"""Run as a process of its own: one of two that hand a store to each other. Commands come on stdin, one a line.

`open`: wait for the store, then talk on all sessions; answers with the time at which it was open.
`again`: send what the one before refused, by its keys.
`hand`: hand over; answers with that time, what was acknowledged, and what was refused with HandedOver.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from session_actor import HandedOver, Session, SessionService

SESSIONS = 5


class Turn:
    """The service of one turn, and what it answered."""

    def __init__(self, folder: str) -> None:
        self.service = SessionService.open(folder, lock_timeout_s=30)
        self.answered: list[str] = []
        self.refused: dict[str, str] = {}

    async def open(self) -> list[asyncio.Task[None]]:
        await self.service.start()
        return [asyncio.create_task(self.talk(f"s{number}")) for number in range(SESSIONS)]

    async def talk(self, name: str) -> None:
        """Push until the service is handed over."""
        session = await self.service.session(name, create=True)
        while True:
            text = f"{name} {time.monotonic_ns()}"
            try:
                await self.push(session, text)
            except HandedOver:
                self.refused[name] = text
                return
            await asyncio.sleep(0.001)

    async def push(self, session: Session, text: str) -> None:
        await session.push(text, key=text, durability="written")
        self.answered.append(text)

    async def again(self, refused: dict[str, str]) -> None:
        for name, text in refused.items():
            await self.push(await self.service.session(name), text)


async def main(folder: str) -> None:
    loop = asyncio.get_running_loop()
    turn, talking = Turn(folder), []
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        if command["do"] == "open":
            turn = Turn(folder)
            talking = await turn.open()
            answer = {"at": time.monotonic()}
        elif command["do"] == "again":
            await turn.again(command["refused"])
            answer = {}
        else:
            at = time.monotonic()
            await turn.service.handover("process")
            await asyncio.gather(*talking)
            await turn.service.close()
            answer = {"at": at, "answered": turn.answered, "refused": turn.refused}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


asyncio.run(main(sys.argv[1]))
