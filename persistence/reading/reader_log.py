"""What a log holds of each session, as a reader needs it: which birth lives, how far it goes, where its records lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.files.plain_file import NotPlain, open_plain
from session_actor.persistence.format.record import decode_record
from session_actor.persistence.log.log import number_of
from session_actor.persistence.log.scan import read_owner

if TYPE_CHECKING:
    from array import array

    from session_actor.persistence.checking.log_survey import LogSurvey, Owner
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.log.scan import Damage


class Logged(NamedTuple):
    """The newest birth of a session that has records in the log and was not deleted there."""

    birth: str
    created_us: int
    """When the oldest of its records in the log was made."""
    last_seq: int


class LogView:
    """A log that was surveyed."""

    def __init__(self, disk: Disk, survey: LogSurvey) -> None:
        """`survey`: already read. Reads the first and the last record of each session. Blocks. Raises OSError."""
        self._disk = disk
        self._survey = survey
        self.damage: list[tuple[int, Damage]] = survey.damage
        """Damage, each with the number of its segment."""
        self._dead = survey.dead()
        self._places: dict[Owner, list[tuple[int, array[int]]]] = {}
        for scan in survey.kept:
            number = number_of(scan.path)
            for key, spans in scan.spans.items():
                owner = read_owner(key)
                if owner is not None:
                    self._places.setdefault(owner, []).append((number, spans))
        self.newest = self._newest()
        """Of each session the birth that lives."""

    def path(self, number: int) -> str:
        """Where a segment lies."""
        return self._survey.path(number)

    def places(self, owner: Owner) -> list[tuple[int, array[int]]]:
        """Where the records of a birth begin and end: of each segment that has any, its number and the places."""
        return self._places.get(owner, [])

    def is_dead(self, session: str, birth: str) -> bool:
        """Whether the log says that this birth was deleted."""
        return (session, birth) in self._dead

    def has_dead(self, session: str) -> bool:
        """Whether the log says that a birth of this session was deleted."""
        return any(dead == session for dead, _ in self._dead)

    def _newest(self) -> dict[str, Logged]:
        owners = {owner[0]: owner for owner in self._places if owner not in self._dead}
        ends = self._ends(set(owners.values()))
        return {name: Logged(owner[1], *ends[owner]) for name, owner in owners.items() if owner in ends}

    def _ends(self, owners: set[Owner]) -> dict[Owner, tuple[int, int]]:
        """Of each birth the time of its first record here and the number of its last one. A segment is read once."""
        wanted: dict[int, list[tuple[Owner, int, int, bool]]] = {}
        for owner in owners:
            parts = self._places[owner]
            (first, firsts), (last, lasts) = parts[0], parts[-1]
            wanted.setdefault(first, []).append((owner, firsts[0], firsts[1], True))
            wanted.setdefault(last, []).append((owner, lasts[-2], lasts[-1], False))
        times: dict[Owner, int] = {}
        seqs: dict[Owner, int] = {}
        for number, ends in wanted.items():
            try:
                file = open_plain(self._disk, self.path(number))
            except NotPlain:
                continue
            try:
                data = file.read(0, max(end for _, _, end, _ in ends))
            finally:
                file.close()
            for owner, begin, end, is_first in ends:
                try:
                    record = decode_record(data[begin:end] + b"\n")
                    if is_first:
                        times[owner] = record.at_us
                    else:
                        seqs[owner] = record.seq
                except LineDamaged:  # its sum fits, and it is no record: whoever reads the session is told
                    continue
        return {owner: (times.get(owner, 0), seq) for owner, seq in seqs.items()}
