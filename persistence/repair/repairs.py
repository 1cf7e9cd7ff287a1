"""What repairing a store consists of: the steps, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.persistence.checking.findings import OF_LOG

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from session_actor.persistence.checking.findings import Finding

    from .mending import Salvage


Key = tuple[str, str, str | None]


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that mends a store."""

    kind: str
    """That of the findings it is for."""
    path: str
    what: str
    """What is done."""
    session: str | None = None
    offset: int | None = None

    @property
    def key(self) -> Key:
        """Equal for steps that do the same."""
        path = "" if self.kind == "mode" or (self.kind == "journal" and self.path != "log") else self.path
        return self.kind, path, self.session

    def __str__(self) -> str:
        """One line."""
        whose = "" if self.session is None else f", session {self.session!r}"
        return f"repair: {self.kind}: {self.path}{whose}: {self.what}"


class Repairs:
    """What repair did, or would do, and what it leaves."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.steps: list[Step] = []
        """Done, or to be done: see `written`."""
        self.left: list[Finding] = []
        """Damage that no step is for."""
        self.more = False
        """Whether more is to be done than these steps: repairing again goes on."""
        self.written = False
        """Whether the steps were done."""

    def __repr__(self) -> str:
        """Counts only."""
        return f"Repairs({len(self.steps)} steps, {len(self.left)} left, written={self.written})"


BASIC: Final = ("not_a_folder", "not_a_file", "format", "catalog", "uncounted")
"""What must be mended before the rest can be judged, in this order."""
_WHAT: Final = {
    "not_a_folder": "move it aside, and make the folder",
    "not_a_file": "move it aside",
    "format": "write it anew",
    "catalog": "make it anew from the journals and the log; the old one is kept aside",
    "uncounted": "count the records that follow",
    "mode": "make all private that others may read",
    "leftover": "remove it",
    "dead": "remove it",
    "unreadable": "move it aside",
    "orphan": "move it aside",
    "snapshot": "move it aside",
    "tail": "cut it off; it is kept aside",
    "journal_row": "count it anew",
    "index": "copy it to a new file with the index that it should have; the old one is kept aside",
}
SALVAGED: Final = ("journal", "pruned", "log", "log_chain")
"""Kinds of damage that only salvage mends."""


def is_for(kinds: Iterable[str]) -> bool:
    """Whether findings of one of these kinds may be mended, each by a step of its own."""
    return any(kind in {*_WHAT, *SALVAGED} - {"mode"} for kind in kinds)


def plan(
    findings: Iterable[Finding],
    salvage: Salvage | None,
    sessions: Collection[str] | None,
    tried: Collection[Key] = (),
    *,
    root: str,
) -> tuple[list[Step], list[Finding]]:
    """The steps for these findings, and the damage that none is for.

    `sessions`: to be salvaged; None: all. `tried`: steps that did not help. `root`: the store's directory.

    What the catalog does not know of a session that is damaged stays until that is salvaged.
    """
    findings = list(findings)
    damaged = {finding.session for finding in findings if finding.kind in SALVAGED and finding.session is not None}
    all_of_log = all(_is_meant(finding, sessions) for finding in findings if finding.kind in OF_LOG)
    steps: dict[Key, Step] = {}
    left: list[Finding] = []
    for finding in findings:
        if finding.kind in _WHAT and not (finding.kind == "orphan" and finding.session in damaged):
            path = root if finding.kind == "mode" else finding.path
            step = Step(finding.kind, path, _WHAT[finding.kind], finding.session, finding.offset)
        elif (
            finding.kind not in SALVAGED
            or salvage is None
            or not _is_meant(finding, sessions)
            or (finding.kind in OF_LOG and not all_of_log)
        ):
            if finding.severity == "damage":
                left.append(finding)
            continue
        else:
            step = _salvage_step(finding, salvage)
        if step.key in tried:
            left += [finding] if finding.severity == "damage" else []
        else:
            steps.setdefault(step.key, step)
    order = [*BASIC, *(kind for kind in _WHAT if kind not in BASIC), *SALVAGED]
    return sorted(steps.values(), key=lambda step: order.index(step.kind)), left


def _is_meant(finding: Finding, sessions: Collection[str] | None) -> bool:
    return sessions is None or finding.session in sessions


def _salvage_step(finding: Finding, salvage: Salvage) -> Step:
    keep = "its records up to the first loss" if salvage == "prefix" else "all its records that can be read"
    if finding.session is None:
        what = f"move what can be read into the journals, and keep of each session that lost records {keep}"
        return Step("log", finding.path, what)
    return Step("journal", "log" if finding.kind in OF_LOG else finding.path, f"keep {keep}", finding.session)
