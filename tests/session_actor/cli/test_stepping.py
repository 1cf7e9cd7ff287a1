"""Stepping through a session with keys."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys

import pytest
from rich.console import Console

from session_actor.cli.stepping import HELP, Stepper, meant
from session_actor.replay import Replay, read_store


@pytest.fixture
def step(made):
    """Presses keys, one after the other; returns what was drawn for each, and where it ended."""

    def step(*keys: str, typed: tuple[str, ...] = (), content: bool = False) -> tuple[list[str], int]:
        out = io.StringIO()
        console = Console(file=out, width=100, height=40, highlight=False)
        drawn: list[str] = []
        left, lines = [*keys, "q"], list(typed)

        def read_key() -> str:
            drawn.append(out.getvalue())
            out.seek(0)
            out.truncate()
            return left.pop(0)

        with read_store(made) as reader, Replay.of(reader, "user-42") as replay:
            Stepper(replay, console, content=content).run(read_key, lambda _: lines.pop(0))
            return drawn, replay.moment.seq

    return step


@pytest.mark.parametrize(
    ("keys", "seq"),
    [
        *(("", 15), ("p", 14), ("ppn", 14), ("P", 5), ("PN", 15), ("0", 1), ("0 ", 2), ("0$", 15), ("[", 1)),
        *(("0]", 15), ("0r", 6), ("R", 6), ("n", 15), ("0p", 1)),
    ],
)
def test_keys_go_to_records(step, keys, seq):
    drawn, here = step(*keys)
    assert here == seq
    assert f"record {seq} of 15" in drawn[-1]


def test_what_was_said_is_shown_when_asked_for(step):
    drawn, _ = step("g", "c", "c", typed=("frame:2",))
    assert ["secret question" in each for each in drawn] == [False, False, True, False]
    assert "secret" in step("g", typed=("frame:2",), content=True)[0][-1]
    assert "\x1b[31m" not in "".join(step("g", "c", typed=("frame:2",))[0])


def test_one_can_ask_why_where_one_stands(step):
    drawn, _ = step("g", "w", typed=("11", "9"))
    assert "frame 9: it is not in the request: it was pushed later" in drawn[-1]
    drawn, _ = step("w", typed=("99",))
    assert "99" in drawn[-1]


def test_what_cannot_be_gone_to_is_told_and_one_goes_on(step):
    drawn, here = step("g", "r", "?", "w", "g", typed=("blub", "9" * 5000, "9" * 5000))
    assert here == 15
    assert "is no moment" in drawn[1]
    assert "there is no further request" in drawn[2]
    assert HELP[0] in drawn[3]


def test_ctrl_c_leaves_with_a_keyboard_interrupt(step):
    with pytest.raises(KeyboardInterrupt):
        step("\x03")


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        *(("n", "n"), ("\033", "\033"), ("\033[C", "n"), ("\033OD", "p"), ("\033[99~", "?"), ("", ""), ("nn", "n")),
        ("\x04", "\x04"),
    ],
)
def test_keys_are_understood_as_terminals_send_them(sent, key):
    assert meant(sent) == key


def test_on_a_terminal_replay_steps_through(made):
    parent, child = pty.openpty()
    command = (sys.executable, "-m", "session_actor", "replay", str(made), "user-42")
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=subprocess.PIPE) as process:
        os.close(child)
        try:
            assert "record 15 of 15" in read_until(parent, "keys")
            os.write(parent, b"p")
            assert "record 14 of 15" in read_until(parent, "frame 9")
            os.write(parent, b"pp\033[Ap")  # as fast as a terminal sends what is pasted
            assert "record 10 of 15" in read_until(parent, "record 10 of 15")
            os.write(parent, b"g2\nn")
            assert "record 3 of 15" in read_until(parent, "record 3 of 15")
            os.write(parent, b"q")
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
            os.close(parent)
    assert (process.returncode, err) == (0, b"")


def read_until(terminal: int, text: str) -> str:
    """What the terminal shows up to this text; less when nothing comes any more."""
    seen = ""
    while text not in seen and select.select([terminal], [], [], 30)[0]:
        seen += os.read(terminal, 4096).decode(errors="replace")
    return seen
