"""What verifying says of a session's snapshots: whether they are whole, and of records that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.files.names import snapshot_path
from session_actor.persistence.snapshots.snapshot import SLOTS, check_readable, look, read_slot

from .findings import REPAIR, SALVAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.snapshots.snapshot import Slot

    from .findings import Findings
    from .log_survey import Owner

_TODO: Final = f"{REPAIR} moves it aside; the session is loaded without it"


class SnapshotCheck:
    """Checks the snapshots of sessions."""

    def __init__(self, disk: Disk, folder: str, findings: Findings) -> None:
        """`folder`: of all snapshots."""
        self._disk = disk
        self._folder = folder
        self._findings = findings
        self.told: set[str] = set()
        """Paths of those that something is wrong with."""
        self._unknown: set[Owner] = set()
        """Births that may have had more snapshots than were `wanted`."""

    def wanted(self, owner: Owner) -> frozenset[int]:
        """The records after which the snapshots of a birth were taken. Raises `StoreVersionTooNew`."""
        slots = look(self._disk, self._folder, *owner)
        if slots.refused:
            self._unknown.add(owner)
        return frozenset(slot.seq for slot in slots.good)

    def covered(self, owner: Owner) -> int:
        """The newest record that a snapshot of a birth covers; 0: there is no snapshot.

        Raises `StoreVersionTooNew`, OSError.
        """
        slots = look(self._disk, self._folder, *owner)
        check_readable(slots)
        return max((slot.seq for slot in slots.good), default=0)

    def check(self, owner: Owner, sums: Mapping[int, str], *, whole: bool, pruned: int = 0) -> None:
        """Tell what is wrong with the snapshots of a birth.

        `sums`: of the records that were found. `whole`: whether the journal is, so that a record that was not found is
        not there. `pruned`: the record up to which some are missing, so that a snapshot is needed; 0: none are.
        """
        slots, whole = look(self._disk, self._folder, *owner), whole and owner not in self._unknown
        refused = dict(slots.refused)
        bad: list[tuple[str, str, int | None]] = [(path, "it cannot be read", None) for path in slots.damaged]
        for slot in slots.good:
            try:
                why = self._fault(slot, owner, sums, whole=whole, pruned=pruned)
            except OSError as error:
                refused[slot.path] = error
                continue
            if why is not None:
                bad.append((slot.path, why, slot.seq))
        for path, refusal in refused.items():
            self._findings.refused(path, refusal, session=owner[0])
        self.told.update([*refused, *(path for path, _, _ in bad)])
        if pruned and len(bad) == len(slots.good) + len(slots.damaged):
            self._lost_all(owner, pruned, bad)
            return
        for path, why, seq in bad:
            self._findings.damage("snapshot", path, why, _TODO, session=owner[0], seq=seq)

    def _fault(self, slot: Slot, owner: Owner, sums: Mapping[int, str], *, whole: bool, pruned: int) -> str | None:
        """What is wrong with a snapshot; None: nothing."""
        try:
            snapshot = read_slot(self._disk, slot, *owner)
        except LineDamaged as error:
            return str(error)
        self._findings.size_bytes += len(snapshot.data)
        found = sums.get(slot.seq)
        if slot.seq < pruned:
            return f"it was taken after record {slot.seq}, and records up to {pruned} were pruned"
        if found is None and whole:
            return f"record {slot.seq}, after which it was taken, is not there"
        return None if found in {None, snapshot.sum} else f"it was taken after another record {slot.seq}"

    def _lost_all(self, owner: Owner, pruned: int, bad: list[tuple[str, str, int | None]]) -> None:
        """A pruned session cannot be loaded from its records alone."""
        path = bad[0][0] if bad else f"{self._folder}/{snapshot_path(owner[0], SLOTS[0])}"
        whys = " and ".join(sorted({why for _, why, _ in bad})) or "it is missing"
        what = f"{whys}; no other snapshot is there, and without one the session cannot be loaded: records up to "
        self._findings.damage("pruned", path, f"{what}{pruned} of it were pruned", SALVAGE, session=owner[0])
