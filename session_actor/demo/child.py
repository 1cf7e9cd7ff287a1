"""The process that the demo kills: it embeds a session, feeds it step by step and tells each acknowledgement.

usage: python -m session_actor.demo.child DIRECTORY TRANSCRIPT DURABILITY

Each byte on standard input allows one step, so it is never far ahead of what the parent has read; the end of standard
input (the parent is gone) ends it. The lines on standard output are those of `protocol`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

from session_actor import SessionService
from session_actor.frames import Frame

from .plan import read_plan
from .protocol import Acknowledged, Finished, Message, Opening, Ready, encode

if TYPE_CHECKING:
    from session_actor import Session
    from session_actor.persistence import Level

    from .plan import Step

SESSION_ID = "demo"
_STDOUT = 1
_CREATION_RECORDS = 1  # every further record is one step: so the newest record says which step comes next


async def feed(directory: Path, transcript: Path, durability: Level) -> None:
    """Recover the session in `directory`, or make it, and do every step of the transcript that it does not hold yet."""
    plan = await read_plan(transcript)
    allowance = await _standard_input()
    _log_to_standard_error()
    _tell(Opening())
    started = time.perf_counter()
    async with SessionService.open(directory, durability=durability, lock_timeout_s=5.0) as service:
        session = await service.session(SESSION_ID, create=True)
        next_step = session.durable_seq["async"] - _CREATION_RECORDS
        _tell(Ready(next_step, recovery_ms=(time.perf_counter() - started) * 1000))
        for number, step in enumerate(plan.steps[next_step:], next_step):
            await allowance.readexactly(1)
            _tell(await _timed(session, number, step))
    _tell(Finished())


def _log_to_standard_error() -> None:
    """Keep the logs out of what the parent reads. Loads structlog before anything is timed, as the library would."""
    import structlog

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))


async def _timed(session: Session, number: int, step: Step) -> Acknowledged:
    started = time.perf_counter()
    reply = await getattr(session, step.method)(**step.arguments)
    took_us = (time.perf_counter() - started) * 1e6
    made = reply if step.frame and isinstance(reply, Frame) else None
    return Acknowledged(number, made.id if made else 0, made.at_us if made else 0, took_us)


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _tell(message: Message) -> None:
    os.write(_STDOUT, encode(message))


if __name__ == "__main__":
    try:
        asyncio.run(feed(Path(sys.argv[1]), Path(sys.argv[2]), cast("Level", sys.argv[3])))
    except asyncio.IncompleteReadError:
        sys.exit("the parent is gone")
