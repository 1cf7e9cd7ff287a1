"""Callers' values, touched without running a line of their own code.

A class of a caller may do anything when it is compared, iterated, measured, shown or asked for its class: raise, lie,
or take for ever. `isinstance` asks it; these do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN_CHARACTERS: Final = 512  # as long as a name may be
_SHOWN_BITS: Final = 64


def is_a(value: object, kinds: type | tuple[type, ...]) -> bool:
    """Whether the type of `value` derives from one of `kinds`, whatever `value` says of itself."""
    return issubclass(type(value), kinds)


def plain_str(value: object) -> str:
    """A str, or an instance of a class derived from it, as an exact str."""
    return str.__str__(cast("str", value))


def items_of(value: object) -> Iterator[Any]:
    """The items of a list or a tuple, or of an instance of a class derived from one of them."""
    base: Any = list if is_a(value, list) else tuple
    return cast("Iterator[Any]", base.__iter__(value))


def shown(value: object) -> str:
    """A value in the words of an error: a text or an int when it is short, else what kind of value it is."""
    if value is None:
        return "None"
    if is_a(value, str):
        text = plain_str(value)
        return repr(text) if len(text) <= _SHOWN_CHARACTERS else f"a text of {len(text)} characters"
    if is_a(value, int):
        bits = int.bit_length(cast("int", value))
        return int.__repr__(cast("int", value)) if bits <= _SHOWN_BITS else f"an int of {bits} bits"
    return f"a value of type {type(value).__name__}"
