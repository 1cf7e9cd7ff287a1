"""Images and documents: which dialect has a form for which, and what is shown of one that has none."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from session_actor.blocks import Document, Image
from session_actor.media import image_size, image_type

from .texts import clean, visible

if TYPE_CHECKING:
    from session_actor.dialects import Dialect

Media: TypeAlias = Image | Document

PDF: Final = "application/pdf"
_WEB_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_IMAGES: Final = {
    "anthropic": _WEB_IMAGES,  # docs, "Vision"
    "openai_chat": _WEB_IMAGES,  # docs, "Images and vision"
    "openai_responses": _WEB_IMAGES,
    "gemini": frozenset(
        {"image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"}
    ),  # docs, "Image understanding"
}
_LONGEST_SIDE: Final = {"anthropic": 8_000}
"""Docs, "Vision", general limits [pixels]."""
_LONGEST_DATA: Final = {"anthropic": 5 << 20}
"""In base64: "image exceeds 5 MB maximum"."""
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_RESPONSES_DOCUMENTS: Final = {  # docs, "File inputs": media type to the ending of the file's name
    PDF: "pdf",
    f"{_OFFICE}wordprocessingml.document": "docx",
    f"{_OFFICE}presentationml.presentation": "pptx",
    f"{_OFFICE}spreadsheetml.sheet": "xlsx",
    "application/msword": "doc",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.ms-excel": "xls",
    "application/rtf": "rtf",
}
_TEXT: Final = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|javascript)")
_WEB: Final = re.compile(r"https?://[^\s/]")
_DATA_URL: Final = re.compile(r"data:([^;,]+)(?:;[^;,]*)*;base64,")
_ENDINGS: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": PDF,
    "txt": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
}


def carries(dialect: Dialect, block: Media) -> bool:
    """Whether a request of this dialect can show `block`; if not, it shows `unseen(block)` in its place."""
    block = unpacked(block)
    if block.data is not None:
        return bool(block.data) and _carries_data(dialect, block)
    if block.file_id is not None:
        same_provider = block.dialect is None or block.dialect.split("_")[0] == dialect.split("_")[0]
        return same_provider and not (dialect == "openai_chat" and isinstance(block, Image))
    return block.url is not None and _carries_url(dialect, block, block.url)


def is_too_large(dialect: Dialect, block: Media) -> bool:
    """Whether it is an image, given as data, that the API refuses for its size; one of an unknown size is not."""
    if not isinstance(block, Image) or not block.data:
        return False
    longest, side = _LONGEST_DATA.get(dialect), _LONGEST_SIDE.get(dialect)
    if longest is not None and (len(block.data) + 2) // 3 * 4 > longest:
        return True
    return side is not None and max(image_size(block.data) or (0,)) > side


def _carries_url(dialect: Dialect, block: Media, url: str) -> bool:
    if isinstance(block, Document) and dialect == "openai_chat":
        return False
    if isinstance(block, Document) and dialect == "anthropic" and media_type(block) != PDF:
        return False
    if dialect == "gemini":
        return (_WEB.match(url) is not None or url.startswith("gs://")) and _is_known(block)
    return _WEB.match(url) is not None


def _is_known(block: Media) -> bool:
    """Whether Gemini, which is told the type of what it fetches, takes that type."""
    kind = media_type(block)
    return kind in _IMAGES["gemini"] if isinstance(block, Image) else kind == PDF or _TEXT.fullmatch(kind) is not None


def _carries_data(dialect: Dialect, block: Media) -> bool:
    kind = media_type(block)
    if isinstance(block, Image):
        return kind in _IMAGES[dialect]
    return is_text(block) or kind in (_RESPONSES_DOCUMENTS if dialect == "openai_responses" else {PDF})


def unpacked(block: Media) -> Media:
    """`block`; one whose url holds its data, with the data itself."""
    if block.url is None or not (head := _DATA_URL.match(block.url)):
        return block
    try:
        data = b64decode(block.url[head.end() :], validate=True)
    except ValueError:
        return block
    return msgspec.structs.replace(block, data=data, url=None, media_type=head[1])


def media_type(block: Media) -> str:
    """What an image's bytes say, else what it says, else what the ending of its name or address says, else the usual.

    Providers look at the bytes, too, and refuse an image that is said to be of another type.
    """
    if isinstance(block, Image) and block.data and (told := image_type(block.data)) is not None:
        return told
    if block.media_type:
        return block.media_type.split(";")[0].strip().lower()
    name = (block.name if isinstance(block, Document) else None) or (block.url or "").split("?")[0]
    usual = PDF if isinstance(block, Document) else "image/jpeg"
    return _ENDINGS.get(name.rpartition(".")[2].lower(), usual)


def is_text(block: Media) -> bool:
    """Whether it is a document of plain text, given as data: it can be shown as text where there is no form for it."""
    return isinstance(block, Document) and bool(block.data) and _TEXT.fullmatch(media_type(block)) is not None


def text_of(block: Media) -> str:
    """The text of a document of plain text."""
    return visible((block.data or b"").decode("utf-8", "replace"))


def as_text(block: Media) -> str:
    """A document of plain text with its name, for a message."""
    name = block.name if isinstance(block, Document) else None
    return f"Document {clean(name)}:\n\n{text_of(block)}" if name else f"Document:\n\n{text_of(block)}"


def file_name(block: Document) -> str:
    """The name of a document; OpenAI wants one with an ending that fits."""
    return clean(block.name) if block.name else f"document.{_RESPONSES_DOCUMENTS.get(media_type(block), 'pdf')}"


def base64_of(block: Media) -> str:
    """Its data in base64."""
    return b64encode(block.data or b"").decode()


def data_url(block: Media) -> str:
    """Its data as an address."""
    return f"data:{media_type(block)};base64,{base64_of(block)}"


def unseen(block: Media) -> str:
    """What a request says of one that it cannot show."""
    return (
        f"[{'An image' if isinstance(block, Image) else 'A document'} that cannot be shown here: {media_type(block)}]"
    )
