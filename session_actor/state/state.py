"""The state of one session: what its records add up to. `decide` reads it, `apply` alone changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.blocks import NULL, thawed
from session_actor.budget.readings import NOTHING
from session_actor.errors import BranchUnknown
from session_actor.stack import Retractions, Stack

from .calls import pending
from .keys import Keys
from .names import MAIN, check_name
from .spending import NOTHING_SPENT
from .table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session_actor.compaction.overlays import Overlay, Pin
    from session_actor.events import Requested, Source
    from session_actor.frames import Instructions, PendingCall, Retraction, Usage
    from session_actor.models import ModelProfile
    from session_actor.window.marks import Mark
    from session_actor.window.window import Window

    from .losses import Losses


_NO_CHECKPOINTS: Final[dict[str, int]] = {}
_NO_CALLS: Final[dict[str, None]] = {}
_NO_REQUESTS: Final[dict[int, Requested]] = {}
_NO_PINS: Final[dict[int, Pin]] = {}
_NO_RETRACTIONS: Final[dict[int, Retraction]] = {}
"""Shared by the many states that have none: `apply` makes a dict of the state's own before it adds the first."""


class State:
    """All that a session remembers. Attributes are for reading; every read costs O(1) unless it says otherwise."""

    __slots__ = (
        "attached",
        "branches",
        "call_ids",
        "checkpoints",
        "created_at_us",
        "ended",
        "generation",
        "head",
        "importing",
        "keys",
        "learned",
        "losses",
        "marks",
        "models",
        "next_id",
        "overlays",
        "pins",
        "raw_metadata",
        "requests",
        "retractions",
        "seq",
        "session",
        "source",
        "table",
        "usage",
        "window",
    )

    def __init__(self) -> None:
        """The state before the first record: an empty stack on branch `main`."""
        self.session = ""
        self.created_at_us: int | None = None
        """When the session was made, microseconds since the epoch; None before its first record."""
        self.raw_metadata: object = NULL
        """What it was created with, as JSON text; `metadata` reads it."""
        self.source: Source | None = None
        """What its history was copied from; None: nothing."""
        self.importing = False
        """Whether that copy is not complete; such a session can only be deleted."""
        self.ended: str | None = None
        """Why the session ended; None: it lives."""
        self.seq = 0
        """The last record applied."""
        self.next_id = 1
        """The id of the next frame."""
        self.table = Table()
        self.head: int | None = None
        self.attached: str | None = MAIN
        """The branch that moves with the head; None: detached."""
        self.branches: dict[str, int | None] = {MAIN: None}
        self.checkpoints: dict[str, int] = _NO_CHECKPOINTS
        self.call_ids: dict[str, None] = _NO_CALLS
        """The ids of the newest 1,024 tool calls, over all branches, oldest first: no other id is searched for."""
        self.keys = Keys()
        self.usage: Usage | None = NOTHING_SPENT
        """What providers charged for every frame that was ever added, popped and pruned ones too; None: not known, as
        it was recovered from a snapshot of a version that did not keep it."""
        self.losses: Losses | None = None
        """What is known of records that are lost; None: none are."""
        self.marks: tuple[Mark, ...] = ()
        """The newest 64 marks (see `marks`), oldest first."""
        self.requests: dict[int, Requested] = _NO_REQUESTS
        """The newest requests that were given out, by the number of their record, oldest first."""
        self.learned = NOTHING
        """What is known of how long requests really are."""
        self.overlays: tuple[Overlay, ...] = ()
        """The newest 32 compactions (see `overlays`), oldest first, those that were taken back, too."""
        self.generation = 0
        """The number of the newest compaction ever; 0: there was none."""
        self.pins: dict[int, Pin] = _NO_PINS
        """What was said of frames after they were pushed, by their ids."""
        self.retractions: dict[int, Retraction] = _NO_RETRACTIONS
        """The assumptions that were taken back, by the frames that did so."""
        self.models: Mapping[str, ModelProfile] | None = None
        """The service's own profiles of models. Not of the records: the server sets it."""
        self.window: Window | None = None
        """What was rendered for requests, to be used again; None: nothing yet. It follows from all the rest."""

    @property
    def metadata(self) -> object:
        """What the session was created with, a fresh copy each time; None: nothing."""
        return thawed(self.raw_metadata)

    def head_of(self, on: str | None) -> int | None:
        """The head of branch `on`; None: the session's own. Raises `BranchUnknown`, `InvalidArgument`."""
        if on is None:
            return self.head
        try:
            return self.branches[on if type(on) is str else check_name(on, "on")]
        except KeyError:
            raise BranchUnknown(on) from None

    def branch_of(self, on: str | None) -> str | None:
        """The branch that `on` means: None is the attached one. None: the head, which is detached."""
        return self.attached if on is None else on

    @property
    def taken_back(self) -> Retractions | None:
        """What stacks need to know of retractions; None: there are none. O(branches and checkpoints) else."""
        if not self.retractions:
            return None
        from .history import tips_of

        return Retractions(self.retractions, frozenset(tips_of(self)))

    def stack(self, on: str | None = None) -> Stack:
        """The stack of branch `on`; None: the session's own. Raises `BranchUnknown`."""
        return Stack(self.table, self.head_of(on), None, self.taken_back)

    def pending_calls(self, on: str | None = None) -> list[PendingCall]:
        """The open calls on the stack of branch `on` (None: the session's own), oldest first; O(calls)."""
        return pending(self.table, self.head_of(on))

    def instructions(self, on: str | None = None) -> Instructions | None:
        """The instructions in force on branch `on` (None: the session's own head), None when there are none."""
        head = self.head_of(on)
        frame = None if head is None else self.table.get(head)
        return None if frame is None else frame.in_force

    def __repr__(self) -> str:
        """Numbers only."""
        return f"State({self.session!r}, seq={self.seq}, head={self.head}, attached={self.attached!r})"
