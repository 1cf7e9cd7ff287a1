"""Gaps: records that stand for what is lost, and the rule by which one record follows another.

A gap is a record of kind `store.gap`. Its `seq` is the last number that is lost, its data say the first one and why,
its `prev` is the sum of the record before the loss, its `at` is that record's. The record behind a gap names the sum of
a record that is lost: it is the only one whose `prev` is not checked. Salvage alone makes gaps, and only on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from session_actor.persistence.errors import LineDamaged

from .record import NO_SUM, encode_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .record import Record

GAP: Final = "store.gap"
"""Kind of the record that stands for lost ones."""


class Gap(msgspec.Struct, frozen=True, gc=False):
    """What a gap says: the first record that is lost (the last one is its own `seq`), and why."""

    first: int
    why: str


class Link(NamedTuple):
    """A record, as far as the next one must know it. The default stands before the first record of a session."""

    seq: int = 0
    sum: str = NO_SUM
    is_gap: bool = False

    def follows(self, record: Record) -> bool:
        """Whether `record` comes right behind this one."""
        if record.kind == GAP:
            first = first_lost(record)
            return first == self.seq + 1 <= record.seq and record.prev == self.sum
        return record.seq == self.seq + 1 and (self.is_gap or record.prev == self.sum)

    @staticmethod
    def of(record: Record) -> Link:
        """The link that `record` is."""
        return Link(record.seq, record.sum, record.kind == GAP)


def first_lost(record: Record) -> int:
    """The first record that a gap stands for; -1 when it does not say so."""
    try:
        return _GAP.decode(record.data).first
    except msgspec.DecodeError:
        return -1


def read_gap(record: Record) -> Gap:
    """What a record of kind `store.gap` says. Raises `LineDamaged`."""
    try:
        return _GAP.decode(record.data)
    except msgspec.DecodeError:
        raise LineDamaged("it is a gap that does not say what is lost") from None


def encode_gap(before: Link, last: int, at_us: int, why: str) -> tuple[bytes, str]:
    """The journal line, LF included, that stands for all records behind `before` up to `last`, and its sum."""
    return encode_record(last, at_us, GAP, msgspec.json.encode(Gap(before.seq + 1, why)), before.sum)


def first_misfit(records: Iterable[Record], before: Link) -> int | None:
    """Index of the first record that does not follow the one before, the first of all following `before`."""
    for index, record in enumerate(records):
        if not before.follows(record):
            return index
        before = Link.of(record)
    return None


_GAP: Final = msgspec.json.Decoder(Gap)
