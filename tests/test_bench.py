"""Every bench runs in its small size and prints the agreed lines. How fast anything is, is not tested here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KEYS = ["bench", "peer", "op", "variant", "depth", "n", "p50_us", "mean_us", "p99_us", "ops_per_s"]
# No Elixir on the path: starting it would take longer than all the rest.
ALONE = {**os.environ, "PATH": ""}

LOOPS = ("asyncio", "uvloop") if find_spec("uvloop") else ("asyncio",)
LEVELS = ("async", "written", "synced")
DEPTHS = (10, 500)
CHANGES = ("push", "pop1", "pop10", "fork", "fork_first", "checkpoint", "goto", "goto_first")
CHECKED = ("fields", "frames", "order", "checkpoints", "branches", "times", "requests")
WAITS = ("wait beside {}", "longest wait beside {} [us]", "longest wait beside {} [us of CPU]")
HELD = ("loop held by a push at written", "loop held, p99.9 [us]", "loop held, longest [us]")
PRESSED = (
    *(f"memory {when} [bytes]" for when in ("at first", "when the queue is first full")),
    *(f"memory, highest in the {half} half [bytes]" for half in ("first", "second")),
    "records pushed meanwhile",
    "refusals",
)
KEPT = ("a frame a turn, 1,000 B", "a frame an exchange, 1,000 B")
BUILDS = ("first build", "unchanged", "after one more step")
BUILT = ("bytes", "levels of two requests that are one")
ANSWERS = ("until it is open", "until a call is answered", "until all are", "processor time of both")
DIALECTS = ("openai_chat", "openai_responses", "anthropic", "gemini")
GONE = ("go to any record", "step back", "diff of any two")
REPLAYED = ("open", "memory at most [bytes]", *GONE, *(f"{what}, longest [us]" for what in GONE))
PARTS = ("texts", "escapes", "around the texts", "headers and indexes", "snapshots", "log", "catalog and marks")

MEASURED = {
    "operations": {
        *product(CHANGES, ("none", *LEVELS), DEPTHS),
        *product(("get", "stack", "stack_new", "list"), ("none", "async"), DEPTHS),
    },
    "overhead": {
        *product(("push", "pop1", "get", "stack"), ("memory table", "table and disk"), (100,)),
        ("push and write", "table and disk", 100),
    },
    "recovery": {
        *product(("recover one by one", "recover together"), ("clean", "kill"), (30,)),
        *product((f"{what} {how}" for what in CHECKED for how in ("checked", "right")), ("clean", "kill"), (30,)),
        *product(("open to first push",), ("one history",), (100, 1_000)),
        *product(("open", "open to first push"), ("many sessions",), (200,)),
        ("open to first push", "1 MB of log, killed", 20),
    },
    "actors": {
        *product(("echo inline", "echo queued", "echo async handler", "cast"), LOOPS, (1,)),
        *product((wait.format(beside) for wait in WAITS for beside in ("5,000 queued", "200 callers")), LOOPS, (1,)),
        ("crash to reply", "asyncio", 1),
        *product(("bytes of an idle session", "start a session"), ("memory store",), (1_000,)),
        ("bytes of an idle session with 20 frames", "loaded from disk", 100),
    },
    "journal": {
        *product((f"{what} at {level}" for what in ("store", "public API") for level in LEVELS), ("burst",), (1, 50)),
        *product((f"public API at {level}, heap frozen" for level in LEVELS), ("burst",), (50,)),
        *product(("lines at synced",), ("burst",), (1, 50)),
        *product(HELD, ("quiet", "sync storm", "during cuts"), (1,)),
        ("lone push at synced", "burst", 1),
        ("public API at written", "sustained over 4 cuts", 20),
        *product(PRESSED, ("disk of 100 MB/s",), (50,)),
    },
    "disk": {
        *product((f"{what} [bytes]" for what in ("content", "apparent", "allocated")), KEPT, (200,)),
        *product((f"part [bytes]: {part}" for part in PARTS), KEPT, (200,)),
        *product(("records",), KEPT, (200,)),
    },
    "handover": {
        *product(("gap of a session", "push meanwhile"), ("in process",), (20,)),
        *product(ANSWERS, ("across processes",), (20,)),
        ("until a call is answered", "after kill -9", 200),
    },
    "kill": {*product(("recover", "lost"), LEVELS, (200,))},
    "requests": {*product((*BUILDS, *BUILT), DIALECTS, (20, 60))},
    "hooks": {
        *product(("push", "end, written"), ("none", "one of each phase", "three mandatory"), (1,)),
        ("end and run, many at once", "three mandatory", 50),
        ("open", "no hooks", 200),
        ("run what is pending, once open", "10 pending", 200),
    },
    "telemetry": {*product(("push",), ("none", "one handler", "three handlers", "a live feed", "OpenTelemetry"), (1,))},
    "replay": {*product(REPLAYED, ("one session",), (300,)), ("list", "many sessions", 200)},
    "cli": {
        *product(("session-actor --help", "list --help"), ("start",), (1,)),
        ("list", "many sessions", 200),
        *product(("show", "tree", "stats"), ("one session",), (500,)),
        *product([f"{name}, memory at most [bytes]" for name in ("show", "tree", "stats")], ("one session",), (500,)),
    },
}
"""What this library's own lines must be, in the small size: (op, variant, depth)."""

FLOORS = {
    "telemetry": {("push", "OpenTelemetry by hand", 1)},
    "operations": {("push", "push", 10), ("get", "await", 10), ("stack", "await", 10), ("stack_new", "await", 10)},
    "overhead": {*product(("push", "pop1", "get", "stack"), ("no persistence",), (100,))},
    "recovery": {
        *product(("read and parse",), ("clean", "kill"), (30,)),
        ("read and parse", "1 MB of log, killed", 20),
    },
    "actors": {*product(("await", "deque and future", "deque, future, async handler", "cast"), LOOPS, (1,))},
    "journal": {
        ("queue in memory at async", "burst", 50),
        *product(("a task a session, a future a push",), ("burst",), (1, 50)),
        ("a task a session, a future a push, heap frozen", "burst", 50),
        ("one file at written", "burst", 50),
        ("one file at synced", "burst", 50),
        ("a file per session at synced", "burst", 50),
        ("lone write and fdatasync", "burst", 1),
        *product((f"sqlite, a transaction a batch at {level}" for level in ("written", "synced")), ("burst",), (1, 50)),
    },
    "disk": {*product(("content [bytes]", "allocated [bytes]"), ("sqlite, a row a turn, 1,000 B",), (200,))},
    "requests": {*product(("JSON and back",), DIALECTS, (20, 60))},
    "replay": {*product(("read and parse",), ("one session",), (300,))},
    "cli": {("python -c pass", "start", 1)},
}
"""Raw limits that must be measured beside, at least."""


def measured(lines: list[dict[str, object]], peer: str) -> set[tuple[object, ...]]:
    return {(line["op"], line["variant"], line["depth"]) for line in lines if line["peer"] == peer}


def run_bench(name: str, directory: Path) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "bench", name, "--quick", "--json", "--directory", str(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False, env=ALONE)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "name",
    [
        "operations",
        "overhead",
        "recovery",
        "actors",
        "journal",
        "disk",
        "requests",
        "replay",
        "handover",
        "hooks",
        "telemetry",
        "cli",
    ],
)
def test_a_bench_prints_lines_with_exactly_the_agreed_keys(name, tmp_path):
    lines = run_bench(name, tmp_path)

    assert lines
    assert all(list(line) == KEYS for line in lines)
    assert {line["bench"] for line in lines} == {name}
    assert measured(lines, "session-actor") == MEASURED[name]
    assert measured(lines, "floor") >= FLOORS.get(name, set())
    assert all((line["p50_us"] is None) or line["p50_us"] > 0 for line in lines)
    assert not list(tmp_path.iterdir())


def test_nothing_that_was_acknowledged_at_written_or_synced_is_lost_at_a_kill(tmp_path):
    lines = run_bench("kill", tmp_path)

    lost = {line["variant"]: line["n"] for line in lines if line["op"] == "lost" and line["peer"] == "session-actor"}
    assert set(lost) == {"async", "written", "synced"}
    assert measured(lines, "session-actor") == MEASURED["kill"]
    assert lost["written"] == lost["synced"] == 0
    assert all(list(line) == KEYS for line in lines)


def test_a_compaction_without_a_model_keeps_every_rule_where_a_cut_to_the_same_length_loses_most(tmp_path):
    lines = run_bench("compaction", tmp_path)

    assert all(list(line) == KEYS for line in lines)
    rules = [line for line in lines if line["op"] == "rules kept" and line["variant"] == "made"]
    ours, cut = (
        next(line for line in rules if line["peer"] == peer) for peer in ("session-actor", "a cut to the same length")
    )
    assert ours["n"] == ours["depth"] > 2 * cut["n"]
