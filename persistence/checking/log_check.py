"""What verifying says of a log: the findings of its survey, and whether each session's records follow one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.persistence.format.gap import Link
from session_actor.persistence.format.record import NO_SUM

from .findings import SALVAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.log.scan import Damage
    from session_actor.persistence.recovery.restored import Restored

    from .findings import Findings
    from .log_survey import Logged, LogSurvey, Owner

_OPENING: Final = "nothing, opening the store does it"


class InLog(NamedTuple):
    """Which records of a birth the log has; 0: none."""

    first: int
    first_sum: str
    last: int


class LogCheck:
    """Turns the survey of a log into findings."""

    def __init__(
        self,
        survey: LogSurvey,
        findings: Findings,
        wanted: Callable[[Owner], frozenset[int]] | None = None,
        restored: Restored | None = None,
    ) -> None:
        """`survey`: already read. `wanted(owner)`: numbers of records whose sums are to be noted.

        `restored`: tells which damaged lines are in journals; None: that is not known.
        """
        self._restored = restored
        self.links: dict[Owner, Link] = {}
        """The newest record in the log of each birth that lives."""
        self.firsts: dict[Owner, int] = {}
        """The number of the oldest one."""
        self._first_sums: dict[Owner, str] = {}
        self.dead: set[Owner] = set()
        """Births whose tombstones are in the log."""
        self._sums: dict[Owner, dict[int, str]] = {}
        self._wanted = wanted
        self._of_birth: dict[Owner, frozenset[int]] = {}
        self.refused = False
        """The disk refuses to read the log: what it holds is not known."""
        self.survey = survey
        self._findings = findings
        self._blamed: set[Owner] = set()

    def run(self, link_of: Callable[[Owner], Link | None]) -> None:
        """Tell everything. `link_of(owner)`: the newest record in its journal; None: the birth is dead."""
        survey, findings = self.survey, self._findings
        for name in survey.leftovers:
            findings.note("leftover", f"{survey.folder}/{name}", "it was never begun, or is cut already", _OPENING)
        for name in survey.strange:
            findings.note("stranger", f"{survey.folder}/{name}", "it is no segment", "move it away if it is not wanted")
        for number in survey.outside:
            what = "no later segment continues it"
            findings.note("torn", survey.path(number), what, "nothing, opening the store keeps it aside", offset=0)
        for number, offset, size in survey.torn:
            what = f"a torn end of {size} bytes, which a crash left unfinished"
            advice = "nothing, opening the store keeps it aside"
            findings.note("torn", survey.path(number), what, advice, offset=offset)
        self.dead = survey.dead()
        newest = survey.newest_births()

        def is_missed(owner: Owner) -> bool:
            """Whether somebody misses what is lost of a birth."""
            link, last = link_of(owner), newest.get(owner[0], owner)
            is_followed = last != owner and link is not None and link.seq > 0 and link_of(last) is not None
            return owner not in self.dead and link is not None and not is_followed

        for number, damage in list(survey.damage):
            self._tell(number, damage, is_missed)
        for logged in survey.records():
            self._follow(logged, link_of)
        for number, damage in survey.odd:
            self._tell(number, damage, is_missed)
        findings.size_bytes += survey.size_bytes

    def sums_of(self, owner: Owner) -> dict[int, str]:
        """By their numbers, the sums of those records of a birth in the log that were asked for."""
        return self._sums.get(owner, {})

    def of(self, owner: Owner) -> InLog:
        """What the log has of a birth."""
        return InLog(self.firsts.get(owner, 0), self._first_sums.get(owner, NO_SUM), self.links.get(owner, Link()).seq)

    def _tell(self, number: int, damage: Damage, is_missed: Callable[[Owner], bool]) -> None:
        missing = list(damage.owners or ()) if self._restored is None else self._restored.missing(damage)
        owners = [owner for owner in missing if is_missed(owner)]
        if damage.owners and not owners:
            return
        self._blamed.update(owners)
        why = self.survey.unreadable.get(number, "bytes that were synced cannot be read")
        sessions = sorted({session for session, _ in owners})
        if not sessions:
            why += "; records of any session may be lost"
            self._findings.damage("log", damage.path, why, SALVAGE, offset=damage.offset)
        for session in sessions:
            self._findings.damage("log", damage.path, why, SALVAGE, offset=damage.offset, session=session)

    def _follow(self, logged: Logged, link_of: Callable[[Owner], Link | None]) -> None:
        owner, record = logged.owner, logged.record
        if owner in self.dead:
            return
        before = self.links.get(owner)
        if before is None:
            before = link_of(owner)
            if before is None:
                self.dead.add(owner)
                return
            if record.seq <= before.seq:
                return  # a cut that left others' records in the log moved it
            self.firsts[owner], self._first_sums[owner] = record.seq, record.sum
            if self._wanted is not None:
                self._of_birth[owner] = self._wanted(owner)
        if before.follows(record):
            self._findings.records += 1
        elif owner not in self._blamed:
            self._blamed.add(owner)
            what = f"it follows record {before.seq} and does not fit behind it"
            path = self.survey.path(logged.number)
            self._findings.damage(
                "log_chain", path, what, SALVAGE, offset=logged.offset, session=owner[0], seq=record.seq
            )
        self.links[owner] = Link.of(record)
        if record.seq in self._of_birth.get(owner, ()):
            self._sums.setdefault(owner, {})[record.seq] = record.sum
