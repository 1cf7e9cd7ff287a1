"""Lines of the log as tests read them; the store itself reads many at a time, and never so."""

from __future__ import annotations

from typing import Final

import msgspec

from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.format.record import verify
from session_actor.persistence.format.values import decode_text


class LogLine(msgspec.Struct, frozen=True, gc=False):
    """One line of the log, its record still encoded. A watermark line has neither session nor record."""

    w: int
    """Bytes of the segment known to be synced when the line was written."""
    p: str
    """Sum of the line before."""
    sum: str
    s: str | dict[str, str] = ""
    """The session's id as it stands in the line: see `session`."""
    birth: str = ""
    r: msgspec.Raw = msgspec.Raw()
    """The journal line without its LF; a view on the bytes it was read from."""

    @property
    def session(self) -> str:
        """The session's id; "" for a watermark. Raises `ValueUnreadable`."""
        return decode_text(self.s)

    def __repr__(self) -> str:
        """Without the record, which is conversation."""
        return f"LogLine(w={self.w}, s={self.s!r}, birth={self.birth!r})"


_LOG_LINE: Final = msgspec.json.Decoder(LogLine)


def decode_log_line(line: bytes) -> LogLine:
    """Check and read a log line, LF included; its record is for `decode_record(bytes(line.r) + LF)`.

    Raises `LineDamaged`.
    """
    if not verify(line):
        raise LineDamaged("its sum is not that of its bytes")
    try:
        return _LOG_LINE.decode(line)
    except (msgspec.DecodeError, RecursionError):
        raise LineDamaged("it is no line of a log") from None


def decode_log_lines(lines: bytes) -> list[LogLine]:
    """Read log lines whose sums were checked: none is looked at. Raises `LineDamaged`."""
    try:
        return _LOG_LINE.decode_lines(lines)
    except (msgspec.DecodeError, RecursionError):
        raise LineDamaged("it is no line of a log") from None
