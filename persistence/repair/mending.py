"""The records of a damaged session in the order of their numbers, with gaps in place of what is lost: pure.

`prefix`: nothing counts from the first loss on. `readable`: every record that can be read counts, and a gap stands for
each run that cannot. A record that says it follows another one than it does is itself lost.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.format.gap import GAP, Link, encode_gap
from session_actor.persistence.format.record import Record, decode_record

Salvage = Literal["prefix", "readable"]
"""What of a damaged session is kept."""

SALVAGES: Final[tuple[Salvage, ...]] = ("prefix", "readable")


class Kept(NamedTuple):
    """A line of the mended session."""

    line: bytes
    record: Record


class Mender:
    """Takes the readable records of a session in order; tells which lines to write in their place."""

    def __init__(self, salvage: Salvage, link: Link | None = None, at_us: int = 0) -> None:
        """`link`: the record before the first one that will be taken, made at `at_us`; None: there is none."""
        self.link = Link() if link is None else link
        self.gaps: list[tuple[int, int]] = []
        """First and last number of each run of records that is lost and has a gap."""
        self.dropped = 0
        """Readable records that do not count: behind a loss (`prefix`), doubled, or in the place of others."""
        self.ended = False
        """`prefix` met a loss."""
        self._salvage = salvage
        self._at_us = at_us

    def take(self, record: Record, line: bytes) -> list[Kept]:
        """The next readable record; `line`: its bytes, LF included."""
        if self.ended or record.seq <= self.link.seq:
            self.dropped += 1
            return []
        if self.link.follows(record):
            return [self._keep(Kept(line, record))]
        if self._salvage == "prefix":
            self.ended = True
            self.dropped += 1
            return []
        if record.kind == GAP or record.seq == self.link.seq + 1:
            self.dropped += record.kind != GAP
            return self.lose(record.seq, "unfit", time_of(record))
        return [*self.lose(record.seq - 1, "missing", time_of(record)), self._keep(Kept(line, record))]

    def lose(self, last: int, why: str, at_us: int | None = None) -> list[Kept]:
        """The records up to `last` are lost, if they did not come; `at_us`: the time to give when there is no other."""
        if self.ended or last <= self.link.seq:
            return []
        if self._salvage == "prefix":
            self.ended = True
            return []
        return self._gap(last, why, at_us)

    def skip(self, last: int, why: str, at_us: int | None = None) -> list[Kept]:
        """The records up to `last` were given up on purpose: a gap stands for them, which is no loss."""
        return [] if self.ended or last <= self.link.seq else self._gap(last, why, at_us)

    def _gap(self, last: int, why: str, at_us: int | None) -> list[Kept]:
        line, _ = encode_gap(self.link, last, self._at_us or at_us or 0, why)
        self.gaps.append((self.link.seq + 1, last))
        return [self._keep(Kept(line, decode_record(line)))]

    def _keep(self, kept: Kept) -> Kept:
        self.link = Link.of(kept.record)
        self._at_us = time_of(kept.record) or self._at_us
        return kept


def time_of(record: Record) -> int:
    """When it was made; 0 for a time that cannot be read."""
    try:
        return record.at_us
    except LineDamaged:
        return 0
