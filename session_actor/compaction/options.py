"""How a service has summaries written: the options of `SessionService.open` that are about them, checked once."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, cast

from session_actor.errors import InvalidArgument
from session_actor.given.given_numbers import check_seconds
from session_actor.given.plain import is_a, items_of, plain_str

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMEOUT_S: Final = 120.0


class Summarizer(Protocol):
    """Asks a model for a summary; the embedder's."""

    async def __call__(self, prompt: str, *, max_tokens: int, session_id: str) -> str:
        """Return what the model answers to `prompt`.

        Args:
            prompt: one user message.
            max_tokens: how long the answer may be.
            session_id: whose conversation it is, for the embedder's own accounts.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Summaries:
    """See `SessionService.open`. Making one raises InvalidArgument for a value that can never be right."""

    summarizer: Summarizer | None = None
    timeout_s: float = TIMEOUT_S
    window: int | None = None
    rule_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check what callers without a type checker get wrong."""
        if self.summarizer is not None and not callable(self.summarizer):
            raise InvalidArgument("summarizer", "must be an async function of prompt, max_tokens and session_id")
        if self.summarizer is not None and not _is_async(self.summarizer):
            raise InvalidArgument("summarizer", "must be async: an `async def`, or have an `async def __call__`")
        check_seconds("compaction_timeout_s", self.timeout_s, zero=False)
        if self.window is not None and (type(self.window) is not int or self.window < 1):
            raise InvalidArgument("summarizer_window", "must be a whole number of tokens of at least 1, or None")


def _is_async(summarizer: object) -> bool:
    """Whether it is an async function, or its `__call__` is one; partials and decorators are seen through."""
    inner: object = getattr(summarizer, "func" if is_a(summarizer, partial) else "__wrapped__", None)
    if any(inspect.iscoroutinefunction(one) for one in (summarizer, getattr(summarizer, "__call__", None))):  # noqa: B004 - its own
        return True
    return inner is not None and _is_async(inner)


def checked_words(words: object) -> tuple[str, ...]:
    """Words that make a sentence a rule. Raises InvalidArgument."""
    if is_a(words, str) or not is_a(words, (list, tuple)):
        raise InvalidArgument("rule_words", "must be a list of words, such as ['niemals', 'nur']")
    given = list(items_of(cast("Sequence[object]", words)))
    if not all(is_a(word, str) and plain_str(word).strip() for word in given):
        raise InvalidArgument("rule_words", "must be a list of words, none of them empty")
    return tuple(plain_str(word) for word in given)


NO_SUMMARIES: Final = Summaries()
"""Nobody writes any but the embedder."""
