"""Syncs that the system refuses, by strace: those of the store, and those that SQLite makes for the catalog."""

from __future__ import annotations

import pytest

from .test_kills import counted, start
from .tracing import why_not_traced

pytestmark = pytest.mark.timeout(600)

SYNCS = 60
"""Of a life that seals a journal which an earlier cut began; some behind it are left out."""


def test_any_sync_may_be_refused(tmp_path, faults):
    """Keys make it safe to push once more what was refused: all is there, once, and nothing is damaged."""
    why_not = why_not_traced()
    if why_not is not None:
        pytest.skip(why_not)
    numbers = faults.some(range(1, SYNCS + 1))
    assert counted(start("refused_sync.py", tmp_path, *numbers)) == {"lives": len(numbers)}
