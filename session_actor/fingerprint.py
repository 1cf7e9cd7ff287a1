"""Fingerprints of commands: whether a key comes back with the same arguments."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import msgspec

from .errors import InvalidArgument
from .frames import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .commands import Command

Parts: TypeAlias = "tuple[bytes, bytes, Iterable[object]]"
"""A mark of the type, the bytes of the value itself, the values inside it."""

_NOT_ARGUMENTS: Final = frozenset({"key", "durability", "expect_head"})


def fingerprint(command: Command) -> str:
    """A hash of the command and its arguments, the same in every process and version of this package.

    Key, level and expected head do not count: a retry may change them. A field that has its default does not count
    either, so that a command may gain fields. Raises `InvalidArgument` for arguments that no record could hold.
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
        value: object = getattr(struct, field.name)
        if value is not field.default and value != field.default:
            found.append((field.name, value))
    return found


def _feed(digest: blake2b, value: object) -> None:
    """Add a value with type and length, so that no two different values look alike."""
    mark, own, inside = _scalar(value) or _container(value)
    digest.update(b"%s%d:" % (mark, len(own)))
    digest.update(own)
    for item in inside:
        _feed(digest, item)


def _scalar(value: object) -> Parts | None:
    if isinstance(value, str):
        return b"s", value.encode("utf-8", "surrogatepass"), ()
    if value is None or isinstance(value, bool | float):
        return b"n", repr(value).encode(), ()
    if isinstance(value, int):
        return b"i", hex(value).encode(), ()
    if isinstance(value, bytes | bytearray | memoryview | msgspec.Raw):
        return b"b", bytes(cast("bytes", value)), ()
    return None


def _container(value: object) -> Parts:
    if isinstance(value, Frame):
        return b"f", b"", (value.id,)
    if isinstance(value, msgspec.Struct):
        return b"o", type(value).__name__.encode(), (dict(_fields(value)),)
    if isinstance(value, Mapping):
        items = sorted(cast("Mapping[object, object]", value).items(), key=_by_key)
        return b"m", str(len(items)).encode(), [part for item in items for part in item]
    if isinstance(value, list | tuple):
        listed = cast("list[object]", value)
        return b"l", str(len(listed)).encode(), listed
    raise InvalidArgument("an argument", f"of type {type(value).__name__} cannot be stored")


def _by_key(item: tuple[object, object]) -> str:
    return repr(item[0])
