"""Serves the example with a model that stops after one word, and prints its port: a process that a test can kill.

usage: python child_server.py DIRECTORY
"""

from __future__ import annotations

import asyncio
import runpy
import socket
import sys
from pathlib import Path

import uvicorn

EXAMPLES = Path(__file__).parents[2] / "examples"


async def stuck(_stack):
    yield "one "
    await asyncio.Event().wait()


if __name__ == "__main__":
    sys.path.insert(0, str(EXAMPLES))
    app = runpy.run_path(str(EXAMPLES / "starlette_app.py"))["create_app"](sys.argv[1], stuck)
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none")).run(sockets=[listener])
