"""How entries become messages: the two ways that all dialects go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from session_actor.blocks import Native, Text
from session_actor.ledger.entries import AssistantEntry, ResultsEntry

from . import media
from .texts import free_object

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from session_actor.blocks import Document, Image
    from session_actor.dialects import Dialect
    from session_actor.ledger.entries import Entry, ShownResult, UserEntry

    UserBlock: TypeAlias = Text | Image | Document | Native

Part: TypeAlias = dict[str, Any]


def alternating(
    entries: Sequence[Entry],
    said: Callable[[AssistantEntry], list[Part]],
    result: Callable[[ShownResult], Part],
    part: Callable[[UserBlock], Part],
    *,
    speaker: str,
    key: str,
) -> list[Part]:
    """Messages of the model and of the user in turns: results and what the user says after them are one of the user's.

    `speaker`: the model's role. `key`: of a message's parts.
    """
    made: list[Part] = []
    for entry in entries:
        if isinstance(entry, AssistantEntry):
            made.append({"role": speaker, key: said(entry)})
        elif isinstance(entry, ResultsEntry):
            made.append({"role": "user", key: [result(shown) for shown in entry.results]})
        elif made and made[-1]["role"] == "user":
            made[-1][key] += [part(block) for block in entry.blocks]
        else:
            made.append({"role": "user", key: [part(block) for block in entry.blocks]})
    return made


def one_by_one(
    entries: Sequence[Entry],
    said: Callable[[AssistantEntry], list[Part]],
    result: Callable[[ShownResult], Part],
    user: Callable[[UserEntry], Part],
) -> list[Part]:
    """Messages, or items, in the order of the entries; each result is one of its own, right after the calls."""
    made: list[Part] = []
    for entry in entries:
        if isinstance(entry, AssistantEntry):
            made += said(entry)
        elif isinstance(entry, ResultsEntry):
            made += [result(shown) for shown in entry.results]
        else:
            made.append(user(entry))
    return made


def part_of(
    dialect: Dialect,
    block: UserBlock,
    text: Callable[[str], Part],
    show: Callable[[Image | Document], Part],
) -> Part:
    """A block of the user's side: a text, one of the dialect's own as it came, or media if the dialect has a form."""
    if isinstance(block, Text):
        return text(block.text)
    if isinstance(block, Native):
        return free_object(block.raw) or text("")
    return show(media.unpacked(block)) if media.carries(dialect, block) else text(media.unseen(block))
