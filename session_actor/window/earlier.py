"""What earlier versions wrote of requests and refusals, in today's form.

Until the length of a request was told without it, a refusal made prices go up by a factor: the lengths in `requested`
records have it in them, and give it behind their other numbers. What was learned from refusals was kept for each model,
by that factor and a ceiling; today it is kept for each model with its instructions.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

import orjson

_FACTOR: Final = re.compile(rb'(?:true|false),(?!1\.0\])[0-9.eE+-]+\],"allowance":')
"""A quote with a factor that says anything: today's ends with the flag. No text in JSON has an unescaped quote."""
_FACTOR_AT: Final = 11
"""Its place in a quote."""
_LENGTHS: Final = (6, 7, 8)
"""Those of `tokens`, `upper` and `fixed_tokens`."""


def has_factor(data: bytes) -> bool:
    """Whether a record, or a snapshot, holds a length with a factor in it."""
    return _FACTOR.search(data) is not None


def modern(data: bytes) -> bytes:
    """The same in today's form: a `requested` or `history_sealed` record, or a snapshot; any other data as it is."""
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        return data
    if not isinstance(value, dict):
        return data
    found = cast("dict[str, Any]", value)
    try:
        _requests(found)
        _learned(found)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return data
    return orjson.dumps(found)


def _requests(found: dict[str, Any]) -> None:
    requests = [found] if "quote" in found else [request for _, request in found.get("requests", ())]
    for request in requests:
        quote = request["quote"]
        if len(quote) > _FACTOR_AT:
            factor = quote.pop(_FACTOR_AT)
            for place in _LENGTHS:
                quote[place] = round(quote[place] / factor)


def _learned(found: dict[str, Any]) -> None:
    learned = found.get("learned")
    if learned and len(learned) == 2 and learned[1] and isinstance(learned[1][0][0], str):  # noqa: PLR2004 - both parts
        found["learned"] = [learned[0], [], learned[1]]
