"""Idempotency keys: a command that is sent twice under one key is done once and answered twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from session_actor.errors import KeyConflict
from session_actor.events import AnyEvent, Branched, Checkpointed, Moved, Pinned, Popped, Pushed, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .table import Table

KEYS_KEPT: Final = 1_024
"""How many keys a session remembers: the newest."""


class Answer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A reply in few words, from which it can be made again at any time."""

    frame: int | None = None
    """The frame of the reply, or the newest of several; None: there was none."""
    popped: int | None = None
    """How many frames from `frame` downwards the reply lists; None: it is one frame. Of a refused request: whether the
    next one can be shorter."""


class KeyEntry(msgspec.Struct, frozen=True, gc=False):
    """What a key was used for: the record, the fingerprint of the arguments, the reply."""

    seq: int
    args: str
    answer: Answer


@final
class Repeat(msgspec.Struct, frozen=True):
    """The command was carried out before; there is nothing to apply or append."""

    reply: Any
    """What it was answered then."""
    seq: int
    """The record whose level the caller waits for."""


class Keys:
    """The newest keys of a session."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        """Remember nothing."""
        self._entries: dict[str, KeyEntry] | None = None  # made by the first key: most sessions never have one

    def find(self, key: str, args: str) -> KeyEntry | None:
        """What `key` was used for, None when it is new. Raises `KeyConflict` when it was used with other arguments."""
        entry = None if self._entries is None else self._entries.get(key)
        if entry is not None and entry.args != args:
            raise KeyConflict(key, entry.seq)
        return entry

    def remember(self, key: str, entry: KeyEntry) -> None:
        """Note a key, and forget the oldest above the limit."""
        if self._entries is None:
            self._entries = {}
        self._entries[key] = entry
        if len(self._entries) > KEYS_KEPT:
            del self._entries[next(iter(self._entries))]

    def entries(self) -> Mapping[str, KeyEntry]:
        """All keys, oldest first. For reading."""
        return self._entries or {}


def answer_of(event: AnyEvent) -> Answer:
    """What the command of `event` was answered."""
    match event:
        case Pushed():
            return Answer(event.id)
        case Popped():
            return Answer(event.head, event.n)
        case Moved():
            return Answer(event.to)
        case Branched():
            return Answer(event.at)
        case Checkpointed() | Pinned():
            return Answer(event.frame)
        case _:
            return Answer(popped=int(event.too_long and event.shorter) if isinstance(event, RequestRefused) else None)


def reply_of(table: Table, answer: Answer) -> object:
    """The reply again: a frame, a list of frames, or None."""
    if answer.popped is not None:
        return table.path(answer.frame, answer.popped)
    return None if answer.frame is None else table.get(answer.frame)
