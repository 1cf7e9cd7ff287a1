"""How large a record is, roughly and at no cost, and whether one record may hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec

from session_actor.blocks import Text
from session_actor.errors import RecordTooLarge
from session_actor.persistence.format import values
from session_actor.persistence.format.escapes import least_bytes
from session_actor.persistence.format.record import MAX_RECORD_BYTES

if TYPE_CHECKING:
    from session_actor.events import AnyEvent, Pushed, Requested
    from session_actor.frames import Turn

SMALL: Final = 256
"""The weight of a record without content: names are short."""

_REQUEST: Final = 1_024
"""That of a request given out: numbers and a few short names, beside the model's, its mark and what was merged in."""

_LIMIT_BYTES: Final = MAX_RECORD_BYTES - 8_192
"""Leaves room for a key."""

SURELY_FITS: Final = _LIMIT_BYTES // 8
"""Up to this weight any record fits: no character takes 8 bytes in JSON, not even an escape within an escape."""


def weight_of(event: Pushed) -> int:
    """The size of a record in rough bytes: one for a character, and a constant for the rest."""
    weight = SMALL + len(event.user_input) + len(event.assistant_output)
    if event.turns is not None:
        for turn in event.turns:
            weight += weight_of_turn(turn)
        if event.instructions is not None:
            weight += _size(event.instructions)
        if event.artifacts:
            weight += _size(event.artifacts)
        if event.retracted is not None:
            weight += _size(event.retracted)
    for text in event.assumptions:
        weight += len(text)
    for text in event.decisions:
        weight += len(text)
    return weight


def weight_of_turn(turn: Turn) -> int:
    """The part of a turn in that."""
    weight = SMALL if turn.usage is None else SMALL + _size(turn.usage)
    for block in turn.blocks:
        weight += len(block.text) if type(block) is Text and block.signature is None else _size(block)
    return weight


def weigh(event: AnyEvent) -> int:
    """The size of a record of any kind in rough bytes. Raises `RecordTooLarge` when one record cannot hold it."""
    weight = SMALL + _size(event)
    if weight > SURELY_FITS:
        check_size(event)
    return weight


def weight_of_request(event: Requested) -> int:
    """As `weigh`, without looking at every number."""
    weight = _REQUEST + len(event.quote.key.model) + len(bytes(event.extra)) * 4 // 3
    if event.made is not None:
        weight += _size(event.made)
    if weight > SURELY_FITS:
        check_size(event)
    return weight


def check_size(event: AnyEvent) -> None:
    """Raise `RecordTooLarge` when one record cannot hold an event heavier than `SURELY_FITS`.

    Only what may fit is encoded to know: what cannot must not take its time.
    """
    size = _least(event)
    if size <= _LIMIT_BYTES:
        size = len(values.encode_record_data(event))
    if size > _LIMIT_BYTES:
        raise RecordTooLarge(size, _LIMIT_BYTES)


def _least(value: object) -> int:
    """How many bytes the contents of `value` take at least."""
    if isinstance(value, str):
        return least_bytes(value)
    if isinstance(value, tuple):
        return sum(map(_least, cast("tuple[object, ...]", value)))
    if isinstance(value, msgspec.Struct):
        return sum(_least(getattr(value, name)) for name in value.__struct_fields__)
    return len(bytes(value)) if isinstance(value, bytes | msgspec.Raw) else 0


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple):
        return sum(map(_size, cast("tuple[object, ...]", value)))
    if isinstance(value, msgspec.Struct):
        return 32 + sum(_size(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, bytes | msgspec.Raw):
        return len(bytes(value)) * 4 // 3
    return 8
