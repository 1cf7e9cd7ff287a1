"""A clock that only the test moves, and the log that all children of one test share."""

import pytest

from session_actor.supervisors import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log() -> list[str]:
    return []
