"""What supervisors log must not fail what it tells of."""

from __future__ import annotations

import pytest
import structlog

from session_actor.supervisors.log import logger


def refuse(*_):
    raise BrokenPipeError("nobody reads this any more")


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_a_line_is_logged_and_one_that_cannot_be_written_is_left_out(level):
    with structlog.testing.capture_logs() as logs:
        getattr(logger(), level)("happened", server="a")
    assert logs == [{"event": "happened", "log_level": level, "server": "a"}]
    structlog.configure(processors=[refuse])
    try:
        with pytest.raises(BrokenPipeError):
            structlog.get_logger().warning("happened")
        getattr(logger(), level)("happened", server="a")
    finally:
        structlog.reset_defaults()
