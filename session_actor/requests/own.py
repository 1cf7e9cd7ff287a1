"""Copies of what JSON can hold: every dict and every list new, all other values shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec import to_builtins

from session_actor.errors import InvalidArgument
from session_actor.given.plain import is_a, items_of, plain_str, shown
from session_actor.persistence.format.values import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Mapping

_T = TypeVar("_T")

_SHARED: Final = (bytes,)


def owned(value: _T) -> _T:
    """A copy of dicts, lists, str, bytes, numbers, bool and None that shares no dict and no list with `value`."""
    return cast("_T", to_builtins(value, builtin_types=_SHARED))


def owned_extra(extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy of what an embedder gave as `extra`; None: nothing.

    Its dicts, lists, tuples and strs (enums of strs too) become plain ones. Raises `InvalidArgument` naming the place
    of anything that a request cannot carry.
    """
    if extra is None:
        return {}
    if not is_a(extra, dict):
        raise InvalidArgument("extra", f"must be a dict, got {type(extra).__name__}")
    return cast("dict[str, Any]", _plain(extra, "extra", 1))


def _plain(value: object, where: str, depth: int) -> object:
    if value is None or value is True or value is False:
        return value
    if is_a(value, str):
        return plain_str(value)
    if is_a(value, int):
        return int.__pos__(cast("int", value))
    if is_a(value, float):
        return _finite(float.__pos__(cast("float", value)), where)
    if is_a(value, bytes):
        return bytes(memoryview(cast("bytes", value)))
    return _plain_inside(value, where, depth)


def _finite(number: float, where: str) -> float:
    if number - number != 0:
        raise InvalidArgument(where, "is not a number that JSON can carry")
    return number


def _plain_inside(value: object, where: str, depth: int) -> object:
    if depth > MAX_DEPTH:
        raise InvalidArgument("extra", f"is nested deeper than {MAX_DEPTH} levels, or contains itself")
    if is_a(value, (list, tuple)):
        return [_plain(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(items_of(value))]
    if not is_a(value, dict):
        raise InvalidArgument(where, f"is a {type(value).__name__}: give plain dicts, lists, texts and numbers")
    copy: dict[str, object] = {}
    for key, item in cast("Any", dict).items(value):
        if not is_a(key, str):
            raise InvalidArgument(where, f"has a key of type {type(key).__name__}: keys must be texts")
        name = plain_str(key)
        copy[name] = _plain(item, f"{where}[{shown(name)}]", depth + 1)
    return copy
