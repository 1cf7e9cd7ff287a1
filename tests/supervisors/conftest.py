"""The shared server's life, and a tree with a hand-moved clock."""

import pytest

from session_actor.supervisors import ManualClock

from .support import Life


@pytest.fixture
async def life() -> Life:
    return Life()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
