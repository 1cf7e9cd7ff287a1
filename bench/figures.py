"""The figures to beat, in microseconds unless they say otherwise, each with where it comes from."""

from __future__ import annotations

from typing import NamedTuple

BEAM_SOURCE = "the reference design on OTP 25 with ETS, measured on a machine like this"
BEAM_DISK_SOURCE = "the reference design on OTP 25 with its disk task, measured on a machine like this"
PEERS_SOURCE = "the best Python peer, measured on a machine like this"
PAPER_SOURCE = "the reference design, as published"


class Figure(NamedTuple):
    """A figure to beat and its source."""

    value: float
    source: str


# (op, depth) -> p50. The depth 0 stands for any depth.
BEAM_P50_US: dict[tuple[str, int], float] = {
    ("echo", 0): 1.9,
    ("push", 0): 4.0,
    ("pop1", 0): 2.4,
    ("pop10", 0): 4.7,
    ("fork", 10): 4.7,
    ("fork", 500): 12.5,
    ("checkpoint", 0): 2.0,
    ("goto", 10): 2.2,
    ("goto", 500): 11.0,
    ("get", 0): 2.5,
    ("get_table", 0): 0.3,
    ("get_stack", 10): 3.5,
    ("get_stack", 500): 78.0,
}
BEAM_DISK_PUSH_P50_US = (49.0, 59.0)

# The published latencies at 10, 50, 100, 200 and 500 frames.
PAPER_DEPTHS = (10, 50, 100, 200, 500)
PAPER_P50_US: dict[str, tuple[float, float, float, float, float]] = {
    "push": (3.4, 3.4, 3.5, 3.5, 3.6),
    "pop1": (2.1, 2.1, 2.2, 2.2, 2.3),
    "pop10": (8.7, 8.7, 8.8, 8.9, 9.1),
    "fork": (4.2, 12.1, 22.8, 44.1, 108.7),
    "checkpoint": (1.8, 1.8, 1.9, 1.9, 2.0),
    "goto": (3.1, 8.4, 15.7, 30.2, 74.3),
}
# No persistence, table, table and disk.
PAPER_OVERHEAD_US: dict[str, tuple[float, float, float]] = {
    "push": (1.2, 3.4, 3.8),
    "pop1": (0.8, 2.1, 2.1),
    "get": (0.3, 0.9, 0.9),
    "stack": (0.5, 1.8, 1.8),
}
MODEL_TURN_US = 1_200_000.0
OVERHEAD_SHARE_PERCENT = 5.0

# Percent of the reference's own recovery: fields, frames, order, checkpoints, branches, and the semantic one: whether
# a model is then asked the same.
PAPER_RECOVERY_PERCENT: dict[str, float] = {
    "fields": 99.97,
    "frames": 100.0,
    "order": 100.0,
    "checkpoints": 99.91,
    "branches": 99.88,
    "requests": 99.84,
}
BEAM_RECOVER_S = 1.6
BEAM_LOST_OF_1000 = (942, 973)

# The best Python peers, lowest and highest p50 seen.
PYTHON_PEERS_US: dict[str, tuple[float, float]] = {
    "echo": (15.0, 140.0),
    "push": (720.0, 720.0),
    "fork": (8_000.0, 34_000.0),
    "get_stack": (3_600.0, 11_000.0),
}


def beam_p50_us(op: str, depth: int) -> Figure | None:
    """Return the figure to beat for an operation at a depth: the exact depth, or the one for any depth."""
    for key in ((op, depth), (op, 0)):
        if key in BEAM_P50_US:
            return Figure(BEAM_P50_US[key], BEAM_SOURCE)
    return None


def beam_disk_p50_us(op: str) -> Figure | None:
    """Return the middle of what the reference design took with its disk task; only a push writes to the disk."""
    return Figure(sum(BEAM_DISK_PUSH_P50_US) / 2, BEAM_DISK_SOURCE) if op == "push" else None


def peer_p50_us(op: str) -> Figure | None:
    """Return the lowest p50 of the Python peers, None where none was measured."""
    return Figure(PYTHON_PEERS_US[op][0], PEERS_SOURCE) if op in PYTHON_PEERS_US else None


def paper_p50_us(op: str, depth: int) -> Figure | None:
    """Return the published latency of an operation at a depth, None where nothing was published."""
    if op not in PAPER_P50_US or depth not in PAPER_DEPTHS:
        return None
    return Figure(PAPER_P50_US[op][PAPER_DEPTHS.index(depth)], PAPER_SOURCE)
