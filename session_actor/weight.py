"""How large a record is, roughly and at no cost, and whether one record may hold it."""

from __future__ import annotations

from typing import Final

import msgspec

from session_actor.persistence import values
from session_actor.persistence.record import MAX_RECORD_BYTES

from .errors import RecordTooLarge
from .events import AnyEvent, Pushed

_SMALL: Final = 256
"""The weight of a record without content: names are short."""

_WORST: Final = 8
"""No character takes more bytes in JSON: an escape within an escape."""


def weight_of(event: AnyEvent) -> int:
    """The size of a record in rough bytes: one for a character, and a constant for the rest."""
    if type(event) is not Pushed:
        return _SMALL
    weight = _SMALL + len(event.user_input) + len(event.assistant_output)
    if event.assumptions or event.decisions:
        weight += _size(event.assumptions) + _size(event.decisions)
    if event.turns:
        weight += _size(event.turns)
    if event.instructions is not None:
        weight += _size(event.instructions)
    return weight


def check_size(event: AnyEvent, weight: int) -> None:
    """Raise `RecordTooLarge` when one record cannot hold the event; encodes it only when it may be too large."""
    if weight * _WORST <= MAX_RECORD_BYTES:
        return
    size = len(values.encode_record_data(event))
    if size > MAX_RECORD_BYTES:
        raise RecordTooLarge(size, MAX_RECORD_BYTES)


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple):
        return sum(map(_size, value))
    if isinstance(value, bytes):
        return len(value) * 4 // 3
    if isinstance(value, msgspec.Raw):
        return len(bytes(value))
    if isinstance(value, msgspec.Struct):
        return 32 + sum(_size(getattr(value, name)) for name in value.__struct_fields__)
    return 8
