"""Run as a process of its own: compacts again and again, and says what was answered; it is killed somewhere."""

from __future__ import annotations

import asyncio
import sys

from session_actor import ModelProfile, SessionService

MODELS = {"small": ModelProfile(name="small", window=16_000, max_output=2_000, family="o200k")}


async def main(folder: str) -> None:
    async with SessionService.open(folder, durability="written", models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await session.configure(model="small")
        while True:
            for number in range(10):
                frame = await session.push(f"Question {number}: " + "why is that so " * 100, "because it is " * 100)
                print(f"frame {frame.id}", flush=True)  # noqa: T201 - the parent reads it
            plan = await session.prepare_compaction()
            if plan is not None:
                print("planned", flush=True)  # noqa: T201 - the same
                done = await session.commit_compaction(plan, plan.extractive())
                print(f"compaction {done.generation} {done.covered_frame}", flush=True)  # noqa: T201 - the same


asyncio.run(main(*sys.argv[1:]))
