"""Serves the agent of the examples, and prints its port: a process that a test can kill in the middle of a tool call.

usage: python child_agent.py DIRECTORY MARK

The gauge of the Mole never answers the first time; the file MARK tells that it was asked.
"""

from __future__ import annotations

import asyncio
import runpy
import socket
import sys
from dataclasses import replace
from pathlib import Path

import uvicorn

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent_server.py"


def main(directory: str, mark: Path) -> None:
    example = runpy.run_path(str(EXAMPLE))
    gauge, lock = example["SKILLS"]

    async def read_gauge(place: str) -> str:
        if place == "Mole" and not mark.exists():
            mark.touch()
            await asyncio.Event().wait()
        return await gauge.run(place)

    app = example["create_app"](directory, [replace(gauge, run=read_gauge), lock])
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none")).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
