"""The parts of Gemini's contents, each by itself.

Sources: API reference "Caching" (Part: exactly one kind of data; Blob; FunctionCall; FunctionResponse), docs "Thought
signatures" (a part of a signature may have an empty text), "Image understanding" and "Document processing" (types).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from . import media, tools
from .problems import as_mapping, named

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from .problems import Problems

KINDS: Final = (
    "text", "inline_data", "file_data", "function_call", "function_response", "executable_code",
    "code_execution_result", "tool_call", "tool_response",
)  # fmt: skip
_OF_USER: Final = frozenset({"text", "inline_data", "file_data", "function_response"})
_OF_MODEL: Final = frozenset(KINDS) - {"function_response"}
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_APPLICATIONS: Final = frozenset({
    "application/pdf", "application/json", "application/x-javascript", "application/x-python",
})  # fmt: skip
_ANY_OF: Final = ("text/", "audio/", "video/")


@cache
def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


_KIND_OF: Final = {spelled: kind for kind in KINDS for spelled in (kind, _camel(kind))}


def field(holder: Mapping[str, Any], key: str) -> Any:
    """The value of a key in either spelling; None when it is missing or null."""
    value = holder.get(key)
    return holder.get(_camel(key)) if value is None else value


class Part(NamedTuple):
    """A part that was found to be one."""

    path: str
    kind: str
    inner: Mapping[str, Any]
    """What it holds: a call, a response, … (a text: the part itself)."""
    signed: bool


def part(problems: Problems, path: str, item: object, name_form: re.Pattern[str], *, of_model: bool) -> Part | None:
    """Check a part; None when it is none."""
    found = problems.mapping(path, item)
    if found is None:
        return None
    given = list({_KIND_OF[key] for key, held in found.items() if key in _KIND_OF and held is not None})
    if len(given) != 1:
        problems.add(path, "source", f"must hold exactly one kind of data; it holds {len(given)}")
        return None
    kind = given[0]
    if kind not in (_OF_MODEL if of_model else _OF_USER):
        problems.add(path, "unknown", f"holds a {kind}, which cannot stand in a content of this role")
        return None
    signature = field(found, "thought_signature")
    if signature is not None:
        _bytes(problems, f"{path}.thought_signature", signature)
    if not isinstance(found.get("thought"), bool | None):
        problems.add(f"{path}.thought", "type", f"must be a bool, got {named(found['thought'])}")
    if not of_model and (signature is not None or found.get("thought")):
        problems.add(path, "unknown", "only the model thinks: a part of the user has no thought and no signature")
    value = field(found, kind)
    place = f"{path}.{kind}"
    if kind == "text":
        if value != "" or signature is None:  # a signature may come in a part of its own
            problems.text(place, value)
        return Part(path, kind, found, signature is not None)
    inner = problems.mapping(place, value)
    if inner is None:
        return None
    _inside(problems, place, kind, inner, name_form)
    return Part(path, kind, inner, signature is not None)


def _inside(problems: Problems, path: str, kind: str, inner: Mapping[str, Any], name_form: re.Pattern[str]) -> None:
    if kind in ("function_call", "function_response"):
        tools.tool_name(problems, path, inner, name_form)
        if inner.get("id") is not None:
            problems.text(f"{path}.id", inner["id"])
    if kind == "function_call":
        if inner.get("args") is not None:
            problems.free_object(f"{path}.args", inner["args"], "arguments")
    elif kind == "function_response":
        if problems.required(path, inner, "response") is not None:
            problems.free_object(f"{path}.response", inner["response"], "type")
        if inner.get("parts") is not None:
            _response_parts(problems, f"{path}.parts", inner["parts"])
    elif kind in ("inline_data", "file_data"):
        _media(problems, path, kind, inner)


def _response_parts(problems: Problems, path: str, value: object) -> None:
    """The images and files that a function gives back beside its response."""
    for place, item in enumerate(problems.sequence(path, value) or ()):
        where = f"{path}[{place}]"
        found = problems.mapping(where, item)
        if found is None:
            continue
        given = [kind for kind in ("inline_data", "file_data") if field(found, kind) is not None]
        if len(given) != 1:
            problems.add(where, "source", f"must hold exactly one of inline_data, file_data; it holds {len(given)}")
            continue
        inner = problems.mapping(f"{where}.{given[0]}", field(found, given[0]))
        if inner is not None:
            _media(problems, f"{where}.{given[0]}", given[0], inner)


def _media(problems: Problems, path: str, kind: str, blob: Mapping[str, Any]) -> None:
    """Bytes, with their type; or a file or an address, whose type may be left to the provider."""
    media_type = field(blob, "mime_type")
    if media_type is not None:
        _media_type(problems, f"{path}.mime_type", media_type)
    if kind == "file_data":
        uri = field(blob, "file_uri")
        if uri is None:
            problems.add(f"{path}.file_uri", "missing", "must be given")
        else:
            problems.text(f"{path}.file_uri", uri, blank=False)
        return
    if media_type is None:
        problems.add(f"{path}.mime_type", "missing", "must be given")
    if problems.required(path, blob, "data") is not None:
        _bytes(problems, f"{path}.data", blob["data"])


def _media_type(problems: Problems, path: str, value: object) -> None:
    text = problems.text(path, value)
    if text is not None and not (text in _IMAGES or text in _APPLICATIONS or text.startswith(_ANY_OF)):
        problems.add(path, "media-type", f"is {named(text)}, which the provider does not take")


def _bytes(problems: Problems, path: str, value: object) -> None:
    if not isinstance(value, bytes):
        media.base64_text(problems, path, value, url_safe=True)
    elif not value:
        problems.add(path, "empty", "must not be empty")


def instruction(problems: Problems, path: str, value: object) -> None:
    """Check a system instruction: a text, a Content, a part, or a list of texts and parts."""
    if isinstance(value, str):
        problems.text(path, value)
        return
    found = as_mapping(value)
    if found is not None and found.get("parts") is None:
        _instruction_part(problems, path, found)
        return
    place, listed = (path, value) if found is None else (f"{path}.parts", found["parts"])
    for number, item in enumerate(problems.sequence(place, listed) or ()):
        where = f"{place}[{number}]"
        if isinstance(item, str):
            problems.text(where, item)
        else:
            _instruction_part(problems, where, item)


def _instruction_part(problems: Problems, path: str, item: object) -> None:
    found = problems.mapping(path, item)
    if found is not None:
        problems.required_text(path, found, "text")
