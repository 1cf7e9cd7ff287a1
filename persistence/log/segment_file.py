"""Reading the file of a log segment, whatever stands in its place, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.persistence.files.plain_file import NotPlain, open_plain

if TYPE_CHECKING:
    from session_actor.persistence.files.storage import Disk

MAX_SEGMENT_BYTES: Final = 512 * 1024 * 1024
"""No segment is larger: it is read whole."""


def read_segment(disk: Disk, path: str, limit: int = MAX_SEGMENT_BYTES) -> tuple[bytes, str]:
    """The first `limit` bytes of a segment; none, and why, when it is no plain file or larger than any. Blocks.

    Raises OSError.
    """
    try:
        file = open_plain(disk, path)
    except NotPlain:
        return b"", "it is no plain file"
    try:
        size = file.size()
        if size > MAX_SEGMENT_BYTES:
            return b"", f"it is larger than any segment: {size} bytes"
        return file.read(0, min(limit, size)), ""
    finally:
        file.close()
