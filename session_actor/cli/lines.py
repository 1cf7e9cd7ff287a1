"""What the commands that read sessions print with `--json`: each line is one of these objects."""

from __future__ import annotations

from typing import Any

from .parts import BudgetPart, DiffPart, Line, NotePart, Run, TurnPart, UsagePart


class ListedSession(Line, frozen=True, tag="list.session/1"):
    """A session in the listing."""

    id: str
    birth: str
    created_at: str
    records: int
    size_bytes: int


class ShownSession(Line, frozen=True, tag="show.session/1"):
    """A session at one moment; the frames follow."""

    id: str
    seq: int
    at: str
    created_at: str | None
    branch: str | None
    head: int | None
    frames: int
    metadata: Any
    ended: str | None
    usage: UsagePart | None
    budget: BudgetPart | None


class ShownFrame(Line, frozen=True, tag="show.frame/1"):
    """A frame with all that was said in it."""

    id: int
    parent: int | None
    depth: int
    at: str
    turns: tuple[TurnPart, ...]
    user_input: str
    assistant_output: str
    assumptions: tuple[str, ...]
    decisions: tuple[str, ...]
    forked_from: int | None
    pinned: bool
    system: str | None
    """The system prompt that it brought; null: it brought no instructions."""
    tools: tuple[str, ...]
    model: str | None
    retracted: str | None


class TreeSession(Line, frozen=True, tag="tree.session/1"):
    """A session at one moment; its segments follow."""

    id: str
    seq: int
    at: str
    branch: str | None
    head: int | None
    frames: int
    """How many frames there are, on any branch or none."""
    held: int
    """How many of them the head, a branch or a checkpoint holds."""
    budget: BudgetPart | None
    empty: tuple[str, ...]
    """Branches without a frame."""


class TreeSegment(Line, frozen=True, tag="tree.segment/1"):
    """Consecutive frames that no other branch leaves or ends in, but at the last."""

    first: int
    last: int
    parent: int | None
    level: int
    """How many times it was turned off from the line of the head."""
    branches: tuple[str, ...]
    checkpoints: tuple[str, ...]
    head: bool
    pressures: dict[str, str]
    """By branch, where it is known."""


class ReplayMoment(Line, frozen=True, tag="replay.moment/1"):
    """A session after one of its records."""

    id: str
    seq: int
    first: int
    """The oldest record that can be gone to."""
    last: int
    at: str
    kind: str
    branch: str | None
    head: int | None
    frames: int
    branches: dict[str, int | None]
    checkpoints: dict[str, int]
    ended: str | None
    budget: BudgetPart | None
    frame: ShownFrame | None = None
    """The newest frame of the stack; only with --content."""


class ReplayWhy(Line, frozen=True, tag="replay.why/1"):
    """Why a frame is in a request, or is not."""

    frame: int
    shown: bool
    reason: str
    what: str
    seq: int
    request: int | None
    head: int | None
    by: int | None
    notes: tuple[NotePart, ...]


class ReplayRequest(Line, frozen=True, tag="replay.request/1"):
    """A request that was given out."""

    seq: int
    at: str
    dialect: str
    model: str
    head: int | None
    tokens: int
    """How long it was, as it was estimated then."""
    recorded_hash: str
    matches: bool | None = None
    """Whether it was made again byte for byte; null: that was not asked for."""
    hash: str | None = None
    why: str | None = None
    """Why it is not the same."""
    body: Any = None
    """The request itself; only with --content."""


class DiffChanges(Line, frozen=True, tag="diff.changes/1"):
    """What is different at the second moment."""

    id: str
    before: int
    after: int
    head: tuple[int | None, int | None]
    branch: tuple[str | None, str | None]
    added: tuple[Run, ...]
    removed: tuple[Run, ...]
    new_frames: tuple[Run, ...]
    popped: tuple[Run, ...]
    branches: dict[str, DiffPart]
    checkpoints: dict[str, DiffPart]
    budget: tuple[BudgetPart | None, BudgetPart | None]
    same: bool


class TailRecord(Line, frozen=True, tag="tail.record/1"):
    """A record that came."""

    id: str
    seq: int
    at: str
    kind: str
    size_bytes: int
    frame: int | None
    data: Any = None
    """What the record holds; only with --content."""


class TailGone(Line, frozen=True, tag="tail.deleted/1"):
    """A session that was followed is not there any more."""

    id: str


class StatsStore(Line, frozen=True, tag="stats.store/1"):
    """A store as a whole, without reading a journal."""

    path: str
    sessions: int
    records: int
    journal_bytes: int
    files: dict[str, int]
    """Bytes by kind of file."""
    oldest: str | None
    newest: str | None
    largest: tuple[ListedSession, ...]


class StatsSession(Line, frozen=True, tag="stats.session/1"):
    """One session, all of its records read."""

    id: str
    created_at: str | None
    last_at: str | None
    records: int
    size_bytes: int
    kinds: dict[str, int]
    frames: int
    held: int
    stack: int
    branches: int
    checkpoints: int
    requests: int
    compactions: int
    ended: str | None
    usage: UsagePart | None
    budget: BudgetPart | None
    damage: str | None
