"""What values cost that are sent as they are [tokens]: native blocks, response formats, tools of the provider."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, cast

from session_actor.media import image_type
from session_actor.tokens.estimate import estimate_tokens

from .media_costs import data_cost, decoded, is_data_uri, uri_cost

_OPAQUE: Final = frozenset({
    "data", "encrypted_content", "encrypted_index", "encrypted_stdout", "signature", "thought_signature",
    "thoughtSignature",
})  # fmt: skip
"""Fields that hold what only the provider can read, or a file in base64."""
_LONG: Final = 1_024
"""A text of so many characters may be a file in base64, as an image that a tool of Responses made."""
_MAGIC: Final = 64
_PDF: Final = "application/pdf"
_MEDIA_TYPES: Final = ("media_type", "mime_type", "mimeType")
_LeafCost: TypeAlias = Callable[[object, object, str], int | None]


def opaque_cost(characters: int) -> int:
    """Return what an encrypted text costs, of which only the length in base64 is known.

    Four characters of base64 are three bytes, and four bytes of text about one token. The provider decrypts it and
    reads what it wrote: it counts that, not the base64.
    """
    return characters * 3 // 16


def value_cost(value: object, family: str, rule: str = "unknown") -> int:
    """Return what a JSON value costs: its JSON text, where encrypted parts count by their length and images by pixels.

    Args:
        value: of None, bool, int, float, str, bytes, lists, tuples and dicts.
        family: the tokenizer family.
        rule: how images in it are counted: a name in `tokens.images.RULES`.

    Returns:
        Tokens.

    Raises:
        InvalidArgument: there is no such family or rule.
    """
    apart: list[int] = []
    shown = _shown(value, partial(_apart, family=family, rule=rule), apart)
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"), default=_unreadable)
    return sum(apart) + estimate_tokens(text, family)


def _shown(value: Any, cost_of_leaf: _LeafCost, apart: list[int], name: object = None, media_type: str = "") -> Any:
    """Return what of a value is counted as text; what the rest of it costs is added to `apart`."""
    if isinstance(value, dict):
        fields = cast("dict[object, object]", value)
        media_type = _media_type(fields)
        return {key: _shown(item, cost_of_leaf, apart, key, media_type) for key, item in fields.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(item, cost_of_leaf, apart) for item in cast("list[object]", value)]
    cost = cost_of_leaf(value, name, media_type)
    if cost is None:
        return value
    apart.append(cost)
    return ""


def _apart(value: object, name: object, media_type: str, family: str, rule: str) -> int | None:
    """Return what a leaf costs that is not counted as text; None: it is text."""
    if isinstance(value, (bytes, bytearray)):
        data = bytes(value)
        return data_cost(data, media_type, rule, family) if media_type else opaque_cost(len(data) * 4 // 3)
    if not isinstance(value, str):
        return None
    if is_data_uri(value):
        return uri_cost(value, rule, family)
    if name not in _OPAQUE or media_type.startswith("text/"):
        return None if len(value) < _LONG else _file_cost(value, rule, family)
    return data_cost(decoded(value), media_type, rule, family) if media_type else opaque_cost(len(value))


def _file_cost(text: str, rule: str, family: str) -> int | None:
    """Return what an image or a PDF in base64 costs, under whatever key it stands; None: it is none."""
    head = decoded(text[:_MAGIC])
    kind = image_type(head) or (_PDF if head.startswith(b"%PDF-") else None)
    return None if kind is None else data_cost(decoded(text), kind, rule, family)


def _media_type(fields: dict[object, object]) -> str:
    return next((text for name in _MEDIA_TYPES if isinstance(text := fields.get(name), str)), "")


def _unreadable(value: object) -> str:
    """Stand for what is no JSON: it is never sent."""
    del value
    return ""
