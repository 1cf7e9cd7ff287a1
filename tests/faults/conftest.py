"""In which order the tests of this folder are run when they run all their cases."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All cases of a test may take longer than one test should.

    Those that have a limit of their own take longest, and those of other folders. They come first, not to be waited for
    at the end, and in turns with others: a process of pytest-xdist has the test after the one that it runs in hand, and
    no other can take it.
    """
    if config.option.faults == "full":
        long = [item for item in items if item.get_closest_marker("timeout") or HERE not in item.path.parents]
        short = [item for item in items if item not in long]
        items[:] = [item for pair in zip_longest(long, short) for item in pair if item is not None]
        for item in short:
            item.add_marker(pytest.mark.timeout(600))
