"""Reads agent transcripts: JSON lines of the Pi coding agent, as they are, into turns and blocks.

A line has a `type`: `session` (the header), `message` (a turn), `model_change` or `thinking_level_change`. Messages of
the roles `user`, `assistant` and `toolResult` become turns of the roles `user`, `assistant` and `tool`; what a turn has
no place for (clock times, details for the agent's own display) is left out. `import_transcript` reads more: trees,
compactions, and the transcripts of others.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from session_actor.transfer.fields import UNREADABLE, UnknownName, parsed, reason_of, text
from session_actor.transfer.lines import bare_line, lines_of, too_long
from session_actor.transfer.notes import NAMED_AT_MOST
from session_actor.transfer.pi_turns import pi_turn

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator

    from session_actor.frames import Turn


class ModelChange(NamedTuple):
    """From here on another model answers."""

    model: str


class Entry(NamedTuple):
    """One line that says something: where it begins [bytes], and the turn or the change of model."""

    offset: int
    content: Turn | ModelChange


class UnreadableLine(NamedTuple):
    """One line that could not be read: where it begins [bytes], its number from 1, and why; never its text."""

    offset: int
    number: int
    reason: str


class Transcript:
    """The turns of one transcript file, read lazily and off the event loop.

    `async for entry in Transcript(path)` gives each Entry in the order of the file. A line that cannot be read is added
    to `unreadable` and the reading goes on; of very many the first 1,000 are there, and `unreadable_count` tells how
    many there are. Every iteration begins at the start of the file, with an empty list.

    Raises OSError, from the iteration, when the file cannot be opened or read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Name the file; nothing is read yet."""
        self.path = path
        self.unreadable: list[UnreadableLine] = []
        self.unreadable_count = 0

    async def __aiter__(self) -> AsyncIterator[Entry]:
        """Read the file from its start; cancelling closes it."""
        self.unreadable, self.unreadable_count = [], 0
        async with aclosing(lines_of(self.path)) as lines:
            async for offset, number, data in lines:
                content = self._content(data, offset, number)
                if content is not None:
                    yield Entry(offset, content)

    def _content(self, line: bytes | None, offset: int, number: int) -> Turn | ModelChange | None:
        """Read one line; None when it says nothing or cannot be read."""
        if line is None:
            self._unread(offset, number, too_long())
            return None
        said = bare_line(line)
        if not said:
            return None
        try:
            return _read_line(parsed(said))
        except UNREADABLE as error:
            self._unread(offset, number, reason_of(error))
            return None

    def _unread(self, offset: int, number: int, reason: str) -> None:
        self.unreadable_count += 1
        if len(self.unreadable) < NAMED_AT_MOST:
            self.unreadable.append(UnreadableLine(offset, number, reason))


def _read_line(line: dict[str, Any]) -> Turn | ModelChange | None:
    kind = line["type"]
    if kind == "message":
        return pi_turn(line["message"])
    if kind in ("session", "model_change"):
        return ModelChange(text(line["modelId"]))
    if kind == "thinking_level_change":
        return None
    raise UnknownName("an unknown type of line")
