"""Idempotency keys: a command that is sent twice under one key is done once and answered twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import msgspec

from .errors import InvalidArgument, KeyConflict
from .events import AnyEvent, Branched, Checkpointed, Moved, Popped, Pushed
from .frames import Frame

if TYPE_CHECKING:
    from .commands import Command
    from .table import Table

KEYS_KEPT: Final = 1_024
"""How many keys a session remembers: the newest."""

_NOT_ARGUMENTS: Final = frozenset({"key", "durability", "expect_head"})


class Answer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A reply in few words, from which it can be made again at any time."""

    frame: int | None = None
    """The frame of the reply, or the newest of several; None: there was none."""
    popped: int | None = None
    """How many frames from `frame` downwards the reply lists; None: it is one frame."""


class KeyEntry(msgspec.Struct, frozen=True, gc=False):
    """What a key was used for: the record, the fingerprint of the arguments, the reply."""

    seq: int
    args: str
    answer: Answer


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
        self._entries: dict[str, KeyEntry] = {}

    def find(self, key: str, args: str) -> KeyEntry | None:
        """What `key` was used for, None when it is new. Raises `KeyConflict` when it was used with other arguments."""
        entry = self._entries.get(key)
        if entry is not None and entry.args != args:
            raise KeyConflict(key, entry.seq)
        return entry

    def remember(self, key: str, entry: KeyEntry) -> None:
        """Note a key, and forget the oldest above the limit."""
        self._entries[key] = entry
        if len(self._entries) > KEYS_KEPT:
            del self._entries[next(iter(self._entries))]

    def entries(self) -> Mapping[str, KeyEntry]:
        """All keys, oldest first. For reading."""
        return self._entries


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
        case Checkpointed():
            return Answer(event.frame)
        case _:
            return Answer()


def reply_of(table: Table, answer: Answer) -> object:
    """The reply again: a frame, a list of frames, or None."""
    if answer.popped is not None:
        return table.path(answer.frame, answer.popped)
    return None if answer.frame is None else table.get(answer.frame)


def fingerprint(command: Command) -> str:
    """A hash of the command and its arguments, the same in every process and version; key and level do not count.

    A field that has its default does not count either, so that a command may gain fields. Raises `InvalidArgument` for
    arguments that no record could hold.
    """
    digest = blake2b(type(command).__name__.encode(), digest_size=16)
    try:
        for name, value in _fields(command):
            if name not in _NOT_ARGUMENTS:
                _feed(digest, name)
                _feed(digest, value)
    except RecursionError:
        raise InvalidArgument("an argument", "is nested too deeply to be stored") from None
    return digest.hexdigest()


def _fields(struct: msgspec.Struct) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        if value is not field.default and value != field.default:
            found.append((field.name, value))
    return found


def _feed(digest: blake2b, value: object) -> None:
    """Add a value with its type and length, so that no two different values look alike."""
    match value:
        case str():
            _piece(digest, b"s", value.encode("utf-8", "surrogatepass"))
        case bytes() | bytearray() | memoryview() | msgspec.Raw():
            _piece(digest, b"b", bytes(value))
        case bool() | float() | None:
            _piece(digest, b"n", repr(value).encode())
        case int():
            _piece(digest, b"i", hex(value).encode())
        case Frame():
            _feed(digest, value.id)
        case msgspec.Struct():
            _piece(digest, b"o", type(value).__name__.encode())
            _feed(digest, dict(_fields(value)))
        case Mapping():
            _piece(digest, b"m", str(len(value)).encode())
            for key, item in sorted(value.items(), key=_by_key):
                _feed(digest, key)
                _feed(digest, item)
        case Sequence():
            _piece(digest, b"l", str(len(value)).encode())
            for item in value:
                _feed(digest, item)
        case _:
            raise InvalidArgument("an argument", f"of type {type(value).__name__} cannot be stored")


def _by_key(item: tuple[object, object]) -> str:
    return repr(item[0])


def _piece(digest: blake2b, mark: bytes, data: bytes) -> None:
    digest.update(b"%s%d:" % (mark, len(data)))
    digest.update(data)
