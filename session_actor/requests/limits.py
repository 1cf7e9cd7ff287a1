"""How much media a provider takes in one request, as data.

What is beyond is refused whole: "too many images and documents", "request_too_large". `DATE` tells when the sources
said so.
"""

from __future__ import annotations

from typing import Final, NamedTuple

DATE: Final = "2026-11-30"

MEGABYTE: Final = 1_000_000
"""Providers do not say whether they mean this or 2 ** 20 bytes."""


class Limits(NamedTuple):
    """What one request may hold at most; None: no limit is published."""

    images: int | None = None
    """So many images."""
    many: int | None = None
    """When there are more images than these, none may have a side longer than …"""
    longest_side: int | None = None
    """… this [pixels]."""
    megabytes: int | None = None
    """All of it as it is sent, media in base64."""
    pages: int | None = None
    """So many pages of its PDFs together."""


_ANTHROPIC: Final = Limits(600, 20, 2_000, 32, 600)
"""platform.claude.com, "Vision", general limits; "PDF support", requirements; "Errors", request size limits."""
_ANTHROPIC_SMALL: Final = _ANTHROPIC._replace(images=100, pages=100)
_SMALL_WINDOW: Final = 200_000
"""A model with no larger window takes fewer images and pages (the same sources; "A maximum of 100 PDF pages may be
provided", github.com/anthropics/claude-code/issues/6231)."""
_OPENAI: Final = Limits(images=500, megabytes=50)
"""platform.openai.com, "Images and vision", image input requirements."""
_GEMINI: Final = Limits(images=3_600, megabytes=100)
"""ai.google.dev, "Image understanding", limits; "File input methods", inline data (20 MB before 2026-01-12)."""

_BY_DIALECT: Final = {
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI,
    "openai_chat": _OPENAI,
    "openai_responses": _OPENAI,
}


def limits_of(dialect: str, window: int | None = None) -> Limits:
    """What a request of this dialect may hold. `window`: of the model [tokens]; None: it is not known."""
    if dialect == "anthropic" and window is not None and window <= _SMALL_WINDOW:
        return _ANTHROPIC_SMALL
    return _BY_DIALECT[dialect]
