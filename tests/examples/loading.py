"""Loading an example as a module of its name, as if its folder were the current one; and serving an app for real."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

import httpx
import uvicorn

EXAMPLES = Path(__file__).parents[2] / "examples"


def load_example(name: str) -> ModuleType:
    """An example, which others may import by its name from now on."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look for their module
    spec.loader.exec_module(module)
    return module


@asynccontextmanager
async def listening(app) -> AsyncIterator[str]:
    """Serve an app by uvicorn on a free port of the loopback, and give its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", ws="none"))
    task = asyncio.create_task(server.serve())
    while not server.started:
        assert not task.done(), task
        await asyncio.sleep(0)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def serving(app) -> AsyncIterator[httpx.AsyncClient]:
    """The same, and give a client of it."""
    async with listening(app) as address, httpx.AsyncClient(base_url=address) as client:
        yield client
