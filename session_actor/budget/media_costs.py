"""What images and documents cost [tokens]: by pixels and pages, never by their bytes in base64."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Final

from session_actor.media import image_size, pdf_pages
from session_actor.tokens.estimate import estimate_tokens
from session_actor.tokens.images import image_tokens, page_tokens, pages_of, unknown_image_tokens

if TYPE_CHECKING:
    from session_actor.blocks import Document, Image

_SCHEME: Final = "data:"
_BASE64: Final = ";base64,"
_HEADER: Final = 1 << 16  # characters of base64 that are looked at first: an image tells its size near its beginning
_TEXTS: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/javascript"})


def image_cost(image: Image, rule: str, family: str) -> int:
    """Return what an image costs by a rule of `tokens.images`; one whose size cannot be read, by its careful figure."""
    if image.data is not None:
        return data_cost(image.data, "image/", rule, family)
    if image.url is not None and is_data_uri(image.url):
        return uri_cost(image.url, rule, family)
    return unknown_image_tokens(rule)


def document_cost(document: Document, rule: str, family: str) -> int:
    """Return what a document costs: a text its tokens, else its pages; pages that cannot be counted are assumed."""
    if document.url is not None and is_data_uri(document.url):
        return uri_cost(document.url, rule, family)
    return data_cost(document.data, document.media_type or "", rule, family)


def data_cost(data: bytes | None, media_type: str, rule: str, family: str) -> int:
    """Return what bytes of a media type cost; None: they are only named."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind.startswith("image/"):
        return _image(data, rule)
    if data is not None and (kind.startswith("text/") or kind in _TEXTS):
        return estimate_tokens(data.decode("utf-8", "replace"), family)
    return _pages(data) * page_tokens(rule)


def is_data_uri(url: str) -> bool:
    """Whether a URL carries its content itself, in base64."""
    return url.startswith(_SCHEME) and _BASE64 in url[:256]


def uri_cost(uri: str, rule: str, family: str) -> int:
    """Return what a data URI carries; of an image only as much is decoded as tells its size."""
    head, _, body = uri.partition(_BASE64)
    media_type = head[len(_SCHEME) :]
    if media_type.startswith("image/"):
        size = image_size(decoded(body[:_HEADER]))
        if size is not None:
            return image_tokens(*size, rule)
    return data_cost(decoded(body), media_type, rule, family)


def decoded(body: str) -> bytes:
    """Decode base64; what cannot be read gives no bytes."""
    try:
        return b64decode(body + "=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        return b""


def _image(data: bytes | None, rule: str) -> int:
    size = None if data is None else image_size(data)
    return unknown_image_tokens(rule) if size is None else image_tokens(*size, rule)


def _pages(data: bytes | None) -> int:
    if data is None:
        return pages_of(None)
    return pdf_pages(data) or pages_of(len(data))
