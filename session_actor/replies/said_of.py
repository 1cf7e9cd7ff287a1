"""What a provider says of all that it said, such as where it comes from: kept with the last text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.blocks import NULL, Text

if TYPE_CHECKING:
    from session_actor.blocks import Block


def with_more(blocks: list[Block], more: msgspec.Raw) -> list[Block]:
    """The blocks, the last text with `more`; without any text there is nothing that it could be said of."""
    if more is NULL:
        return blocks
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks[place]
        if isinstance(block, Text):
            return [*blocks[:place], msgspec.structs.replace(block, more=more), *blocks[place + 1 :]]
    return blocks
