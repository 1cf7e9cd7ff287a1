"""Stepping through a session with keys, on a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import TYPE_CHECKING, Final

from session_actor.errors import SessionActorError

from .asking import MOMENTS, moment_at, number_in
from .codes import Stop
from .harmless import one_line
from .moments import moment_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.console import Console

    from session_actor.replay import Replay

_STEPS: Final = {"n": 1, " ": 1, "p": -1, "N": 10, "P": -10, "]": 100, "[": -100}
_ARROWS: Final = {"\033[C": "n", "\033[B": "n", "\033[D": "p", "\033[A": "p", "\033[H": "0", "\033[F": "$"}
_ARROWS_SENT: Final = {key.replace("[", "O"): meant for key, meant in _ARROWS.items()}
"""As some terminals send them."""
_KEY: Final = re.compile(r"\033[\[O][0-9;]*[A-Za-z~]|\033?.|\033", re.DOTALL)
HELP: Final = (
    "n p: next, previous (arrows too)   N P: ten   ] [: a hundred   0 $: first, last",
    "r R: next, previous request   g: go to   w: why is a frame in the next request, or not",
    "c: show what was said   ?: these keys   q: leave",
)


def step_through(replay: Replay, *, content: bool) -> None:
    """Step through on this terminal until somebody leaves."""
    from rich.console import Console

    with _terminal() as (read_key, ask):
        Stepper(replay, Console(highlight=False), content=content).run(read_key, ask)


class Stepper:
    """Where somebody is, and what the keys do."""

    def __init__(self, replay: Replay, console: Console, *, content: bool) -> None:
        """`content`: whether what was said is shown at first."""
        self._replay = replay
        self._console = console
        self._content = content
        self._told: list[str] = ["? lists the keys"]

    def run(self, read_key: Callable[[], str], ask: Callable[[str], str]) -> None:
        """Draw and do what the keys say. `ask`: asks for a line."""
        while True:
            self._draw()
            key = read_key()
            if key in {"q", "Q", "\033", "\x04", ""}:
                return
            if key == "\x03":
                raise KeyboardInterrupt
            self._told = []
            try:
                self._do(key, ask)
            except (SessionActorError, Stop) as error:
                self._told = [one_line(str(error))]

    def _do(self, key: str, ask: Callable[[str], str]) -> None:
        replay = self._replay
        if key in _STEPS:
            before = replay.moment.seq
            if replay.step(_STEPS[key]).seq == before:
                self._told = ["there is no further record"]
        elif key in {"0", "$"}:
            moment_at(replay, "first" if key == "0" else "last")
        elif key in {"r", "R"}:
            self._to_request(1 if key == "r" else -1)
        elif key == "c":
            self._content = not self._content
        elif key == "g":
            text = ask(f"go to ({MOMENTS}): ").strip()
            if text:
                moment_at(replay, text)
        elif key == "w":
            frame = number_in(ask("why is frame number: ").strip())
            if frame is not None:
                self._told = [one_line(replay.why(frame, seq=replay.moment.seq).what)]
        else:
            self._told = list(HELP)

    def _to_request(self, way: int) -> None:
        here, requests = self._replay.moment.seq, self._replay.requests()
        found = [seq for seq in requests if (seq > here if way > 0 else seq < here)]
        if found:
            self._replay.at(seq=found[0] if way > 0 else found[-1])
        else:
            self._told = ["there is no further request"]

    def _draw(self) -> None:
        from rich.text import Text

        console = self._console
        console.clear()
        lines = list(moment_text(self._replay, self._replay.moment, content=self._content))
        room = max(4, console.size.height - len(self._told) - 3)
        if len(lines) > room:
            lines = [*lines[: room - 1], f"… {len(lines) - room + 1} lines more: `session-actor show` has all"]
        for line in lines:
            console.print(Text.from_ansi(line), overflow="ellipsis", no_wrap=True)
        damage = self._replay.damage
        if damage is not None:
            console.print(Text(one_line(str(damage)), style="red"))
        console.print()
        for line in self._told:
            console.print(Text(line, style="dim"))


@contextlib.contextmanager
def _terminal() -> Generator[tuple[Callable[[], str], Callable[[str], str]]]:
    """What reads a single key of the terminal, and what asks for a line. Keys that were typed ahead are kept."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    ahead = ""

    def read() -> str:
        nonlocal ahead
        key, ahead = first_key(ahead or os.read(terminal, 1_024).decode("utf-8", "replace"))
        return meant(key)

    def ask(what: str) -> str:
        nonlocal ahead
        text, ended, ahead = ahead.partition("\n")
        if ended:
            return text
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        try:
            return text + input(what + one_line(text))
        except EOFError:
            return ""
        finally:
            tty.setcbreak(terminal, termios.TCSADRAIN)

    tty.setcbreak(terminal, termios.TCSADRAIN)
    try:
        yield read, ask
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def first_key(data: str) -> tuple[str, str]:
    """What was sent by one key, and what is behind it: several come at once when they are typed fast."""
    found = _KEY.match(data)
    end = 0 if found is None else found.end()
    return data[:end], data[end:]


def meant(data: str) -> str:
    """The key that a terminal sent; `""`: it was closed."""
    if data.startswith("\033") and len(data) > 1:
        return _ARROWS.get(data) or _ARROWS_SENT.get(data) or "?"
    return data[:1]
