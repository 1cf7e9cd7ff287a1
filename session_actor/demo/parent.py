"""The process that kills: it starts the child, reads its acknowledgements, kills it, and starts it again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, NamedTuple

from .protocol import Acknowledged, Finished, Message, Opening, Ready, decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .display import Progress

_STEPS_AHEAD = 8  # how far the child may be ahead of what was read: a kill hits where it was aimed at
_DELAY_S = 0.003  # the longest wait between the aim and the kill
_SHARE_IN_RECOVERY = 0.2


class ChildFailed(Exception):
    """The child ended although nobody killed it; the message ends with what it said."""


class Kill(NamedTuple):
    """When to kill: after the acknowledgement of `step`, or while the child recovers after that; `delay_s` later."""

    step: int
    in_recovery: bool
    delay_s: float


class Options(NamedTuple):
    """Where the session lives, what is fed, and how often and how randomly it is killed."""

    directory: Path
    transcript: Path
    durability: str
    kills: int
    seed: int


@dataclass(slots=True)
class Outcome:
    """What the parent saw."""

    acknowledged: dict[int, Acknowledged] = field(default_factory=dict[int, Acknowledged])
    """By step: the newest acknowledgement."""
    lost: list[int] = field(default_factory=list[int])
    """Steps that were acknowledged and that a recovery did not find."""
    kills: int = 0
    kills_in_a_row: int = 0
    """Kills that came before anything more was fed since the one before."""
    recoveries_ms: list[float] = field(default_factory=list[float])
    """How long each start after a kill took, from opening the store to a session that answers."""
    pushes_us: list[float] = field(default_factory=list[float])


def aim(kills: int, steps: int, seed: int) -> deque[Kill]:
    """Choose the kills: anywhere in the transcript, some of them while the child recovers from the one before."""
    chance = random.Random(seed)  # noqa: S311  # nothing secret: the same seed must give the same kills
    points = sorted(chance.randrange(steps) for _ in range(kills))
    drawn = (Kill(step, chance.random() < _SHARE_IN_RECOVERY, chance.uniform(0, _DELAY_S)) for step in points)
    return deque(kill._replace(in_recovery=kill.in_recovery and number > 0) for number, kill in enumerate(drawn))


class Parent:
    """Runs one demo to its end."""

    def __init__(self, options: Options, steps: int, progress: Progress) -> None:
        """Prepare for a transcript of `steps` steps."""
        self.outcome = Outcome()
        self._options = options
        self._steps = steps
        self._progress = progress
        self._aims = aim(options.kills, steps, options.seed)
        self._killed_at: int | None = None

    def run(self) -> Outcome:
        """Start the child until it has fed the whole transcript and every kill has hit. Raises ChildFailed."""
        finished = False
        while self._aims or not finished:
            finished = self._one_life()
        return self.outcome

    def _one_life(self) -> bool:
        """Run one child until it is through (True) or was killed (False)."""
        options = self._options
        command = (sys.executable, "-m", "session_actor.demo.child", options.directory, options.transcript)
        with (
            tempfile.TemporaryFile() as said,
            subprocess.Popen(  # noqa: S603  # our own module
                (*command, options.durability), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
            ) as child,
        ):
            try:
                kill, finished = self._listen(child)
                code = child.wait()
            except BaseException:
                child.kill()
                raise
            if kill:
                self._note_kill(kill, hit=code == -signal.SIGKILL)
            elif code or not finished:
                said.seek(0)
                raise ChildFailed(f"the child ended with code {code}: {said.read().decode(errors='replace')}")
        return finished

    def _listen(self, child: subprocess.Popen[bytes]) -> tuple[Kill | None, bool]:
        """Read the child's messages until its pipe ends; returns how it was killed, and whether it was through."""
        kill = None
        finished = False
        for message in _messages(child.stdout):
            self._take(message)
            finished = finished or isinstance(message, Finished)
            if kill is None and self._is_aimed_at(message):
                kill = self._aims.popleft()
                time.sleep(kill.delay_s)
                child.kill()
            elif kill is None:
                _allow(child.stdin, message)
        return kill, finished

    def _take(self, message: Message) -> None:
        """Note one message; what the child told before it was killed counts like everything else."""
        outcome = self.outcome
        if isinstance(message, Ready):
            if outcome.kills:
                outcome.recoveries_ms.append(message.recovery_ms)
            missing = [step for step in outcome.acknowledged if step >= message.next_step]
            outcome.lost.extend(missing)
            for step in missing:
                del outcome.acknowledged[step]
        elif isinstance(message, Acknowledged):
            outcome.acknowledged[message.step] = message
            if message.frame:
                outcome.pushes_us.append(message.took_us)
            self._progress.step(message.step + 1, outcome.kills)

    def _is_aimed_at(self, message: Message) -> bool:
        if not self._aims:
            return False
        next_kill = self._aims[0]
        if isinstance(message, Opening):
            return next_kill.in_recovery
        if isinstance(message, Ready):
            return next_kill.step < message.next_step  # passed already: the child was ahead when it was killed before
        return isinstance(message, Acknowledged) and message.step >= next_kill.step

    def _note_kill(self, kill: Kill, *, hit: bool) -> None:
        """Count a kill; one that came when the child was through is aimed at the next recovery instead."""
        if hit:
            self.outcome.kills += 1
            step = len(self.outcome.acknowledged)
            again = step == self._killed_at
            self.outcome.kills_in_a_row += again
            self._killed_at = step
            self._progress.killed(self.outcome.kills, step, again=again)
        else:
            self._aims.appendleft(Kill(kill.step, in_recovery=True, delay_s=0.0))


def _allow(pipe: IO[bytes] | None, message: Message) -> None:
    """Allow the child its first steps, then one step for each that was read."""
    if pipe is None or not isinstance(message, Ready | Acknowledged):
        return
    try:
        os.write(pipe.fileno(), b"." * (_STEPS_AHEAD if isinstance(message, Ready) else 1))
    except BrokenPipeError:
        return  # it is through, or gone: its last messages tell which


def _messages(pipe: IO[bytes] | None) -> Iterator[Message]:
    for line in pipe or ():
        message = decode(line)
        if message is not None:
            yield message
