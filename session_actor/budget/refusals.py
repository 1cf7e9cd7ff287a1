"""What a provider said when it refused a request: that it is too long, and by how much, or something else."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from session_actor.given.plain import is_a, items_of, plain_str

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class TooLong(msgspec.Struct, frozen=True, gc=False):
    """The request was refused because of its length."""

    tokens: int | None = None
    """How long its input was, as the provider counted it; None: it did not say."""
    limit: int | None = None
    """What the provider takes at most; None: it did not say."""
    with_output: bool = True
    """Whether that is input and output together."""


_MARKS: Final = (
    "prompt is too long",  # Anthropic
    "exceed context limit",  # Anthropic, "input length and `max_tokens` exceed context limit"
    "request_too_large",  # Anthropic, by bytes
    "exceeds the maximum size",  # Anthropic, by bytes
    "context_length_exceeded",  # OpenAI, the code
    "maximum context length",  # OpenAI, vLLM, OpenRouter, Mistral
    "exceeds the context window",  # OpenAI, Responses
    "input tokens exceed the configured limit",  # OpenAI
    "exceeds the maximum number of tokens",  # Gemini
    "input is too long",  # Bedrock
    "maximum prompt length",  # xAI
    "exceeds the available context size",  # llama.cpp
    "reduce the length of the messages",  # Groq
)

_N: Final = r"([\d][\d,_]*)"
_TOKENS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"too long: {_N} tokens",  # Anthropic
        rf"context limit: {_N} \+",  # Anthropic: input + max_tokens > window
        rf"\({_N} (?:in the messages|of text input)",  # OpenAI, OpenRouter: the rest is the completion
        rf"resulted in (?:about )?{_N} tokens",  # OpenAI
        rf"token count \({_N}\)",  # Gemini
        rf"prompt contains {_N} tokens",  # Mistral
        rf"request contains {_N} tokens",  # xAI
        rf"requested (?:about )?{_N} tokens",  # OpenAI, when it does not say how they are made up
    )
)
_LIMIT: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"> {_N}",  # Anthropic
        rf"context length is {_N}",  # OpenAI, vLLM
        rf"with {_N} maximum context length",  # Mistral
    )
)
_INPUT_LIMIT: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"configured limit of {_N}",  # OpenAI
        rf"tokens allowed \(?{_N}",  # Gemini
        rf"prompt length is {_N}",  # xAI
    )
)
_FUNCTIONS: Final = re.compile(rf"in the messages, {_N} in the functions")

_ATTRIBUTES: Final = ("message", "body", "details", "code", "type", "status", "args")
"""Where the SDKs' exceptions keep what the provider said."""

_CHARACTERS: Final = 4_000
_TEXTS: Final = 100
_DEPTH: Final = 6


def too_long(error: object) -> TooLong | None:
    """Whether an error says that a request was too long, and what it says of its length.

    `error`: an exception of an SDK, its text, or the provider's answer as a dict. Nothing of it is kept. Fails for no
    value; what cannot be read says nothing.
    """
    said = " ".join(islice(_texts(error, _DEPTH), _TEXTS)).lower()
    if not any(mark in said for mark in _MARKS):
        return None
    tokens, functions = _first(_TOKENS, said), _FUNCTIONS.search(said)
    if tokens is not None and functions is not None:
        tokens += _number(functions.group(1)) or 0
    input_limit = _first(_INPUT_LIMIT, said)
    if input_limit is not None:
        return TooLong(tokens, input_limit, with_output=False)
    return TooLong(tokens, _first(_LIMIT, said))


def _first(patterns: tuple[re.Pattern[str], ...], said: str) -> int | None:
    for pattern in patterns:
        found = pattern.search(said)
        if found is not None:
            return _number(found.group(1))
    return None


def _number(digits: str) -> int | None:
    """None for what no length can be."""
    plain = digits.replace(",", "").replace("_", "")
    return int(plain) if len(plain) < 12 else None  # noqa: PLR2004 - nobody counts so many tokens


def _texts(value: object, depth: int) -> Iterator[str]:
    """The texts in an error, at any place of it."""
    if is_a(value, str):
        yield plain_str(value)[:_CHARACTERS]
    elif depth == 0:
        return
    elif is_a(value, bytes):
        yield bytes(memoryview(cast("bytes", value)))[:_CHARACTERS].decode(errors="replace")
    elif is_a(value, BaseException):
        for name in _ATTRIBUTES:
            yield from _texts(_attribute(cast("BaseException", value), name), depth - 1)
    elif is_a(value, dict):
        yield from _texts(list(cast("Mapping[Any, object]", value).values()), depth - 1)
    elif is_a(value, (list, tuple)):
        for item in islice(items_of(value), _TEXTS):
            yield from _texts(item, depth - 1)


def _attribute(error: BaseException, name: str) -> object:
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001 - an exception of anybody's may raise anything
        return None
