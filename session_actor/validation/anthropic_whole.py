"""What Anthropic asks of all documents and images of a request together.

Sources: docs "Vision" (no image over 8,000 pixels; among more than 20 none over 2,000), "Citations" ("must be enabled
on all or none of the documents"), "Structured outputs" (not together with citations), "Tool search tool" (a reference
names a tool that is defined); and what the API answers: "The image was specified using the image/png media type, but
the image appears to be a image/jpeg image" (github.com/BerriAI/litellm/issues/24900). Docs "PDF support" (at most 600
pages in a request; models with a small window take fewer).
"""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any, Final

from session_actor.media import image_size, image_type, pdf_pages

from .problems import as_mapping, named

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .anthropic_cache import Cache
    from .problems import Problems

_MANY: Final = 20
_MOST_PAGES: Final = 600
_LONGEST_SIDE: Final = 8_000
_LONGEST_OF_MANY: Final = 2_000
_HEAD: Final = 1 << 18
"""So much of the base64 of an image is looked into for its size."""
_TYPE_HEAD: Final = 64


class Whole:
    """What was seen so far."""

    def __init__(self, problems: Problems, cache: Cache, tools: Collection[str]) -> None:
        """Nothing yet. `tools`: the names of those that are defined."""
        self.cache = cache
        self._problems = problems
        self._tools = tools
        self._images: list[tuple[str, Mapping[str, Any]]] = []
        self._pages = 0
        self._cited: dict[str, dict[bool, str]] = {}

    def block(self, path: str, kind: str, block: Mapping[str, Any]) -> None:
        """Take a block of a message or of a result."""
        if kind == "image":
            self._images.append((path, as_mapping(block.get("source")) or {}))
            self._type(path, self._images[-1][1])
        elif kind in ("document", "search_result"):
            citations = as_mapping(block.get("citations")) or {}
            if kind == "document":
                self._count(path, as_mapping(block.get("source")) or {})
            self._cited.setdefault(kind, {}).setdefault(citations.get("enabled") is True, path)
        elif kind == "tool_reference":
            name = block.get("tool_name")
            if not isinstance(name, str) or name not in self._tools:
                self._problems.add(f"{path}.tool_name", "unknown", f"no tool is named {named(name)}")

    def _count(self, path: str, source: Mapping[str, Any]) -> None:
        before, self._pages = self._pages, self._pages + (pdf_pages(_head(source)) or 0)
        if before <= _MOST_PAGES < self._pages:
            self._problems.add(f"{path}.source", "limit", f"brings more than {_MOST_PAGES} pages into the request")

    def close(self, *, has_format: bool) -> None:
        """No more blocks follow. `has_format`: the answer has a format to keep to."""
        for kind, found in self._cited.items():
            if len(found) > 1:
                why = f"must have citations enabled like every other {kind}, or none of them"
                self._problems.add(found[False], "conflict", why)
            elif has_format and True in found:
                self._problems.add(found[True], "conflict", "must not have citations where the answer has a format")
        many = len(self._images) > _MANY
        most = _LONGEST_OF_MANY if many else _LONGEST_SIDE
        for path, source in self._images:
            size = image_size(_head(source, _HEAD))
            if size is not None and max(size) > most:
                why = f"must be at most {most:,} pixels wide and high{f' among more than {_MANY} images' * many}"
                self._problems.add(f"{path}.source", "limit", why)

    def _type(self, path: str, source: Mapping[str, Any]) -> None:
        kind, given = image_type(_head(source, _TYPE_HEAD)), source.get("media_type")
        if kind is not None and isinstance(given, str) and given.startswith("image/") and kind != given:
            why = f"is {named(given)}, and the image itself is {kind}"
            self._problems.add(f"{path}.source.media_type", "media-type", why)


def _head(source: Mapping[str, Any], length: int | None = None) -> bytes:
    """The first bytes of media, or all; none where they are not given, or are no base64."""
    data = source.get("data")
    if not isinstance(data, str):
        return b""
    try:
        return binascii.a2b_base64(data[:length])
    except ValueError:
        return b""
