"""What verifying a store finds: one finding a place, with what to do next."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

Severity = Literal["note", "damage"]
"""`note`: nothing is lost, the store mends it by itself or it does no harm. `damage`: something must be done."""

REPAIR: Final = "python -m session_actor repair"
KEPT_MAX: Final = 10_000
"""So many findings are kept; the others are only counted and told."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is not as it should be."""

    severity: Severity
    kind: str
    """Short and fixed, for programs: see docs/durability.md."""
    path: str
    what: str
    """What is wrong, for people."""
    todo: str
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
        return f"{self.severity}: {self.kind}: {place}{whose}{which}: {self.what}; {self.todo}"


class Findings:
    """All findings of one check, and how much was read."""

    def __init__(self, tell: Callable[[Finding], None] | None = None) -> None:
        """`tell`: told each finding at once."""
        self.list: list[Finding] = []
        """The findings in the order in which they were made, at most `KEPT_MAX`."""
        self.counts: Counter[str] = Counter()
        """How many of each severity."""
        self.sessions = 0
        """Sessions looked at."""
        self.records = 0
        """Records read and found good."""
        self.size_bytes = 0
        """Bytes read."""
        self._tell = tell

    def add(self, finding: Finding) -> None:
        """Add a finding."""
        self.counts[finding.severity] += 1
        if len(self.list) < KEPT_MAX:
            self.list.append(finding)
        if self._tell is not None:
            self._tell(finding)

    @property
    def damaged(self) -> bool:
        """Whether there is damage."""
        return self.counts["damage"] > 0

    def note(
        self,
        kind: str,
        path: str,
        what: str,
        todo: str,
        *,
        offset: int | None = None,
        session: str | None = None,
        seq: int | None = None,
    ) -> None:
        """Add a note."""
        self.add(Finding("note", kind, path, what, todo, offset, session, seq))

    def damage(
        self,
        kind: str,
        path: str,
        what: str,
        todo: str,
        *,
        offset: int | None = None,
        session: str | None = None,
        seq: int | None = None,
    ) -> None:
        """Add damage."""
        self.add(Finding("damage", kind, path, what, todo, offset, session, seq))

    def __repr__(self) -> str:
        """Counts only."""
        return f"Findings({self.counts['damage']} damage, {self.counts['note']} notes)"
