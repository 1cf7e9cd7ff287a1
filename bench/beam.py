"""The reference design on the real BEAM, beside ours: one Elixir process that measures when it is asked to.

It waits on its input between its turns, so that it does not disturb the other side's. Without `elixir` on the path
there is no such peer, and everything else is measured all the same.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.harness import Plan

SCRIPT = Path(__file__).parent / "beam" / "reference.exs"


class BeamFailed(Exception):
    """The Elixir process ended or answered something else than ok; its own message is on stderr."""


class Beam:
    """A running Elixir process with the reference design in it."""

    def __init__(self, elixir: str, directory: str) -> None:
        """Start the process; its frame files go below `directory`."""
        command = [elixir, str(SCRIPT), directory]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._pid = int(self._answer("ready")[0])

    def measure(self, op: str, depth: int, plan: Plan, mode: str = "ets") -> Sample:
        """Measure one round of an operation of the reference.

        Args:
            op: echo, push, pop1, pop10, fork, fork_first, checkpoint, goto, goto_first,
                get_call, get_table or get_stack.
            depth: Frames on the stack before each batch.
            plan: Batches, their size, and single calls.
            mode: none (no table), ets, or disk (table and a file per frame).

        Raises:
            BeamFailed: The process ended or refused.

        """
        self._send(f"measure {mode} {op} {depth} {plan.batches} {plan.batch} {max(1, plan.singles)}")
        n, p50, mean, p99 = (float(word) for word in self._answer("ok"))
        return Sample(int(n), p50 / 1e3, mean / 1e3, p99 / 1e3)

    def recover(self, sessions: int, frames: int) -> tuple[int, float]:
        """Return how many frames the reference reads back from its files, and the seconds it takes."""
        self._send(f"recover {sessions} {frames}")
        found, spent = self._answer("ok")
        return int(found), int(spent) / 1e9

    def lose(self, frames: int, directory: str) -> int:
        """Push so many frames with the disk task, kill the process at the last reply, return how many were lost."""
        self._send(f"lose {frames}")
        self._answer("ok")
        os.kill(self._pid, signal.SIGKILL)
        self._process.wait()
        return frames - len(list((Path(directory) / "lose").glob("frame_*.bin")))

    def close(self) -> None:
        """End the process and wait for it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None  # noqa: S101 - opened with a pipe
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _answer(self, word: str) -> list[str]:
        assert self._process.stdout is not None  # noqa: S101 - opened with a pipe
        words = self._process.stdout.readline().split()
        if not words or words[0] != word:
            message = (
                f"the Elixir process answered {words!r} instead of {word!r}; run elixir {SCRIPT} DIRECTORY to see why"
            )
            raise BeamFailed(message)
        return words[1:]


@contextmanager
def beam() -> Iterator[tuple[Beam, str] | tuple[None, None]]:
    """Run the reference for a while, with its directory; (None, None) when Elixir is not installed."""
    elixir = shutil.which("elixir")
    if elixir is None:
        yield None, None
        return
    with tempfile.TemporaryDirectory(prefix="bench-beam-") as directory:
        process = Beam(elixir, directory)
        try:
            yield process, directory
        finally:
            process.close()
