"""Plain settings of a request: numbers and switches, each in its range, and the metadata.

Sources: the API references ("Create chat completion", "Create a model response", "Create a Message", "Generating
content": GenerationConfig) and the docstrings of the SDKs. A range is that of the provider, not of a model: what only
some models narrow is in the rules of the dialect.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from .gemini_parts import field
from .problems import as_mapping, named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .problems import Problems


class _Range(NamedTuple):
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False


_SHARE: Final = _Range(0, 1)
_HEAT: Final = _Range(0, 2)
_PENALTY: Final = _Range(-2, 2)
_TOP_LOGPROBS: Final = _Range(0, 20, whole=True)
_WHOLE: Final = _Range(whole=True)
_NUMBERS: Final[dict[str, dict[str, _Range]]] = {
    "anthropic": {"temperature": _SHARE, "top_p": _SHARE, "top_k": _Range(0, whole=True)},
    "openai_chat": {
        "temperature": _HEAT,
        "top_p": _SHARE,
        "presence_penalty": _PENALTY,
        "frequency_penalty": _PENALTY,
        "n": _Range(1, 128, whole=True),
        "top_logprobs": _TOP_LOGPROBS,
        "seed": _WHOLE,
    },
    "openai_responses": {
        "temperature": _HEAT,
        "top_p": _SHARE,
        "top_logprobs": _TOP_LOGPROBS,
        "max_tool_calls": _Range(0, whole=True),
    },
    "gemini": {
        "temperature": _HEAT,
        "top_p": _SHARE,
        "top_k": _Range(0),
        "candidate_count": _Range(1, 8, whole=True),
        "presence_penalty": _PENALTY,
        "frequency_penalty": _PENALTY,
        "logprobs": _TOP_LOGPROBS,
        "seed": _WHOLE,
    },
}
_SWITCHES: Final[dict[str, tuple[str, ...]]] = {
    "anthropic": ("stream",),
    "openai_chat": ("logprobs", "parallel_tool_calls", "store", "stream"),
    "openai_responses": ("background", "parallel_tool_calls", "store", "stream"),
    "gemini": ("response_logprobs",),
}
_MOST_PAIRS, _LONGEST_KEY, _LONGEST_VALUE = 16, 64, 512
_LONGEST_USER: Final = 128
_BIAS: Final = _Range(-100, 100)


def settings(problems: Problems, dialect: str, request: Mapping[str, object]) -> None:
    """Check the plain settings of a request in a dialect."""
    if dialect == "gemini":
        config = as_mapping(request.get("config"))
        if config is not None:
            _plain(problems, dialect, lambda key: field(config, key), "config.")
        return
    _plain(problems, dialect, request.get, "")
    metadata = request.get("metadata")
    if metadata is not None:
        (_of_user if dialect == "anthropic" else _pairs)(problems, metadata)
    if dialect != "anthropic":
        _openai(problems, request)


def _plain(problems: Problems, dialect: str, get: Callable[[str], object], before: str) -> None:
    for key, range_ in _NUMBERS[dialect].items():
        if (value := get(key)) is not None:
            _number(problems, before + key, value, range_)
    for key in _SWITCHES[dialect]:
        if (value := get(key)) is not None and not isinstance(value, bool):
            problems.add(before + key, "type", f"must be a bool, got {named(value)}")


def _number(problems: Problems, path: str, value: object, range_: _Range) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or (range_.whole and value % 1 != 0):
        word = "a whole number" if range_.whole else "a number"
        problems.add(path, "type", f"must be {word}, got {named(value)}")
    elif not range_.low <= value <= range_.high:
        problems.add(path, "limit", f"must be from {range_.low:g} to {range_.high:g}")


def _of_user(problems: Problems, value: object) -> None:
    """Anthropic's: only who the user is."""
    metadata = problems.mapping("metadata", value)
    for key, inner in (metadata or {}).items():
        if key != "user_id":
            problems.add("metadata", "unknown", f"has the key {named(key)}: it only has a user_id")
        elif inner is not None:
            problems.text("metadata.user_id", inner)


def _pairs(problems: Problems, value: object) -> None:
    """OpenAI's: at most 16 pairs of short texts."""
    pairs = cast("Mapping[Any, Any] | None", problems.mapping("metadata", value))
    if pairs is None:
        return
    if len(pairs) > _MOST_PAIRS:
        problems.add("metadata", "limit", f"must hold at most {_MOST_PAIRS} pairs")
    for key, inner in pairs.items():
        if not isinstance(key, str) or not isinstance(inner, str):
            problems.add("metadata", "type", "must hold texts by texts")
        elif len(key) > _LONGEST_KEY or len(inner) > _LONGEST_VALUE:
            problems.add("metadata", "limit", f"keys have at most {_LONGEST_KEY} characters, values {_LONGEST_VALUE}")
        else:
            continue
        return


def _openai(problems: Problems, request: Mapping[str, object]) -> None:
    """What both of OpenAI's calls have."""
    user = request.get("safety_identifier")
    if isinstance(user, str) and len(user) > _LONGEST_USER:
        problems.add("safety_identifier", "limit", f"must be at most {_LONGEST_USER} characters long")
    if request.get("stream_options") is not None and request.get("stream") is False:
        problems.add("stream_options", "conflict", "must not be given where stream is false")
    bias = as_mapping(request.get("logit_bias"))
    for value in (bias or {}).values():
        _number(problems, "logit_bias", value, _BIAS)
