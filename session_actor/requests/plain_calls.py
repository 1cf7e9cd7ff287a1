"""How long an answer may be asked for in one plain call of an SDK, without streaming."""

from __future__ import annotations

import re
from typing import Final

from session_actor.models.profiles import key

_ANTHROPIC: Final = 21_333
"""Above this many tokens Anthropic's SDK refuses to wait for an answer: it reckons with an hour for 128,000 of them,
and waits ten minutes at most (anthropic: `_calculate_nonstreaming_timeout`)."""

_ANTHROPIC_OPUS_4: Final = 8_192
"""The same of Claude Opus 4 and 4.1 (anthropic: `MODEL_NONSTREAMING_TOKENS`)."""

_OPUS_4: Final = re.compile(r"claude-(opus-4|opus-4-0|opus-4-1|4-opus)([@-]20\d{6}.*)?")


def plain_call_output(dialect: str, model: str) -> int | None:
    """The longest answer that a call without streaming may ask for [tokens]; None: no limit is known."""
    if dialect != "anthropic":
        return None
    return _ANTHROPIC_OPUS_4 if _OPUS_4.fullmatch(key(model)) else _ANTHROPIC
