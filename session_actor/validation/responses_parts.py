"""What stands inside the items of a Responses input: messages and the outputs of calls.

Source: API reference "Create a model response" (content of messages by role; one source an image or file), docs "Images
and vision", "File inputs".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from . import media
from .openai_content import detail, parts_in, text_part
from .problems import named

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .problems import Problems

_INPUT: Final = frozenset({"input_text", "input_image", "input_file"})
_OUTPUT: Final = frozenset({"output_text", "refusal"})
_ROLES: Final = ("user", "assistant", "system", "developer")


def message(problems: Problems, path: str, item: Mapping[str, Any]) -> str | None:
    """Check a message; return its role, None when that is none."""
    role = item.get("role")
    known = isinstance(role, str) and role in _ROLES
    if not known:
        problems.add(f"{path}.role", "unknown", f"is {named(role)}; it must be one of {', '.join(_ROLES)}")
    value = problems.required(path, item, "content")
    if value is not None:
        _content(problems, f"{path}.content", value, _OUTPUT if role == "assistant" else _INPUT)
    return role if known else None


def output(problems: Problems, path: str, value: object) -> None:
    """Check the output of a call."""
    _content(problems, path, value, _INPUT)


def _content(problems: Problems, path: str, value: object, allowed: Collection[str]) -> None:
    for where, part in parts_in(problems, path, value):
        kind = part.get("type")
        if not isinstance(kind, str) or kind not in allowed:
            problems.add(where, "unknown", f"is of type {named(kind)}, which cannot stand here")
        elif kind == "input_image":
            _image(problems, where, part)
        elif kind == "input_file":
            _file(problems, where, part)
        else:
            text_part(problems, where, part, "refusal" if kind == "refusal" else "text")


def _image(problems: Problems, path: str, part: Mapping[str, Any]) -> None:
    given = media.one_source(problems, path, part, ("image_url", "file_id"))
    if given == "image_url":
        media.data_or_web_address(problems, f"{path}.image_url", part["image_url"], media.WEB_IMAGES)
    elif given is not None:
        problems.text(f"{path}.file_id", part["file_id"])
    detail(problems, path, part)


def _file(problems: Problems, path: str, part: Mapping[str, Any]) -> None:
    """A file is named when its bytes are given: the API tells its type by the name."""
    given = media.one_source(problems, path, part, ("file_data", "file_id", "file_url"))
    if given == "file_url":
        media.web_address(problems, f"{path}.file_url", part["file_url"])
    elif given == "file_data":
        text = problems.text(f"{path}.file_data", part["file_data"])
        if text is not None:
            media.data_url(problems, f"{path}.file_data", text, None)
        problems.required_text(path, part, "filename")
    elif given is not None:
        problems.text(f"{path}.file_id", part["file_id"])
