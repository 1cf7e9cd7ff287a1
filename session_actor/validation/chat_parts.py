"""The content of one message of Chat Completions.

Source: API reference "Create chat completion" (which parts each role may hold), docs "Images and vision", "File
inputs".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from . import media
from .openai_content import detail, parts_in, text_part
from .problems import named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

_BY_ROLE: Final[dict[str, frozenset[str]]] = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text"}),
}
_AUDIO: Final = ("wav", "mp3")


def parts(problems: Problems, path: str, value: object, role: str) -> None:
    """Check the content of a message of this role: a text, or a list of parts."""
    for where, part in parts_in(problems, path, value):
        kind = part.get("type")
        if not isinstance(kind, str) or kind not in _BY_ROLE[role]:
            problems.add(where, "unknown", f"is of type {named(kind)}, which a message of role '{role}' cannot hold")
        elif kind in ("text", "refusal"):
            text_part(problems, where, part, kind)
        else:
            _media(problems, where, kind, part)


def _media(problems: Problems, path: str, kind: str, part: Mapping[str, Any]) -> None:
    value = problems.required(path, part, kind)
    place = f"{path}.{kind}"
    inner = None if value is None else problems.mapping(place, value)
    if inner is None:
        return
    if kind == "image_url":
        if problems.required(place, inner, "url") is not None:
            media.data_or_web_address(problems, f"{place}.url", inner["url"], media.WEB_IMAGES)
        detail(problems, place, inner)
    elif kind == "file":
        _file(problems, place, inner)
    else:
        if problems.required(place, inner, "data") is not None:
            media.base64_text(problems, f"{place}.data", inner["data"])
        if inner.get("format") not in _AUDIO:
            problems.add(f"{place}.format", "media-type", f"must be one of {', '.join(_AUDIO)}")


def _file(problems: Problems, path: str, file: Mapping[str, Any]) -> None:
    """A file is named when its bytes are given: the API tells its type by the name."""
    given = media.one_source(problems, path, file, ("file_data", "file_id"))
    if given is None:
        return
    text = problems.text(f"{path}.{given}", file[given])
    if given == "file_data":
        if text is not None:
            media.data_url(problems, f"{path}.file_data", text, None)
        problems.required_text(path, file, "filename")
