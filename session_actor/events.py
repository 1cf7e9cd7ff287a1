"""The records of a session: one Struct a kind. A state is what `apply` makes of them in order.

The names of kinds and fields are the format on disk: they never change. A field may be added with a default; a field
that a reader does not know is passed over; a kind that it does not know is refused by name (`RecordUnknown`).
The time and the number of a change are its record's `at` and `seq`, not fields here.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import msgspec

from session_actor.blocks import NULL, Free
from session_actor.budget.readings import NOTHING, Learned, Quote
from session_actor.compaction.facts import Facts
from session_actor.compaction.overlays import Overlay, Pin
from session_actor.compaction.verdict import Verdict
from session_actor.errors import RecordUnknown, RecordUnreadable
from session_actor.frames import Artifact, Hold, Instructions, OpenCall, Retraction, Turn, Usage
from session_actor.given.private import as_repr
from session_actor.persistence.errors import ValueUnreadable
from session_actor.persistence.format import values
from session_actor.window.earlier import has_factor, modern
from session_actor.window.marks import Mark

if TYPE_CHECKING:
    from collections.abc import Callable


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What every record has: the key of its command and the fingerprint of the arguments, None without a key."""

    kind: ClassVar[str]
    key: str | None = None
    args: str | None = None

    def __repr__(self) -> str:
        """The kind only: the content may be private."""
        return f"{type(self).__name__}()"

    __rich_repr__ = as_repr


class Source(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Where the history of a session was copied from: the session, and the frame (None: all of it, 0: none of it)."""

    session: str
    frame: int | None = None


class Created(Event, frozen=True, gc=False):
    """The first record of every session."""

    kind: ClassVar[str] = "session_created"
    session: str
    metadata: Free = NULL
    source: Source | None = None


class Place(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a frame inherits: the values of its parent, each as in `Frame`."""

    depth: int
    exchange: int | None = None
    step: int | None = None
    configured: int | None = None
    run_from: int = 0
    open_calls: tuple[OpenCall, ...] = ()
    spent: Usage | None = None
    """None: not known, in the record of a version that did not keep it."""


class Pushed(Event, frozen=True, gc=False, kw_only=False):
    """A frame was added. Its depth and what it inherits follow from its parent, its time is the record's."""

    kind: ClassVar[str] = "pushed"
    id: int
    parent: int | None = None
    user_input: str = ""
    assistant_output: str = ""
    assumptions: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    turns: tuple[Turn, ...] | None = None
    pinned: bool = False
    branch: str | None = None
    """The branch that it moved; None: the session's own head, and the attached branch with it."""
    new_branch: str | None = None
    """The branch that was made for it; it is attached, unless `attach` is false."""
    attach: bool = True
    forked_from: int | None = None
    instructions: Instructions | None = None
    holds: tuple[Hold, ...] = ()
    place: Place | None = None
    """What it inherits, in the record of a keyframe (see `grow`), so that it can be read without the records before."""
    artifacts: tuple[Artifact, ...] = ()
    answers: int | None = None
    """The number of the request's record that its turn replies to; None: not said, or no reply."""
    astray: tuple[int, ...] = ()
    """With `answers`: of the frames of readings (`Learned`) those that are not on the path of that request."""
    retracted: Retraction | None = None
    """The assumption that it takes back; such a frame has no turns."""


class Added(Pushed, frozen=True, gc=False, kw_only=False):
    """A frame was added on top of the one with the id before its own: what most records say.

    As `Pushed`, but its record does not name the parent. A kind of its own, because a `Pushed` without one is the first
    of its stack.
    """

    kind: ClassVar[str] = "added"

    @property  # type: ignore[misc]  # nobody sets a field of what is frozen
    def parent(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The frame below."""
        return self.id - 1


class Popped(Event, frozen=True, gc=False, kw_only=False):
    """A head went down by `n` frames."""

    kind: ClassVar[str] = "popped"
    head: int | None
    """Where it was."""
    to: int | None
    """Where it is; None: the empty stack."""
    n: int
    branch: str | None = None
    """As in `Pushed`."""


class Moved(Event, frozen=True, gc=False, kw_only=False):
    """The session's head went to a frame, and to a branch or to none."""

    kind: ClassVar[str] = "moved"
    to: int | None
    branch: str | None = None
    """The branch that is attached from now on; None: detached."""


class Branched(Event, frozen=True, gc=False, kw_only=False):
    """A branch was made at a frame that was there (None: at the empty stack); `attach`: it is attached."""

    kind: ClassVar[str] = "branched"
    name: str
    at: int | None
    attach: bool = True


class Checkpointed(Event, frozen=True, gc=False, kw_only=False):
    """A frame was named."""

    kind: ClassVar[str] = "checkpointed"
    name: str
    frame: int


class Renamed(Event, frozen=True, gc=False, kw_only=False):
    """A branch or a checkpoint has another name."""

    kind: ClassVar[str] = "renamed"
    name: str
    new: str


class NameDeleted(Event, frozen=True, gc=False, kw_only=False):
    """A branch or a checkpoint was forgotten."""

    kind: ClassVar[str] = "name_deleted"
    name: str


class Ended(Event, frozen=True, gc=False, kw_only=False):
    """The session ended: nothing is changed after this."""

    kind: ClassVar[str] = "session_ended"
    reason: str


class CopiedFrame(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A frame of another session, with its own time; ids are kept."""

    at_us: int
    frame: Pushed


class HistoryCopied(Event, frozen=True, gc=False, kw_only=False):
    """A part of the frames of another session, parents before children."""

    kind: ClassVar[str] = "history_copied"
    frames: tuple[CopiedFrame, ...]
    sealed: HistorySealed | None = None
    """What completes it in the same record: where the names are from here on. None: a record of its own comes."""


class HistorySealed(Event, frozen=True, gc=False, kw_only=False):
    """The copy of another session is complete: where its branches, checkpoints and head are."""

    kind: ClassVar[str] = "history_sealed"
    branches: tuple[tuple[str, int | None], ...]
    checkpoints: tuple[tuple[str, int], ...]
    head: int | None
    attached: str | None
    next_id: int
    marks: tuple[Mark, ...] = ()
    """Those made on what was copied."""
    learned: Learned = NOTHING
    """What was learned of real lengths there."""
    overlays: tuple[Overlay, ...] = ()
    """The compactions of what was copied."""
    generation: int = 0
    """The number of the newest compaction there."""
    pins: tuple[tuple[int, Pin], ...] = ()
    """The pins of what was copied, by their frames."""
    retractions: tuple[tuple[int, Retraction], ...] = ()
    """Those of what was copied whose own frames were not, by these."""


class Gap(Event, frozen=True, gc=False, kw_only=False):
    """Records `first` up to this one's own number are lost: the store's salvage wrote it in their place."""

    kind: ClassVar[str] = "store.gap"
    first: int
    why: str = ""


class Pruned(Event, frozen=True, gc=False, kw_only=False):
    """Frames that nothing held were dropped: their ids, as runs of first and last."""

    kind: ClassVar[str] = "pruned"
    dropped: tuple[tuple[int, int], ...]


class Requested(Event, frozen=True, gc=False, kw_only=False):
    """A request was given out: all that is needed to make it again, but for what was only lent to it (`ephemeral`)."""

    kind: ClassVar[str] = "requested"
    quote: Quote
    """What it shows, for whom, and how long that is by what was known."""
    allowance: int
    """The budget that it was made for [tokens]."""
    max_output_tokens: int
    """What it asks for."""
    hash: str
    """BLAKE2b-128 over the request without what was lent to it, as hexadecimal digits."""
    made: Mark | None = None
    """The mark that it shows, when it is the first to do so; else `quote.view` is its number, 0 for none."""
    wanted_output: int | None = None
    """The `max_output_tokens` that was asked for; None: not said."""
    extra: Free = NULL
    """What was merged into it, as JSON text."""
    renderer: int = 1
    """The version of the rules by which it was rendered."""
    on: str | None = None
    """The branch that it was made for; None: the session's own head."""


class RequestRefused(Event, frozen=True, gc=False, kw_only=False):
    """A provider refused a request."""

    kind: ClassVar[str] = "request_failed"
    request: int
    """The number of the request's record."""
    too_long: bool
    """Whether for its length; else nothing follows from it."""
    tokens: int | None = None
    """How long its input was, as the provider counted; None: it did not say."""
    limit: int | None = None
    """The longest input that the provider takes, by what it said; None: it did not say."""
    astray: tuple[int, ...] = ()
    """Of the frames of readings (`Learned`) those that are not on the path of the request."""
    shorter: bool = True
    """Whether less than it showed can be shown."""


class Compacted(Event, frozen=True, gc=False, kw_only=False):
    """A summary stands for old frames from here on. It was judged once, when this was recorded, and never again."""

    kind: ClassVar[str] = "compacted"
    generation: int
    covered_frame: int
    verdict: Verdict
    """What the gate said, with the summary as it was sealed and the gate's version."""
    facts: Facts
    """What the summary had to keep."""
    kept: tuple[int, ...]
    """Frames up to the covered one that stay shown as they are."""
    hash: str
    """Of all that it stands for, as in its plan."""
    planned: int
    """The number that the plan had."""
    tokens_before: int
    tokens_after: int
    usage: Usage | None = None
    """What the provider charged for the summary; None: not said."""
    on: str | None = None
    """The branch that it was planned on; None: the session's own head."""


class Uncompacted(Event, frozen=True, gc=False, kw_only=False):
    """A compaction was taken back: what it stood for is shown again."""

    kind: ClassVar[str] = "uncompacted"
    generation: int


class Pinned(Event, frozen=True, gc=False, kw_only=False):
    """A frame stays shown from here on, whatever is left out; or need not any more."""

    kind: ClassVar[str] = "pinned"
    frame: int
    pinned: bool
    frames: tuple[int, ...] = ()
    """The frame, and what of its step must be shown with it."""


AnyEvent: TypeAlias = (
    Created
    | Pushed
    | Added
    | Popped
    | Moved
    | Branched
    | Checkpointed
    | Renamed
    | NameDeleted
    | Ended
    | HistoryCopied
    | HistorySealed
    | Pruned
    | Requested
    | RequestRefused
    | Compacted
    | Uncompacted
    | Pinned
    | Gap
)
"""Every event."""

KINDS: Final[dict[str, type[AnyEvent]]] = {
    event.kind: event
    for event in (
        Created,
        Pushed,
        Added,
        Popped,
        Moved,
        Branched,
        Checkpointed,
        Renamed,
        NameDeleted,
        Ended,
        HistoryCopied,
        HistorySealed,
        Pruned,
        Requested,
        RequestRefused,
        Compacted,
        Uncompacted,
        Pinned,
        Gap,
    )
}
"""The type of each kind of record."""

_DECODE: Final[dict[str, Callable[[bytes], AnyEvent]]] = {
    kind: msgspec.json.Decoder(event).decode for kind, event in KINDS.items() if event is not Requested
}


def decode_event(kind: str, data: bytes) -> AnyEvent:
    """The event of a record of `kind` with the JSON `data`.

    Raises `RecordUnknown` for a kind of a newer version, `RecordUnreadable` when the data is not what the kind says.
    """
    try:
        return _DECODE[kind](data)
    except (KeyError, msgspec.MsgspecError):
        return _decode_slowly(kind, data)


def _decode_slowly(kind: str, data: bytes) -> AnyEvent:
    """The same for a kind or a form that is not read at once: perhaps there is a text that had to be tagged."""
    if kind == Requested.kind and has_factor(data):
        data = modern(data)
    event = KINDS.get(kind)
    if event is None:
        raise RecordUnknown(kind)
    try:
        return values.decode_typed(data, event)
    except ValueUnreadable as error:
        unreadable = RecordUnreadable(kind, str(error))
    if event is HistorySealed:
        with suppress(ValueUnreadable):
            return values.decode_typed(modern(data), event)
    raise unreadable
