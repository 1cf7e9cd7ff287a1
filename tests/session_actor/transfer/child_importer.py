"""Imports a file into a directory and kills itself after some records: child_importer.py FOLDER FILE PARTS."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from session_actor import SessionService
from session_actor.transfer import growing, restoring
from session_actor.transfer.importing import import_transcript


async def main(folder: str, file: str, parts: int) -> None:
    growing.CHUNK_FRAMES = restoring.CHUNK_FRAMES = 3
    send, sent = growing.send, 0

    async def last(session, message) -> None:
        nonlocal sent
        await send(session, message)
        sent += 1
        if sent == parts:
            os.kill(os.getpid(), signal.SIGKILL)

    growing.send = restoring.send = last
    async with SessionService.open(folder) as service:
        await import_transcript(service, file, session_id="s")


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
