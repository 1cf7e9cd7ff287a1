"""What google-genai makes contents of: it takes texts, parts and files in their place, and puts them together.

Source: the SDK (`_transformers.t_contents`): parts that stand together in a list are one content, the user's, or the
model's where they are function calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .gemini_parts import KINDS, field
from .problems import as_mapping
from .schemas import list_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FILE: Final = ("uri", "file_uri")


class Given(NamedTuple):
    """A content, and where it and its parts were given."""

    path: str
    content: Mapping[str, Any] | None
    """None: this is none."""
    item: object
    """As it was given."""
    parts: Sequence[str] | None = None
    """The paths of its parts; None: they stand in it."""


def contents_of(items: Sequence[object]) -> list[Given]:
    """The contents that a list stands for."""
    found: list[Given] = []
    together: list[tuple[str, Mapping[str, Any]]] = []
    for place, item in enumerate(items):
        path, part = f"contents[{place}]", _part_of(item)
        if part is not None and (not together or _calls(part) == _calls(together[0][1])):
            together.append((path, part))
            continue
        found += _as_one(together)
        together = [] if part is None else [(path, part)]
        if part is None:
            found.append(_content(path, item))
    return found + _as_one(together)


def single(item: object) -> Given:
    """The content that stands there without a list."""
    part = _part_of(item)
    return _content("contents", item) if part is None else _as_one([("contents", part)])[0]


def _content(path: str, item: object) -> Given:
    listed = list_of(item)
    if listed is None:
        return Given(path, as_mapping(item), item)
    parts = [{"text": one} if isinstance(one, str) else one for one in listed]
    return Given(path, {"role": "user", "parts": parts}, item, [f"{path}[{number}]" for number in range(len(parts))])


def _as_one(together: list[tuple[str, Mapping[str, Any]]]) -> list[Given]:
    if not together:
        return []
    role = "model" if _calls(together[0][1]) else "user"
    parts, paths = [part for _, part in together], [path for path, _ in together]
    return [Given(paths[0], {"role": role, "parts": parts}, parts, paths)]


def _calls(part: Mapping[str, Any]) -> bool:
    return field(part, "function_call") is not None


def _part_of(item: object) -> Mapping[str, Any] | None:
    """The part that an item of a list is; None: it is none."""
    if isinstance(item, str):
        return {"text": item}
    if type(item).__module__.startswith("PIL."):
        return {"inline_data": {"mime_type": "image/png", "data": b"an image that the SDK encodes"}}
    found = as_mapping(item)
    if found is None or found.get("parts") is not None or found.get("role") is not None:
        return None
    if any(field(found, kind) is not None for kind in KINDS):
        return found
    uri = next((found[key] for key in _FILE if found.get(key) is not None), None)
    return None if uri is None else {"file_data": {"file_uri": uri, "mime_type": field(found, "mime_type")}}
