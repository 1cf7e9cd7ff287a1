"""What verifying says of a session's snapshots: whether they are whole, and of records that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .errors import LineDamaged
from .findings import REPAIR
from .snapshot import look, read_slot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .findings import Findings
    from .log_survey import Owner
    from .storage import Disk

_TODO: Final = f"{REPAIR} moves it aside; the session is loaded without it"


class SnapshotCheck:
    """Checks the snapshots of sessions."""

    def __init__(self, disk: Disk, folder: str, findings: Findings) -> None:
        """`folder`: of all snapshots."""
        self._disk = disk
        self._folder = folder
        self._findings = findings
        self.told: set[str] = set()
        """Paths of the damaged ones."""

    def wanted(self, owner: Owner) -> frozenset[int]:
        """The records after which the snapshots of a birth were taken. Raises `StoreVersionTooNew`, OSError."""
        return frozenset(slot.seq for slot in look(self._disk, self._folder, *owner).good)

    def check(
        self, owner: Owner, in_journal: Mapping[int, str], in_log: Mapping[tuple[Owner, int], str], *, whole: bool
    ) -> None:
        """Tell what is wrong with the snapshots of a birth.

        `in_journal`, `in_log`: sums of the records that were found. `whole`: whether the journal is, so that a record
        that was not found is not there.
        """
        slots = look(self._disk, self._folder, *owner)
        for path in slots.damaged:
            self._damage(path, owner, "it cannot be read", None)
        for slot in slots.good:
            try:
                snapshot = read_slot(self._disk, slot, *owner)
            except LineDamaged as error:
                self._damage(slot.path, owner, str(error), slot.seq)
                continue
            self._findings.size_bytes += len(snapshot.data)
            found = in_journal.get(slot.seq) or in_log.get((owner, slot.seq))
            if found is None and whole:
                self._damage(slot.path, owner, f"record {slot.seq}, after which it was taken, is not there", slot.seq)
            elif found is not None and found != snapshot.sum:
                self._damage(slot.path, owner, f"it was taken after another record {slot.seq}", slot.seq)

    def _damage(self, path: str, owner: Owner, what: str, seq: int | None) -> None:
        self.told.add(path)
        self._findings.damage("snapshot", path, what, _TODO, session=owner[0], seq=seq)
