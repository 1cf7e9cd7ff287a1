"""A store of another generation of the library: the same object, with errors of this generation's classes."""

from __future__ import annotations

import inspect
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from session_actor.errors import remade

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Foreign:
    """Stands for an object of another generation: whatever it raises comes as the class of the same name here."""

    def __init__(self, inner: Any) -> None:
        """`inner`: the object."""
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        """What the object has of this name: a method is wrapped once, anything else is asked for each time."""
        found = getattr(self.inner, name)
        if not inspect.isroutine(found):
            return found
        method = _wrapped(name, found)
        self.__dict__[name] = method
        return method


def _wrapped(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):
        return partial(_awaited, method)
    if inspect.isasyncgenfunction(method):
        return partial(_iterated, method)
    return partial({"when": _telling, "archive": _giving}.get(name, _called), method)


def _called(method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return method(*arguments, **options)
    except Exception as error:  # noqa: BLE001 - it is raised again
        raise twin_error(error) from error.__cause__


def _giving(method: Callable[..., Any], *arguments: Any) -> Any:
    """Its result raises errors, too."""
    return Foreign(_called(method, *arguments))


def _telling(method: Callable[..., Any], level: str, position: int, callback: Callable[[Any], None]) -> None:
    """It calls back with an error, or None."""

    def tell(error: BaseException | None) -> None:
        callback(None if error is None else twin_error(error))

    _called(method, level, position, tell)


async def _awaited(method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return await method(*arguments, **options)
    except Exception as error:  # noqa: BLE001 - it is raised again
        raise twin_error(error) from error.__cause__


async def _iterated(method: Callable[..., Any], *arguments: Any) -> AsyncIterator[Any]:
    try:
        async for item in method(*arguments):
            yield item
    except Exception as error:  # noqa: BLE001 - it is raised again
        raise twin_error(error) from error.__cause__


def twin_error(error: BaseException) -> BaseException:
    """The error as the class of the same name here; one that is not the library's, as it is."""
    kind: Any = twin_of(type(error))
    if kind is None or kind is type(error):
        return error
    twin: BaseException = remade(error, kind)
    return twin


def twin_of(kind: type) -> type | None:
    """The class of the same name in this generation of the library; None for a class that is not the library's."""
    library = __name__.partition(".")[0]
    if kind.__module__.partition(".")[0] != library:
        return None
    found: Any = import_module(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found if isinstance(found, type) else None
