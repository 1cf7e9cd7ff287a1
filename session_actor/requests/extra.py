"""What the embedder puts into a request: anything but what the session itself sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from session_actor.errors import InvalidArgument

from .own import owned_extra

if TYPE_CHECKING:
    from collections.abc import Mapping


def checked_extra(extra: Mapping[str, Any] | None, owned: frozenset[str]) -> dict[str, Any]:
    """A deep copy of `extra`. Raises `InvalidArgument`: it sets a key of `owned`, or holds what a request cannot.

    Nor may its `extra_body`, which the SDKs of Anthropic and OpenAI put over the body of what they send.
    """
    given = owned_extra(extra)
    for key in given:
        refuse_owned(key, owned, f"extra[{key!r}]")
    where = "extra['extra_body']"
    for key in object_of(given.get("extra_body"), where):
        refuse_owned(key, owned, f"{where}[{key!r}]")
    return given


def object_of(value: object, where: str) -> dict[str, Any]:
    """A value that is a dict; None is an empty one. Raises `InvalidArgument` for any other."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidArgument(where, f"must be a dict, got {type(value).__name__}")
    return cast("dict[str, Any]", value)


def refuse_owned(key: str, owned: frozenset[str], where: str) -> None:
    """Raise `InvalidArgument` when `key` is one of `owned`. `where`: how the caller wrote it."""
    if key in owned:
        raise InvalidArgument(
            where,
            "is what the session sets: model and max_output_tokens are arguments of build_request, system prompt and "
            "tools are given by configure, the messages are those of the session",
        )
