"""Run as a process of its own under `-X dev -W error`: a bit of everything, garbage collected all the time."""

from __future__ import annotations

import asyncio
import gc
import sys

from session_actor import SessionService
from session_actor.commands import Push


class Poison(Push, frozen=True, gc=False):
    """Crashes the session."""


async def main(folder: str) -> None:
    asyncio.get_running_loop().slow_callback_duration = 60.0  # a collection in debug mode is slow, and no fault
    async with SessionService.open(folder, max_live=8, idle_timeout_s=0.02) as service:
        sessions = [await service.session(f"s{number}", create=True) for number in range(20)]
        for level in ("async", "written", "synced"):
            await asyncio.gather(*(session.push(level, "", durability=level) for session in sessions))
            gc.collect()
        left = asyncio.ensure_future(sessions[0].push("left", "", durability="synced"))
        await asyncio.sleep(0)
        left.cancel()
        for session in sessions[:5]:
            session.ref.cast(Poison())
        gc.collect()
        await asyncio.gather(*(session.push("on", "") for session in sessions))
        await service.fork("s1", "copy")
        await service.delete("s2")
        await asyncio.sleep(0.05)
        gc.collect()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    gc.collect()


asyncio.run(main(sys.argv[1]))
