"""What a conversation says is told to nobody: not by logs, events, spans, metrics, errors, or what things show.

In a process of its own, because `structlog` is configured once for a whole process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("child_secrets.py")
SECRET = "zebra-7351"


@pytest.fixture(scope="module")
def child() -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, CHILD], capture_output=True, text=True, timeout=60, check=True)


def test_the_text_of_a_conversation_is_in_no_log_no_error_and_no_repr(child):
    found = json.loads(child.stdout.splitlines()[-1])
    assert found["told"] == []
    assert SECRET not in child.stdout + child.stderr


def test_everything_that_can_go_wrong_went_wrong_and_was_logged(child):
    found = json.loads(child.stdout.splitlines()[-1])
    assert set(found["events"]) >= {"message_without_handler", "server_crashed", "server_quarantined"}
    assert "server_crashed" in child.stdout
    assert set(found["said"]) >= {
        "CallAlreadyAnswered",
        "CallUnknown",
        "HeadMoved",
        "InvalidArgument",
        "KeyConflict",
        "SessionCrashed",
        "SessionQuarantined",
        "UnknownMessage",
        "ValueNotStorable",
    }


def test_what_was_looked_at_was_there(child):
    """Events, spans and metrics of all of it; and the places where text was put did take it."""
    found = json.loads(child.stdout.splitlines()[-1])
    assert found["counts"]["watched"] > 200
    assert found["counts"]["spans"] > 80
    assert found["counts"]["metrics"] > 1_000
    assert set(found["said"]) >= {
        "AssumptionUnknown",
        "ContextOverflow",
        "Frame",
        "HandoverFailed",
        "Instructions",
        "Request",
        "SessionEnded",
        "SummaryRejected",
        "list",
    }
    assert {"hook_failed", "telemetry_handler_detached"} <= set(found["events"])


def test_the_library_configures_no_logging(child):
    assert json.loads(child.stdout.splitlines()[-1])["configured"] is False
