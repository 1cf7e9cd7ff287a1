"""One change of a session, as it is told to who reads along: which record it is, and what it concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from .events import Pushed

if TYPE_CHECKING:
    from .events import AnyEvent


class Change(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One change of a session: which record it is, and what it concerns. Nothing of what was said."""

    seq: int
    """The number of its record: what `Session.changes(after_seq=…)` takes."""
    kind: str
    """`pushed`, `popped`, `moved`, `branched`, `checkpointed`, …: the kind of its record."""
    at_us: int
    """When it was made, microseconds since the epoch, UTC."""
    frame: int | None = None
    """The frame concerned: that was pushed, gone to, named, pinned, or up to which a summary stands."""
    branch: str | None = None
    """The branch that was moved, or attached; None: the session's own head alone."""
    name: str | None = None
    """The branch or checkpoint that was made, renamed or deleted."""
    new_name: str | None = None
    """What that is called now."""
    number: int | None = None
    """The `generation` of a compaction, or the `seq` of a request that failed."""

    def value(self) -> dict[str, Any]:
        """As a dict for JSON, without what is None."""
        return {name: given for name, given in msgspec.structs.asdict(self).items() if given is not None}


def change_of(event: AnyEvent, seq: int, at_us: int) -> Change:
    """What is told of a record."""
    if isinstance(event, Pushed):  # most are
        return Change(seq, Pushed.kind, at_us, event.id, event.new_branch or event.branch)
    kind = event.kind
    frame = branch = name = new_name = number = None
    match kind:
        case "popped" | "moved":
            frame, branch = getattr(event, "to", None), _branch(event)
        case "branched":
            frame, name = getattr(event, "at", None), getattr(event, "name", None)
        case "checkpointed" | "renamed" | "name_deleted" | "pinned":
            frame, name = getattr(event, "frame", None), getattr(event, "name", None)
            new_name = getattr(event, "new", None)
        case "compacted" | "uncompacted":
            frame, number = getattr(event, "covered_frame", None), getattr(event, "generation", None)
        case "request_failed":
            number = getattr(event, "request", None)
        case _:
            pass
    return Change(seq, kind, at_us, frame, branch, name, new_name, number)


def _branch(event: AnyEvent) -> str | None:
    return getattr(event, "branch", None)
