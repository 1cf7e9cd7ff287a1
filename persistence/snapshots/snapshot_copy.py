"""The snapshots of a session that is salvaged: those of a pruned one go on to its new birth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.files.names import snapshot_path
from session_actor.persistence.format.header import RecordRef

from .snapshot import SLOTS, TEMPORARY, check_readable, encode_snapshot, look, read_slot, write_beside

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from session_actor.persistence.files.keeping import Aside
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.store import Snapshot

    from .snapshot import Slot


class SnapshotCopy:
    """Copies a snapshot of one birth to another. All methods block."""

    def __init__(self, disk: Disk, folder: str, session: str, birth: str, unusable: Collection[Slot] = ()) -> None:
        """`folder`: of all snapshots. `birth`: the old one. `unusable`: none of these is copied."""
        self._disk = disk
        self._folder = folder
        self._session = session
        self._birth = birth
        self._unusable = unusable

    def newest(self, first: int, last: int, gaps: Iterable[tuple[int, int]]) -> tuple[Slot, Snapshot] | None:
        """The newest good snapshot after one of the records `first` to `last`, all of them before the first gap.

        One that was taken later names frames whose records are lost. Raises OSError.
        """
        first_lost = min((low for low, _ in gaps), default=last + 1)
        found: list[tuple[int, Slot, Snapshot]] = []
        slots = look(self._disk, self._folder, self._session, self._birth)
        check_readable(slots)
        for slot in slots.good:
            if not first <= slot.seq <= last or slot.seq >= first_lost or slot in self._unusable:
                continue
            try:
                snapshot = read_slot(self._disk, slot, self._session, self._birth)
            except LineDamaged:
                continue
            found.append((slot.seq, slot, snapshot))
        return max(found)[1:] if found else None

    def keep(self, aside: Aside) -> list[str]:
        """Keep the old birth's snapshots, and what is damaged, before they are removed; returns where."""
        slots = look(self._disk, self._folder, self._session, self._birth)
        paths = [*(slot.path for slot in slots.good), *slots.damaged]
        kept = [aside.copy(path, f"{path.rpartition('/')[2]}-{self._birth}.damaged") for path in paths]
        return [place for place in kept if place is not None]

    def copy(self, aside: Aside, birth: str, snapshot: tuple[Slot, Snapshot]) -> list[str]:
        """Write the snapshot for the new birth into the slot that it is not in; returns where that one's is kept."""
        slot, found = snapshot
        name = next(name for name in SLOTS if name != slot.name)
        path = f"{self._folder}/{snapshot_path(self._session, name)}"
        kept = aside.copy(path, f"{path.rpartition('/')[2]}-{self._birth}.damaged")
        content = encode_snapshot(self._session, birth, RecordRef(found.seq, found.sum), bytes(found.data))
        write_beside(self._disk, path, content)
        self._disk.rename(path + TEMPORARY, path)
        self._disk.sync_dir(path.rpartition("/")[0])
        return [] if kept is None else [kept]
