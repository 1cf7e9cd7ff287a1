"""What Anthropic takes of images when a request has many of them. Source: docs "Vision", general limits."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any, Final, cast

from session_actor.media import image_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MANY: Final = 20
"""With more images than these none may be larger than `LONGEST_SIDE`."""
LONGEST_SIDE: Final = 2_000
"""In pixels."""
_HEAD: Final = 1 << 18
"""So much of the base64 of an image is looked into for its size."""
_TEXT: Final = "[An image is not shown: among more than 20 this API does not take one of this size]"


def count_images(messages: Iterable[Mapping[str, Any]]) -> int:
    """How many images messages hold, those in results too."""
    return sum([1 for message in messages for _ in _images(message.get("content"))])


def leave_out_large(messages: list[dict[str, Any]]) -> int:
    """Put a text in place of every image that is too large among so many; return how many there were."""
    places = [place for message in messages for place in _images(message["content"])]
    if len(places) <= MANY:
        return 0
    large = [(blocks, index) for blocks, index in places if _is_large(blocks[index].get("source"))]
    for blocks, index in large:
        blocks[index] = {"type": "text", "text": _TEXT}
    return len(large)


def _images(content: object) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """The places of images in a content, and in the results in it."""
    if not isinstance(content, list):
        return
    blocks = cast("list[dict[str, Any]]", content)
    for index, block in enumerate(blocks):
        if block.get("type") == "image":
            yield blocks, index
        elif block.get("type") == "tool_result":
            yield from _images(block.get("content"))


def _is_large(source: object) -> bool:
    """Whether its bytes say so; of one that is only named nobody knows. A provider's own block may have any source."""
    data = cast("dict[str, Any]", source).get("data") if isinstance(source, dict) else None
    if not isinstance(data, str):
        return False
    try:
        head = binascii.a2b_base64(data[:_HEAD])
    except ValueError:
        return False
    return max(image_size(head) or (0,)) > LONGEST_SIDE
