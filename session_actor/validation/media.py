"""Media inside a message: where its bytes are, and of what type they are."""

from __future__ import annotations

import binascii
import re
from typing import TYPE_CHECKING, Any, Final

from session_actor.requests.limits import limits_of

from .problems import as_mapping, named

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from .problems import Problems

WEB_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""What Anthropic (docs, "Vision") and OpenAI (docs, "Images and vision") take as an image."""

_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)((?:;[\w.+-]+=[^;,]*)*);base64,", re.ASCII)
_WEB: Final = re.compile(r"https?://[^\s/]")
_FROM_URL_SAFE: Final = str.maketrans("-_", "+/")


_IMAGE_TYPES: Final = frozenset({"image", "image_url", "input_image"})
_BLOBS: Final = ("inline_data", "inlineData", "file_data", "fileData")
_WRITTEN: Final = frozenset({"args", "arguments", "input", "response"})
"""Keys of what a model or a tool wrote: no image in it is one."""


def whole(problems: Problems, dialect: str, messages: object, where: str) -> None:
    """Check that a request holds no more images, and no more bytes, than the provider takes (`requests.limits`).

    What is counted is at most what is sent: texts by their characters, media by their base64.
    """
    limits, images, characters = limits_of(dialect), 0, 0
    left: list[Iterable[Any]] = [(messages,)]
    met: dict[int, object] = {}  # a list may hold itself
    while left:
        for value in left.pop():
            if isinstance(value, str):
                characters += len(value)
            elif isinstance(value, bytes):
                characters += (len(value) + 2) // 3 * 4
            elif value is not None and id(value) not in met:
                met[id(value)] = value
                if isinstance(value, (list, tuple)):
                    left.append(value)  # pyright: ignore[reportUnknownArgumentType] - of anything
                elif (found := as_mapping(value)) is not None:
                    images += _is_image(found)
                    left.append([item for key, item in found.items() if key not in _WRITTEN])
    if limits.images is not None and images > limits.images:
        problems.add(where, "limit", f"hold {images:,} images; the provider takes {limits.images:,} in one request")
    if limits.megabytes is not None and characters > limits.megabytes << 20:
        problems.add(where, "limit", f"take up {characters:,} bytes; the provider takes {limits.megabytes} MB at once")


def _is_image(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    if isinstance(kind, str):
        return kind in _IMAGE_TYPES
    blob = next((held for key in _BLOBS if key in block and (held := as_mapping(block[key])) is not None), None)
    mime = None if blob is None else blob.get("mime_type", blob.get("mimeType"))
    return isinstance(mime, str) and mime.startswith("image/")


def base64_text(problems: Problems, path: str, value: object, *, url_safe: bool = False) -> None:
    """Check data in base64: the standard alphabet with its padding, no line breaks (RFC 4648, section 4).

    `url_safe`: the other alphabet may stand there as well (section 5), with or without padding.
    """
    text = problems.text(path, value)
    if text is None:
        return
    if url_safe:
        text = text.translate(_FROM_URL_SAFE)
        text += "=" * (-len(text) % 4)
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        problems.add(path, "base64", "is no base64 of the standard alphabet, padded and without line breaks")


def web_address(problems: Problems, path: str, value: object) -> None:
    """Check an address that the provider fetches."""
    text = problems.text(path, value)
    if text is not None and not _WEB.match(text):
        problems.add(path, "url", "must begin with https:// or http://")


def data_or_web_address(problems: Problems, path: str, value: object, types: Container[str]) -> None:
    """Check an address that is a data: URL of one of `types`, or one of the web."""
    if isinstance(value, str) and value.startswith("data:"):
        data_url(problems, path, value, types)
    else:
        web_address(problems, path, value)


def data_url(problems: Problems, path: str, value: str, types: Container[str] | None) -> None:
    """Check a data: URL in base64. `types`: None: of any type."""
    head = _DATA_URL.match(value)
    if head is None:
        problems.add(path, "url", "must be a data: URL that names its media type and is in base64")
        return
    if types is not None:
        media_type(problems, path, head[1], types)
    base64_text(problems, path, value[head.end() :])


def media_type(problems: Problems, path: str, value: object, types: Container[str]) -> None:
    """Check that the provider takes media of this type."""
    text = problems.text(path, value)
    if text is not None and text not in types:
        problems.add(path, "media-type", f"is {named(text)}, which the provider does not take here")


def one_source(problems: Problems, path: str, holder: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    """The one of `keys` that is given; None, and a problem, when none or several are."""
    given = [key for key in keys if holder.get(key) is not None]
    if len(given) == 1:
        return given[0]
    problems.add(path, "source", f"must have exactly one of {', '.join(keys)}; it has {len(given)}")
    return None
