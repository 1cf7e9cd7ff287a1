"""Summaries that no model wrote: what the facts say, and the beginnings of what was said. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from session_actor.blocks import ToolCall
from session_actor.ledger.texts import one_line
from session_actor.requests.texts import clean
from session_actor.tokens.estimate import estimate_tokens

from .headings import MADE_OF_FACTS, Layout, compose, is_nothing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from session_actor.frames import Frame

    from .facts import Facts

_PROGRESS: Final = "Progress"
_STATEMENT_CHARACTERS: Final = 200
_STATEMENTS: Final = 40
_INPUTS: Final = 2
"""What has to be kept and the user's words get half of the cap, where that is enough."""

_SPARE: Final = 16
"""A sixteenth of the cap stays free."""

_UNPLAIN: Final = re.compile(r"<\||\|>|```|~~~|^\s*[#{\[]|\"\s*:")
"""What no line has that is taken over: marks of chat templates, code, headings, JSON."""


def extracts(facts: Facts, earlier: str | None, frames: Sequence[Frame], cap_tokens: int, family: str) -> Iterator[str]:
    """Summaries without a model, the fullest first.

    The last one holds the facts alone. The one before it tells besides what the assistant said, each time in its first
    words, and what the summary before told of it: that is more, but it may hold what no summary may hold.

    Args:
        facts: what has to be kept.
        earlier: the summary before; None: there is none.
        frames: what gives way, oldest first.
        cap_tokens: how long it may be.
        family: of the tokenizer.
    """
    short = compose(facts, cap_tokens=cap_tokens // _INPUTS, family=family)
    room = cap_tokens - cap_tokens // _SPARE - estimate_tokens(short, family)
    newest = _fitting(reversed(_statements(frames)), room // 2 if earlier else room, family)
    oldest = _fitting(reversed(_progress(earlier or "")), room - _cost(newest, family), family)
    lines = [*reversed(oldest), *reversed(newest)]
    if lines:
        yield _with_progress(short, lines)
    yield compose(facts, cap_tokens=cap_tokens - cap_tokens // _SPARE, family=family)


def _statements(frames: Iterable[Frame]) -> list[str]:
    """How the assistant's last answers begin; what it says before it calls tools is none."""
    found = dict[str, None]()
    for frame in frames:
        for turn in frame.turns:
            if turn.role != "assistant" or any(type(block) is ToolCall for block in turn.blocks):
                continue
            first = turn.text.strip().split("\n", 1)[0]
            line = f"- {one_line(clean(first), _STATEMENT_CHARACTERS)}"
            if first and not first.endswith(":") and not _UNPLAIN.search(first):
                found.pop(line, None)
                found[line] = None
    return list(found)[-_STATEMENTS:]


def _progress(summary: str) -> list[str]:
    """The points that an earlier summary has of what was done."""
    layout = Layout(summary)
    section = layout.section(_PROGRESS)
    if section is None or is_nothing(layout.body(section)):
        return []
    lines = [line.rstrip() for line in layout.body(section).splitlines()]
    return [line for line in lines if line and MADE_OF_FACTS not in line and not _UNPLAIN.search(line)]


def _fitting(lines: Iterable[str], room: int, family: str) -> list[str]:
    """The first lines that there is room for."""
    found = list[str]()
    for line in lines:
        room -= estimate_tokens(line, family) + 1
        if room < 0:
            break
        found.append(line)
    return found


def _cost(lines: Iterable[str], family: str) -> int:
    return sum(estimate_tokens(line, family) + 1 for line in lines)


def _with_progress(text: str, lines: Iterable[str]) -> str:
    """The summary with more points about what was done."""
    layout = Layout(text)
    section = layout.section(_PROGRESS)
    if section is None:
        return text
    body = layout.body(section).strip().splitlines()
    more = [line for line in lines if line not in body]
    return "\n".join((*layout.lines[: section.heading + 1], *body, *more, "", *layout.lines[section.end :]))
