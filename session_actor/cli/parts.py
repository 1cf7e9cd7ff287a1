"""What the lines that commands print with `--json` have in common, and the parts that they are made of.

Each line has the field `schema`: command, kind of line and version. Within a version fields are only added. The JSON
schemas (`schemas.py`) are made from these types; the lines themselves are in `lines.py` and `store_lines.py`.
"""

from __future__ import annotations

import msgspec


class Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="line/1"):
    """One line of output."""


Run = tuple[int, int]
"""The first and the last of consecutive frames."""


class BudgetPart(msgspec.Struct, frozen=True):
    """How full the window of the model is, in tokens."""

    model: str
    pressure: str
    used: int
    upper: int
    allowance: int
    window: int


class UsagePart(msgspec.Struct, frozen=True):
    """What providers charged, in tokens."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


class BlockPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One block of a turn; which fields there are follows from `type`."""

    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    is_error: bool | None = None
    media_type: str | None = None
    url: str | None = None
    file_id: str | None = None
    source: str | None = None
    dialect: str | None = None
    size_bytes: int | None = None
    raw: str | None = None
    """JSON text of what one provider gave."""
    blocks: tuple[BlockPart, ...] | None = None


class TurnPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message."""

    role: str
    blocks: tuple[BlockPart, ...]
    model: str | None = None
    dialect: str | None = None
    stop_reason: str | None = None
    usage: UsagePart | None = None


class NotePart(msgspec.Struct, frozen=True):
    """Something that was left out of a request, or put in."""

    what: str
    frame: int | None


class DiffPart(msgspec.Struct, frozen=True):
    """A name at both moments; null: not there, 0: an empty branch."""

    before: int | None
    after: int | None


class NotWholePart(msgspec.Struct, frozen=True):
    """Where an export is not what was written."""

    offset: int
    lack: str
    frames: int
    what: str


class UnreadPart(msgspec.Struct, frozen=True):
    """A line that could not be read."""

    offset: int
    why: str
