"""What the commands that look after a store print with `--json`: each line is one of these objects."""

from __future__ import annotations

from .parts import Line, NotWholePart, UnreadPart


class _Finding(Line, frozen=True):
    """Something in a store that is not as it should be."""

    severity: str
    kind: str
    path: str
    what: str
    advice: str
    offset: int | None = None
    session: str | None = None
    seq: int | None = None


class VerifyFinding(_Finding, frozen=True, tag="verify.finding/1"):
    """One thing that is not as it should be."""


class VerifySummary(Line, frozen=True, tag="verify.summary/1"):
    """How much was read, and what was found."""

    summary: dict[str, int]
    """`sessions`, and apart from them `own`: what the library keeps for itself as one; `records`, `bytes`; `damage`,
    `notes`."""


class RepairStep(Line, frozen=True, tag="repair.step/1"):
    """One thing that mends the store: done, or to be done."""

    kind: str
    path: str
    what: str
    session: str | None = None
    offset: int | None = None


class RepairFinding(_Finding, frozen=True, tag="repair.finding/1"):
    """Damage that no step is for."""


class ExportFile(Line, frozen=True, tag="export.file/1"):
    """What was written."""

    path: str
    form: str
    sessions: tuple[str, ...]
    size_bytes: int
    damage: tuple[str, ...]


class ImportFile(Line, frozen=True, tag="import.file/1"):
    """What came in from one file."""

    path: str
    form: str
    sessions: tuple[str, ...]
    added: int
    skipped: int
    passed: int
    unread: tuple[UnreadPart, ...]
    """The first 1,000."""
    unread_count: int
    not_whole: tuple[NotWholePart, ...]
    """The first 1,000."""
    not_whole_count: int
    left_out: dict[str, int]


class DoctorCheck(Line, frozen=True, tag="doctor.check/1"):
    """One thing that was looked at."""

    check: str
    verdict: str
    """`ok`, `note` or `problem`."""
    what: str
    advice: str


class DoctorSummary(Line, frozen=True, tag="doctor.summary/1"):
    """How many of each."""

    ok: int
    notes: int
    problems: int


class DemoResult(Line, frozen=True, tag="demo.result/1"):
    """What the demo found."""

    passed: bool
    seed: int
    kills: int
    lost: int
    differing: int
    frames: int
