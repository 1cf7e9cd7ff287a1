"""Hooks that are not mandatory: called once, beside everything else; what goes wrong is told, and never repeated."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from session_actor.log import LOGGER

from .hook import HookContext
from .tries import about

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from .hook import Hook
    from .tries import Tries
    from .view import SessionView


class Calling(NamedTuple):
    """One hook, and what it is told."""

    hook: Hook
    key: str
    reason: str
    view: SessionView


class Beside:
    """Calls groups of hooks, each group in its order: one begins when the one before it is over or late."""

    def __init__(self, tries: Tries) -> None:
        """`tries`: where they run."""
        self._tries = tries

    def call(self, callings: Iterable[Calling], marks: tuple[Hashable, ...]) -> None:
        """Call these one after another, in tasks of their own. `marks`: what stands for the session."""
        self._next(iter(tuple(callings)), marks)

    def _next(self, rest: Iterator[Calling], marks: tuple[Hashable, ...]) -> None:
        calling = next(rest, None)
        if calling is None or self._tries.closing:
            return
        release = self._tries.begin()

        def over() -> None:
            """Once: the next one begins before this one is counted out, so that a closing service waits for it."""
            nonlocal calling
            if calling is not None:
                calling = None
                self._next(rest, marks)
                release()

        if not self._tries.start(calling.key, partial(self._run, calling, marks, over)):
            release()

    async def _run(self, calling: Calling, marks: tuple[Hashable, ...], over: Callable[[], None]) -> None:
        hook, view = calling.hook, calling.view
        context = HookContext(view.session_id, hook.phase, calling.key, 1, calling.reason, view)
        try:
            failure = await self._tries.call(hook, context, marks, over)
            if failure is not None:
                complain("hook_failed", about(hook, context), failure)
        finally:
            over()


def complain(event: str, what: dict[str, object], error: BaseException | None = None) -> None:
    """Log what went wrong: of an error the type alone, its text may be private."""
    LOGGER.warning(event, **(what if error is None else {**what, "error": type(error).__name__}))
