"""Exact token counters, for the tokenizers whose vocabulary an installed library brings: the extra `exact`."""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from session_actor.errors import InvalidArgument, SessionActorError

from .estimate import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable

_ENCODINGS: Final = {"o200k": "o200k_base", "cl100k": "cl100k_base", "llama3": "llama3", "qwen3": "qwen3"}
"""What quicktok calls the families whose vocabulary it ships."""

_KNOWN: Final = {
    "o200k": (6, 6, 5, 7),
    "cl100k": (6, 13, 5, 7),
    "llama3": (6, 7, 5, 7),
    "qwen3": (6, 8, 8, 7),
}
_SAMPLES: Final = ("The quick brown fox jumps.", "Сегодня хорошая погода.", "2026 + 17", "<|endoftext|>")
"""A counter is believed when it counts these texts as known: words, another script, digits, a special token as text."""


class CounterUnavailable(SessionActorError):
    """There is no exact counter for a tokenizer family here: none exists, it is not installed, or it counts wrong."""

    def __init__(self, family: str, why: str) -> None:
        """`family`: the tokenizer family. `why`: what is missing and what to do next."""
        super().__init__(f"no exact token counter for {family}: {why}")
        self.family = family


def exact_counter(family: str) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text exactly, without message overhead.

    What looks like a special token (`<|endoftext|>`) counts as ordinary text. A lone surrogate counts as U+FFFD, which
    is what a request with it could carry at most. Nothing is fetched: the vocabulary is in the library (quicktok-v1,
    the extra `exact`, up to Python 3.13). It is loaded here (about half a second a family, once: call this before you
    serve) and tried on known texts, as a library without its vocabulary may count bytes and say nothing.

    Args:
        family: `o200k`, `cl100k`, `llama3` or `qwen3`.

    Returns:
        A counter: it takes a str and returns its tokens, 0 for an empty one.

    Raises:
        InvalidArgument: there is no such tokenizer family.
        CounterUnavailable: there is no counter for it, or it is not installed, or it failed the trial.
    """
    if family not in FAMILIES:
        raise InvalidArgument("family", f"is none of {', '.join(FAMILIES)}")
    if family not in _ENCODINGS:
        raise CounterUnavailable(
            family, f"no supported library has its vocabulary; use estimate_tokens(text, {family!r})"
        )
    return _loaded(family)


@cache
def _loaded(family: str) -> Callable[[str], int]:
    try:
        library: Any = import_module("quicktok")
    except ImportError as error:
        raise CounterUnavailable(family, "install session-actor[exact]") from error
    try:
        counter = partial(_count, library.get_encoding(_ENCODINGS[family]))
        counted = tuple(counter(sample) for sample in _SAMPLES)
    except Exception as error:  # whatever a broken installation raises
        raise CounterUnavailable(family, "quicktok cannot be used; reinstall session-actor[exact]") from error
    if counted != _KNOWN[family]:
        raise CounterUnavailable(family, "quicktok counts known texts wrong; reinstall session-actor[exact]")
    return counter


def _count(encoding: Any, text: str) -> int:
    """Count tokens; `count` takes special tokens for text, and no lone surrogates."""
    try:
        return int(encoding.count(text))
    except (TypeError, UnicodeError):
        return int(encoding.count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")))
