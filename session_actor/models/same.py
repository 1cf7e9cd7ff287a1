"""Whether two names are of one model: replies name its dated version, requests what a cloud or a gateway calls it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from .profiles import key

_VARIANT: Final = re.compile(r":(?:free|nitro|floor|online|thinking|beta|extended|exacto|latest)$")
"""How a router shall serve a model."""
_REVISION: Final = re.compile(r"(?<=[a-z0-9])-v\d+(?::\d+)?$")
"""Bedrock's, of Claude: `anthropic.claude-sonnet-4-5-20250929-v1:0`."""
_STABLE: Final = re.compile(r"-00\d$")
"""Google's, of Gemini: `gemini-2.0-flash-001`."""
_DATED: Final = re.compile(r"(?:[-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest)$")
_FOUR: Final = re.compile(r"(claude-(?:opus|sonnet)-4)-0")
"""Anthropic's alias of what is dated as `claude-sonnet-4-20250514`."""


def is_same_model(said: str | None, asked: str) -> bool:
    """Whether a reply that names the model `said` is of the model `asked`; None: it names none."""
    return said is not None and (said == asked or _plain(said) == _plain(asked))


@lru_cache(maxsize=512)
def _plain(model: str) -> str:
    """The name without what clouds and routers put around it, and without its date."""
    name = _VARIANT.sub("", key(model))
    if name.startswith("claude-"):
        name = _REVISION.sub("", name)
    elif name.startswith("gemini-"):
        name = _STABLE.sub("", name)
    name = _DATED.sub("", name)
    four = _FOUR.fullmatch(name)
    return name if four is None else four[1]
