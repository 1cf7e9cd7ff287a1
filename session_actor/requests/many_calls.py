"""Turns of more calls than one message takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.blocks import Thinking, ToolCall
from session_actor.ledger.entries import AssistantEntry, ResultsEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from session_actor.ledger.entries import Entry


def shared_out(entries: Sequence[Entry], most: int) -> list[Entry]:
    """Entries of which none has more than `most` calls: the rest of a turn's calls come after the results of the first.

    What such a turn says comes with the first of them, what it thought with each: servers of models that reason refuse
    calls without.
    """
    made: list[Entry] = []
    for entry in entries:
        said = made[-1] if made else None
        if isinstance(entry, ResultsEntry) and len(entry.results) > most and isinstance(said, AssistantEntry):
            made[-1:] = _parts(said, entry, most)
        else:
            made.append(entry)
    return made


def _parts(said: AssistantEntry, answered: ResultsEntry, most: int) -> Iterator[Entry]:
    calls = [block for block in said.blocks if isinstance(block, ToolCall)]
    beside = [block for block in said.blocks if not isinstance(block, ToolCall)]
    for start in range(0, len(calls), most):
        yield AssistantEntry((*beside, *calls[start : start + most]))
        yield ResultsEntry(answered.results[start : start + most])
        beside = [block for block in beside if isinstance(block, Thinking)]
