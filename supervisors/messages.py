"""Message markers, the handler decorator and what a handler or `init` may return."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar, final

Reply = TypeVar("Reply")
Method = TypeVar("Method", bound=Callable[..., Any])

HANDLES_ATTRIBUTE: Final = "__handles__"


class Call(Generic[Reply]):
    """Marks a message that is answered with a `Reply`. Works with msgspec Structs, dataclasses and plain classes."""

    __slots__ = ()


class Cast:
    """Marks a message that is never answered."""

    __slots__ = ()


class Continue(NamedTuple):
    """Returned by `init` or `handle_continue`: `handle_continue(argument)` runs before any message (OTP: continue)."""

    argument: Any = None


@final
class NoReply:
    """The type of `NO_REPLY`."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Show the constant's name."""
        return "NO_REPLY"


NO_REPLY: Final = NoReply()
"""Returned by a handler that took a `Deferred` and answers later."""


@final
class Ignore:
    """The type of `IGNORE`."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Show the constant's name."""
        return "IGNORE"


IGNORE: Final = Ignore()
"""Returned by `init`: the child is not to run, and that is no fault (OTP: ignore)."""


def handles(*types: type) -> Callable[[Method], Method]:
    """Make a method of a `GenServer` the handler of these message types (exact types first, then base classes).

    The method takes the message and returns the reply. A sync method may run inline in the caller's task; an async one
    runs in the server's task. So does an async one behind a decorator: `functools.wraps` tells, else the coroutine that
    its first call returns, so it must not return one only sometimes.

    Raises:
        TypeError: no type was given, or one is not a class.
    """
    if not types or not all(inspect.isclass(kind) for kind in types):
        message = "handles() takes one or more message classes: @handles(Get)"
        raise TypeError(message)

    def mark(method: Method) -> Method:
        setattr(method, HANDLES_ATTRIBUTE, types)
        return method

    return mark
