"""What a call looks like on the wire: its id and its arguments."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from session_actor.persistence.format.values import MAX_DEPTH
from session_actor.requests.texts import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.blocks import CallRef

_IDS: Final[dict[str, re.Pattern[str]]] = {
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "openai_chat": re.compile(r"[!-~]{1,40}"),
    "openai_responses": re.compile(r"[!-~]{1,64}"),
    "gemini": re.compile(r"[!-~]{1,64}"),
}
"""The ids that each dialect takes. Chat Completions refuses more than 40 characters, Responses more than 64."""

_SHORT: Final = re.compile(r"[a-zA-Z0-9]{9}")
"""What Mistral takes: "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9."."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_INDEXES: Final = len(_DIGITS) ** 3
"""A short id is the frame, in six digits, and the index, in three."""

_NESTED: Final = frozenset({dict, list})


class WireIds:
    """Gives each call of a view an id of its own, the provider's where it can; knows the ids of native items, too."""

    __slots__ = ("_dialect", "_form", "_items", "_short", "_used")

    def __init__(self, dialect: str, *, short: bool = False) -> None:
        """For requests of this dialect; `short`: with ids of nine letters and digits."""
        self._dialect = dialect
        self._short = short
        self._form = _SHORT if short else _IDS[dialect]
        self._used = set[str]()
        self._items = set[str]()

    def give(self, ref: CallRef, given: str, dialect: str | None) -> str:
        """The id of the call `ref`. `given`: its provider's; `dialect`: of the turn, None: not known.

        `""` for a call of Gemini's without one, when it goes back there: Gemini matches those by their order.
        """
        is_own = dialect is None or dialect == self._dialect
        if not given and dialect == "gemini" == self._dialect:
            return ""
        if not is_own or given in self._used or not self._form.fullmatch(given):
            given = self._short_id(ref) if self._short else self._id(ref)
        self._used.add(given)
        return given

    def _id(self, ref: CallRef) -> str:
        given = f"call_{ref.frame}_{ref.index}"
        while given in self._used:
            given += "_"
        return given

    def _short_id(self, ref: CallRef) -> str:
        number = ref.frame * _INDEXES + ref.index
        while (given := _nine_digits(number)) in self._used:
            number += _INDEXES // 2
        return given

    def claim(self, item: str) -> bool:
        """Whether this id of a native item is still free, and from now on it is not. `""` is always free."""
        if item in self._items:
            return False
        if item:
            self._items.add(item)
        return True

    def copy(self) -> WireIds:
        """The same, on its own."""
        other = WireIds(self._dialect, short=self._short)
        other._used, other._items = set(self._used), set(self._items)
        return other


def _nine_digits(number: int) -> str:
    digits = ""
    for _ in range(9):
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


def object_text(arguments: str) -> str | None:
    """The arguments as the text of a JSON object that can be sent; None when they are none.

    The text stays as the model wrote it, unless it holds a lone surrogate. Nested deeper than 200, or with a number
    that is not finite, it counts as none.
    """
    try:
        value: Any = _DECODER.decode(arguments)
    except (ValueError, RecursionError):
        return None
    if type(value) is not dict or _is_deep(arguments, cast("Any", value)):
        return None
    if "\\u" not in arguments and clean(arguments) is arguments:
        return arguments
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    sendable = clean(written)
    return arguments if sendable is written else sendable


def is_clean(*given: str | None) -> bool:
    """Whether UTF-8 can carry all of these texts."""
    return all(text is None or clean(text) is text for text in given)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _finite(number: str) -> float:
    value = float(number)
    if value - value != 0:
        raise ValueError("not finite")
    return value


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _is_deep(text: str, value: Any) -> bool:
    """Whether a value is nested too deep; most texts have too few brackets for that."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer) if type(inner) in _NESTED]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    return cast("dict[str, Any]", value).values() if type(value) is dict else value
