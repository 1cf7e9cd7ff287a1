"""What the log engine knows of one session while it is in use or has records in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.persistence.format.record import NO_SUM, encode_owner

if TYPE_CHECKING:
    from session_actor.persistence.loading.loader import InFiles
    from session_actor.persistence.snapshots.snapshot import Slot, Slots
    from session_actor.persistence.store import Lease

_NONE: Final[frozenset[Slot]] = frozenset()
"""One for all: each empty one takes 216 bytes, and a visit by the garbage collector."""


class Extent(msgspec.Struct, frozen=True, gc=False):
    """The valid part of a session's newest journal file, as the catalog has it."""

    number: int
    """Of the newest journal file, which is not sealed."""
    size_bytes: int
    seq: int
    """The newest record in it."""
    sum: str
    """Sum of that record."""
    crc: int
    """CRC-32 of all valid bytes of the file."""


class SessionLog:
    """One birth of one session: how far its records are, and where they lie. Compared by identity."""

    __slots__ = (
        "ahead",
        "appended_seq",
        "birth",
        "broken_until",
        "created_us",
        "damage",
        "dead",
        "dying",
        "extent",
        "followed_by",
        "lease",
        "owner",
        "removed",
        "saved_seq",
        "session",
        "slots",
        "synced_seq",
        "tail_sum",
        "unusable",
        "written_seq",
    )

    def __init__(self, session: str, birth: str, created_us: int = 0, extent: Extent | None = None) -> None:
        """`extent`: its part of the catalog; None for a session that has no journal yet."""
        self.session = session
        self.birth = birth
        self.created_us = created_us
        self.extent = extent
        self.owner = encode_owner(session, birth)
        seq = 0 if extent is None else extent.seq
        self.appended_seq = self.written_seq = self.synced_seq = seq
        self.tail_sum = (NO_SUM if extent is None else extent.sum).encode()
        """Sum of the newest record that was encoded, as it stands in the line."""
        self.lease: Lease | None = None
        self.dead = False
        """Deleted: its records are void."""
        self.dying = False
        """Its tombstone is queued."""
        self.broken_until = 0
        """A queued record could not be encoded: it and what was queued behind it, up to this position, is refused."""
        self.followed_by: str | None = None
        """The birth that its id has now, says the log; None: the catalog knows, or there is none."""
        self.removed = False
        """Its files are gone, after it was deleted."""
        self.ahead: InFiles | None = None
        """What was read of its files when the session was looked up, for the load that follows."""
        self.slots: Slots | None = None
        """What its snapshots are; None: nobody looked yet."""
        self.saved_seq = 0
        """The record after which its newest snapshot was taken that is surely durable; 0: none is known."""
        self.unusable = _NONE
        """Whole snapshots that its owner cannot use: they do not count among those that are kept."""
        self.damage: Exception | None = None
        """Why its records cannot be trusted; loading it raises this."""

    @property
    def exists(self) -> bool:
        """Whether it has a record and was not deleted."""
        return self.appended_seq > 0 and not self.dead and not self.dying

    def end_lease(self) -> None:
        """Whoever has the lease has it no more."""
        if self.lease is not None:
            self.lease.live = False
            self.lease = self.ahead = None
