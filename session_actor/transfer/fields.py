"""Values of foreign JSON: each is what it must be, or the line is unread for a reason without a word of its text."""

from __future__ import annotations

import binascii
import json
from datetime import UTC, datetime
from typing import Any, Final

from session_actor.errors import InvalidArgument, RecordTooLarge, ValueNotStorable
from session_actor.state.times import FIRST_US, LAST_US, as_us

_OTHER_TYPE = "a field has another type than expected"
_MICROSECONDS: Final = 1_000_000


class UnknownName(ValueError):
    """A type or role that this form does not know; its text may be shown."""


UNREADABLE: Final = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    InvalidArgument,
    ValueNotStorable,
    RecordTooLarge,
)
"""What reading a value that is not as expected may raise."""

_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (UnicodeDecodeError, "not UTF-8"),
    (json.JSONDecodeError, "not JSON"),
    (binascii.Error, "not base64"),
    (RecursionError, "nested too deep"),
    (TypeError, _OTHER_TYPE),
    (AttributeError, _OTHER_TYPE),
)


def reason_of(error: Exception) -> str:
    """Say why without a word of the line's text."""
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    if isinstance(error, KeyError):
        return f"the field {error} is missing"
    if isinstance(error, ValueNotStorable):
        return f"a value that cannot be stored: {error.why}"  # its place is told in keys of the value itself
    known = isinstance(error, (UnknownName, InvalidArgument, RecordTooLarge))
    return str(error) if known else "a value that cannot be read"


def parsed(data: bytes) -> Any:
    """The value of JSON text. Halves of surrogate pairs are read, as escapes and as bytes: one stays as it is."""
    return DECODER.decode(data.decode("utf-8", "surrogatepass"))


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise UnknownName("a key that stands twice in one object")
    return made


DECODER: Final = json.JSONDecoder(object_pairs_hook=_each_once)
"""Of two values under one key it does not choose one."""


def fields(value: Any) -> dict[str, Any]:
    """A dict."""
    if not is_fields(value):
        raise TypeError
    return value  # type: ignore[no-any-return]  # it was just looked at


def is_fields(value: Any) -> bool:
    """Whether a value of JSON is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> bool:
    """Whether it is a list."""
    return isinstance(value, list)


def listed(value: Any) -> list[Any]:
    """A list."""
    if not is_list(value):
        raise TypeError
    return value  # type: ignore[no-any-return]  # it was just looked at


def parts_of(said: object) -> list[dict[str, Any]]:
    """What a message says, as a list of parts: a bare text is one, an empty one none."""
    if isinstance(said, str):
        return [{"type": "text", "text": said}] if said else []
    return [fields(part) for part in listed(said)]


def text(value: object) -> str:
    """A str."""
    if not isinstance(value, str):
        raise TypeError
    return value


def word(value: object) -> str | None:
    """A str that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def count(value: object) -> int:
    """An int."""
    if type(value) is not int:
        raise TypeError
    return value


def base64_of(value: object) -> bytes:
    """The bytes of a base64 text."""
    return binascii.a2b_base64(text(value), strict_mode=True)


def time_of(value: object) -> int | None:
    """Microseconds since the epoch of an ISO text, or of a number of seconds or milliseconds; None: it is no time."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            at_us = as_us(at if at.tzinfo else at.replace(tzinfo=UTC))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            at_us = int(value * (1_000 if abs(value) > 1e11 else _MICROSECONDS))  # noqa: PLR2004 - in seconds: year 5138
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return at_us if FIRST_US <= at_us <= LAST_US else None


def json_text(value: object) -> str:
    """JSON text of a value, in UTF-8 where that carries it, with escapes where it has lone surrogates."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        written.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return written
