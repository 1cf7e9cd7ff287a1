"""The dialects: forms of requests and replies, each of one API."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from .errors import InvalidArgument
from .given.plain import is_a, plain_str, shown

Dialect: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic", "gemini"]
"""The form of a provider's requests and replies."""

DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)
"""All of them."""


def checked_dialect(value: object) -> Dialect:
    """The name of a dialect. Raises `InvalidArgument` for what is none."""
    name = plain_str(value) if is_a(value, str) else None
    if name not in DIALECTS:
        raise InvalidArgument("dialect", f"must be one of {', '.join(DIALECTS)}, got {shown(value)}")
    return name
