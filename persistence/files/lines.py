"""Reading the lines of a file of any content in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from session_actor.persistence.format.record import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_BYTES: Final = 1024 * 1024


class Line(NamedTuple):
    """Bytes up to a LF, or to where reading ended."""

    offset: int
    end: int
    data: bytes
    """LF included; empty for a line that is longer than any valid one."""


class Readable(Protocol):
    """What `read_lines` needs of a file."""

    def read(self, offset: int, length: int) -> bytes:
        """See `DiskFile`."""
        ...


def read_lines(file: Readable, start: int, end: int, piece_bytes: int = PIECE_BYTES) -> Iterator[Line]:
    """The lines from offset `start` to `end`, or to the end of the file when that comes first. Blocks. Raises OSError.

    The last one may lack its LF. Nothing longer than `MAX_LINE_BYTES` is ever held. `piece_bytes`: read at a time.
    """
    kept: list[bytes] = []
    held, offset, position = 0, start, start
    while position < end and (piece := file.read(position, min(piece_bytes, end - position))):
        for part in _split(piece):
            position += len(part)
            held += len(part)
            if held <= MAX_LINE_BYTES:
                kept.append(part)
            else:
                kept.clear()
            if part.endswith(b"\n"):
                yield Line(offset, position, b"".join(kept) if held <= MAX_LINE_BYTES else b"")
                kept.clear()
                held, offset = 0, position
    if held:
        yield Line(offset, position, b"".join(kept) if held <= MAX_LINE_BYTES else b"")


def _split(piece: bytes) -> list[bytes]:
    """Cut behind each LF and nowhere else: `splitlines` cuts at CR, too."""
    if b"\n" not in piece:
        return [piece]
    parts = [part + b"\n" for part in piece.split(b"\n")]
    parts[-1] = parts[-1][:-1]
    return parts if parts[-1] else parts[:-1]
