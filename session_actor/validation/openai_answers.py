"""What both of OpenAI's calls ask of an answer: JSON, and the settings that its reasoning models refuse.

Sources: API references (response_format, text.format: "you must also instruct the model to produce JSON yourself"); and
what the API answers: "'messages' must contain the word 'json' in some form, to use 'response_format' of type
'json_object'" (github.com/ultimatejimmy/xray.koplugin/issues/33), "'temperature' does not support 0.2 with this model.
Only the default (1) value is supported", "'max_tokens' is not supported with this model".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from .problems import as_mapping
from .schemas import list_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .problems import Problems

_ONE_HEAT: Final = re.compile(r"(?:o1|o3|o3-mini|o4-mini|gpt-5|gpt-5-mini|gpt-5-nano)(?:-20\d\d-\d\d-\d\d)?")
"""Reasoning models that cannot be told not to reason, by the names that they have at OpenAI itself."""
_DEEPEST: Final = 6
_DEFAULTS: Final = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}


def json_word(problems: Problems, path: str, wanted: str, texts: Iterable[object]) -> None:
    """Check that a request for a JSON object says so itself: in any of `texts`, which may be whole messages."""
    if not any(_says_json(text, _DEEPEST) for text in texts):
        problems.add(path, "missing", f"must hold the word JSON, since {wanted} is of type 'json_object'")


def _says_json(value: object, depth: int) -> bool:
    """Whether a text anywhere in a value has the word."""
    if isinstance(value, str):
        return "json" in value.lower()
    if not depth:
        return True  # nobody knows
    listed = list_of(value)
    if listed is None:
        found = as_mapping(value)
        listed = () if found is None else tuple(found.values())
    return any(_says_json(inner, depth - 1) for inner in listed)


def reasons(request: Mapping[str, Any]) -> bool:
    """Whether the request is for a model that always reasons."""
    model = request.get("model")
    return isinstance(model, str) and _ONE_HEAT.fullmatch(model) is not None


def sampling(problems: Problems, request: Mapping[str, Any]) -> None:
    """Check that a model which always reasons is asked for no other sampling than its own."""
    if not reasons(request):
        return
    for key, default in _DEFAULTS.items():
        if request.get(key) not in (None, default):
            problems.add(key, "conflict", f"must be {default}, or left out: this model always reasons")
