"""The lines of a file as what they say: one that cannot be read is noted, and the reading goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .fields import UNREADABLE, reason_of
from .lines import bare_line, too_long

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable

    from .lines import Line
    from .notes import Notes

Said = TypeVar("Said")


async def said_in(
    lines: AsyncIterator[Line], notes: Notes, read: Callable[[bytes, int], Iterable[Said]]
) -> AsyncGenerator[Said]:
    """All that `read` finds in the lines. It gets each with the byte where it begins, and raises `UNREADABLE`."""
    async for offset, _, data in lines:
        if data is None:
            notes.add(offset, too_long())
            continue
        line = bare_line(data)
        if not line:
            continue
        try:
            for said in read(line, offset):
                yield said
        except UNREADABLE as error:
            notes.add(offset, reason_of(error))
