"""A session that is long enough to be compacted, in a service on memory."""

from __future__ import annotations

import pytest

from session_actor import MemoryStore, SessionService

from .compacted import MODELS, converse


@pytest.fixture
async def service():
    async with SessionService.open(MemoryStore(), models=MODELS) as running:
        yield running


@pytest.fixture
async def session(service):
    made = await service.session("user-42", create=True)
    await converse(made)
    return made
