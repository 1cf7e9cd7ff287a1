"""Names of branches and checkpoints: one namespace a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.errors import InvalidArgument
from session_actor.given.plain import is_a, plain_str

if TYPE_CHECKING:
    from collections.abc import Container

MAIN: Final = "main"
"""The first branch of every session."""

NAME_LIMIT: Final = 512
"""The longest name, in characters."""


def check_name(name: object, what: str) -> str:
    """`name` itself, a non-empty str of at most 512 characters, or `InvalidArgument` that calls it `what`."""
    if type(name) is str and 0 < len(name) <= NAME_LIMIT:
        return name
    if not is_a(name, str):
        raise InvalidArgument(what, f"must be a str, got {type(name).__name__}")
    plain = plain_str(name)
    if not plain:
        raise InvalidArgument(what, "must not be empty")
    if len(plain) > NAME_LIMIT:
        raise InvalidArgument(what, f"has {len(plain)} characters, the limit is {NAME_LIMIT}")
    return plain


def branch_name(frame_id: int, branches: Container[str], checkpoints: Container[str]) -> str:
    """The name of a branch that nobody named: `b7` at frame 7, `b7-2`, `b7-3` … when that is taken."""
    name = f"b{frame_id}"
    return free_name(name, branches, checkpoints) if name in branches or name in checkpoints else name


def free_name(wanted: str, branches: Container[str], checkpoints: Container[str]) -> str:
    """`wanted`, or with `-2`, `-3` … when that is taken."""
    name = wanted
    number = 1
    while name in branches or name in checkpoints:
        number += 1
        name = f"{wanted}-{number}"
    return name
