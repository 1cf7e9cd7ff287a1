"""What verifying a store finds: one finding a place, with what to do next."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from session_actor.persistence.advice import repair_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Severity = Literal["note", "damage"]
"""`note`: nothing is lost, the store mends it by itself or it does no harm. `damage`: something must be done."""

REPAIR: Final = "{repair}"
"""In what to do: the line that repairs the store."""
SALVAGE: Final = "{salvage} keeps what can be read (--salvage prefix: what is before the loss; try it without --write)"
"""What to do where records are lost."""
SEE_TO_DISK: Final = "see to the disk, and copy the store to another one if it goes on; then verify again"
"""What to do where the disk refuses to read something."""
OF_LOG: Final = frozenset({"log", "log_chain"})
"""Kinds of damage in the log, which is salvaged for all whom it concerns."""
KEPT_MAX: Final = 10_000
"""So many findings of a kind are kept, so that none hides another; more are only counted and told."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is not as it should be."""

    severity: Severity
    kind: str
    """Short and fixed, for programs: see docs/durability.md."""
    path: str
    what: str
    """What is wrong, for people."""
    advice: str
    """What to do next."""
    offset: int | None = None
    """Where in the file, in bytes; None: the file as a whole."""
    session: str | None = None
    seq: int | None = None
    """The record concerned, or the one that should stand there."""

    def __str__(self) -> str:
        """One line."""
        place = self.path if self.offset is None else f"{self.path}, offset {self.offset}"
        whose = "" if self.session is None else f", session {self.session!r}"
        which = "" if self.seq is None else f", record {self.seq}"
        return f"{self.severity}: {self.kind}: {place}{whose}{which}: {self.what}; to do: {self.advice}"


class Findings:
    """All findings of one check, and how much was read."""

    def __init__(
        self,
        tell: Callable[[Finding], None] | None = None,
        root: str = "",
        asked: Iterable[str] = (),
        apart: Callable[[str], bool] | None = None,
    ) -> None:
        """`tell`: told each finding at once. `root`: the store's directory. `asked`: sessions that are looked for.

        `apart`: says of an id whether it is counted apart; None: none is.
        """
        self.missing = set(asked)
        """Those of them that were not met."""
        self._root = root
        self.list: list[Finding] = []
        """The findings in the order in which they were made, of each kind at most `KEPT_MAX`."""
        self.kinds: Counter[str] = Counter()
        """How many of each kind."""
        self.counts: Counter[str] = Counter()
        """How many of each severity."""
        self.sessions = 0
        """Sessions looked at, but for those that are counted apart."""
        self.apart = 0
        """Those."""
        self._is_apart = apart
        self.records = 0
        """Records read and found good."""
        self.size_bytes = 0
        """Bytes read."""
        self._tell = tell

    def meet(self, session: str | None) -> None:
        """There is such a session."""
        self.missing.discard(session or "")

    def count(self, session: str) -> None:
        """A session is looked at."""
        if self._is_apart is not None and self._is_apart(session):
            self.apart += 1
        else:
            self.sessions += 1

    def add(self, finding: Finding) -> None:
        """Add a finding; in what to do, the lines to type are filled in."""
        self.meet(finding.session)
        if "{" in finding.advice:
            alone = [] if finding.session is None or finding.kind in OF_LOG else [finding.session]
            salvage = repair_command(self._root, salvage="readable", sessions=alone)
            advice = finding.advice.replace("{repair}", f"`{repair_command(self._root)}`")
            finding = msgspec.structs.replace(finding, advice=advice.replace("{salvage}", f"`{salvage}`"))
        self.counts[finding.severity] += 1
        self.kinds[finding.kind] += 1
        if self.kinds[finding.kind] <= KEPT_MAX:
            self.list.append(finding)
        if self._tell is not None:
            self._tell(finding)

    @property
    def damaged(self) -> bool:
        """Whether there is damage."""
        return self.counts["damage"] > 0

    @property
    def cut(self) -> frozenset[str]:
        """The kinds of which not all are kept."""
        return frozenset(kind for kind, count in self.kinds.items() if count > KEPT_MAX)

    def note(
        self,
        kind: str,
        path: str,
        what: str,
        advice: str,
        *,
        offset: int | None = None,
        session: str | None = None,
        seq: int | None = None,
    ) -> None:
        """Add a note."""
        self.add(Finding("note", kind, path, what, advice, offset, session, seq))

    def refused(self, path: str, error: OSError, *, session: str | None = None) -> None:
        """The disk refuses to read something, which may be sound: nothing that depends on it is judged."""
        what = f"the disk refuses to read it: {error.strerror or error}"
        self.damage("refused", error.filename or path, what, SEE_TO_DISK, session=session)

    def damage(
        self,
        kind: str,
        path: str,
        what: str,
        advice: str,
        *,
        offset: int | None = None,
        session: str | None = None,
        seq: int | None = None,
    ) -> None:
        """Add damage."""
        self.add(Finding("damage", kind, path, what, advice, offset, session, seq))

    def __repr__(self) -> str:
        """Counts only."""
        return f"Findings({self.counts['damage']} damage, {self.counts['note']} notes)"
