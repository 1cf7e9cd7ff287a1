"""Fingerprints of commands: whether a key comes back with the same arguments."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec

from session_actor.errors import InvalidArgument
from session_actor.frames import Frame

from .plain import is_a, items_of, plain_str

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.commands import Command

Parts: TypeAlias = "tuple[bytes, bytes, Iterable[object]]"
"""A mark of the type, the bytes of the value itself, the values inside it."""

_NOT_ARGUMENTS: Final = frozenset({"key", "durability", "expect_head", "judged", "stated"})


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
    except (InvalidArgument, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a value may be of a caller's own class, and that may raise anything
        raise InvalidArgument("an argument", f"cannot be read: it raised {type(error).__name__}") from None
    return digest.hexdigest()


def _fields(struct: msgspec.Struct) -> list[tuple[str, object]]:
    """The fields that do not have their defaults. Only what is of the default's own type is compared with it."""
    named: tuple[str, ...] | None = getattr(type(struct), "IDENTITY", None)
    if named is not None:
        return [(name, getattr(struct, name)) for name in named]
    found: list[tuple[str, object]] = []
    for name, default in _defaults(type(struct)):
        value: object = getattr(struct, name)
        if value is not default and (type(value) is not type(default) or value != default):
            found.append((name, value))
    return found


@lru_cache(maxsize=256)
def _defaults(kind: type[msgspec.Struct]) -> tuple[tuple[str, object], ...]:
    """Each field with its default. Not by `msgspec.structs.fields`, which wants the types of all fields imported."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    required = len(names) - len(defaults)
    return tuple(zip(names, (msgspec.NODEFAULT,) * required + defaults, strict=True))


def _feed(digest: blake2b, value: object) -> None:
    """Add a value with type and length, so that no two different values look alike."""
    mark, own, inside = _scalar(value) or _container(value)
    digest.update(b"%s%d:" % (mark, len(own)))
    digest.update(own)
    for item in inside:
        _feed(digest, item)


def _scalar(value: object) -> Parts | None:
    if is_a(value, str):
        return b"s", plain_str(value).encode("utf-8", "surrogatepass"), ()
    if value is None or value is True or value is False:
        return b"n", repr(value).encode(), ()
    if is_a(value, float):
        return b"n", float.__repr__(cast("float", value)).encode(), ()
    if is_a(value, int):
        return b"i", hex(cast("int", value)).encode(), ()
    if is_a(value, (bytes, bytearray, memoryview)):
        return b"b", bytes(memoryview(cast("bytes", value))), ()
    return (b"b", bytes(value), ()) if isinstance(value, msgspec.Raw) else None


def _container(value: object) -> Parts:
    if is_a(value, Frame):
        return b"f", b"", (cast("Frame", value).id,)
    if is_a(value, msgspec.Struct):
        return b"o", type(value).__name__.encode(), (dict(_fields(cast("msgspec.Struct", value))),)
    if is_a(value, dict):
        items: list[tuple[object, object]] = sorted(cast("Any", dict).items(value), key=_by_key)
        return b"m", str(len(items)).encode(), [part for item in items for part in item]
    if is_a(value, (list, tuple)):
        listed = list(items_of(value))
        return b"l", str(len(listed)).encode(), listed
    raise InvalidArgument("an argument", f"of type {type(value).__name__} cannot be stored")


def _by_key(item: tuple[object, object]) -> str:
    return repr(plain_str(item[0])) if is_a(item[0], str) else ""  # any other key is refused later
