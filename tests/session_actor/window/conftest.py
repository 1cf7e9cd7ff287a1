"""Sessions that ask for requests."""

from __future__ import annotations

import pytest

from .asked import DIALECTS, Asked


@pytest.fixture
def live() -> Asked:
    """A session with a small model, a tool and a system prompt."""
    return Asked()


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    """Each dialect in turn."""
    return request.param


@pytest.fixture(scope="module")
def streams():
    """The SDKs' clients and a server here that streams to them."""
    from .reply_streams import Streams

    with Streams() as running:
        yield running
