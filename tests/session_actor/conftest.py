"""What is tested: services on a directory and in memory, and a session without one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from session_actor import MemoryStore, SessionService
from session_actor.commands import Push

from .live import Live


class Poison(Push, frozen=True, gc=False):
    """A message that crashes the session which handles it: it looks like a push and is none of its commands."""


@pytest.fixture
def live() -> Live:
    """A session without a server, with frames 1, 2 and 3 on main."""
    live = Live()
    for text in "abc":
        live.do(Push(text))
    return live


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the store of a test is."""
    return tmp_path / "conversations"


@pytest.fixture(params=["memory", "file"])
async def service(request: pytest.FixtureRequest, tmp_path: Path):
    """A running service on either store."""
    store = MemoryStore() if request.param == "memory" else tmp_path / "conversations"
    async with SessionService.open(store) as running:
        yield running


@pytest.fixture
async def session(service: SessionService):
    """A new session of that service."""
    return await service.session("user-42", create=True)


@asynccontextmanager
async def reopened(folder: Path, session_id: str = "user-42", **options):
    """A session of a service that was just opened on `folder`."""
    async with SessionService.open(folder, **options) as running:
        yield await running.session(session_id)


def seen(frame) -> dict[str, object]:
    """Every field of a frame, for comparing."""
    return msgspec.structs.asdict(frame)
