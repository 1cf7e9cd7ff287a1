"""The root of all errors of the package, the refusals of a session, and records that cannot be read.

A `Refused` is an answer: nothing was changed, the session lives. Import them from `errors`, which has all.
"""

from __future__ import annotations

from session_actor.supervisors.errors import Refusal

from .given.plain import shown


class SessionActorError(Exception):
    """The root: every error that this package raises on purpose derives from it."""


# --- refusals of a session: nothing was changed ----------------------------------------------------------------------


class Refused(SessionActorError, Refusal):
    """The session refused a command; nothing was changed."""


class InvalidArgument(Refused):
    """An argument that can never be right."""

    def __init__(self, what: str, why: str) -> None:
        """`what`: the argument and the place inside it. `why`: what is wrong with it."""
        super().__init__(f"{what} {why}")
        self.what = what


class HeadMoved(Refused):
    """The head is not where the caller expected it: somebody else changed the conversation."""

    def __init__(self, expected: int, actual: int | None) -> None:
        """Frame ids; 0 and None stand for the empty stack."""
        super().__init__(
            f"the head is {f'frame {actual}' if actual else 'the empty stack'}, not "
            f"{f'frame {shown(expected)}' if expected else 'the empty stack'}; "
            "nothing was changed: read the stack again"
        )
        self.expected = expected
        self.actual = actual


class FrameUnknown(Refused):
    """There is no such frame in this session."""

    def __init__(self, frame: int, why: str = "this session never had it, or it was pruned") -> None:
        """`frame`: the id."""
        super().__init__(f"there is no frame {shown(frame)}: {why}")
        self.frame = frame


class NameUnknown(Refused):
    """There is no branch or checkpoint of this name."""

    def __init__(self, name: str, what: str = "branch or checkpoint") -> None:
        """`what`: what was looked for."""
        super().__init__(f"there is no {what} {shown(name)}; branches() and checkpoints() list the names")
        self.name = name


class BranchUnknown(NameUnknown):
    """There is no branch of this name: it never was, or it was renamed or deleted."""

    def __init__(self, name: str) -> None:
        """`name`: as asked for."""
        super().__init__(name, "branch")


class CheckpointUnknown(NameUnknown):
    """There is no checkpoint of this name: it never was, or it was renamed or deleted."""

    def __init__(self, name: str) -> None:
        """`name`: as asked for."""
        super().__init__(name, "checkpoint")


class NameTaken(Refused):
    """Branches and checkpoints share their names, and this one is in use."""

    def __init__(self, name: str, by: str) -> None:
        """`by`: `branch` or `checkpoint`."""
        super().__init__(f"{name!r} is already the name of a {by}; choose another, or rename or delete that {by} first")
        self.name = name
        self.by = by


class BranchAttached(Refused):
    """The branch is the one that the session is on; it cannot be deleted now."""

    def __init__(self, name: str) -> None:
        """`name`: the branch."""
        super().__init__(f"the session is on branch {name!r}; goto another branch before you delete it")
        self.name = name


class EmptyStack(Refused):
    """The stack has no frame yet, and this needs one."""

    def __init__(self, what: str, instead: str = "push one first") -> None:
        """`what`: what needs a frame. `instead`: what to do."""
        super().__init__(f"{what} needs a frame, and the stack is empty; {instead}")


class CallUnknown(Refused):
    """No tool call of this id or ref is on the stack."""

    def __init__(self, call: str) -> None:
        """`call`: as asked for."""
        super().__init__(f"no tool call {call} is on this stack; pending_calls() lists those that wait for a result")
        self.call = call


class CallAmbiguous(Refused):
    """Several open calls have this id: the provider repeats its ids."""

    def __init__(self, call_id: str, count: int) -> None:
        """`call_id`: as asked for. `count`: how many open calls share the id."""
        super().__init__(
            f"{count} open calls have the id {call_id}; name the one you mean by its ref (pending_calls())"
        )
        self.call_id = call_id


class CallAlreadyAnswered(Refused):
    """The call has a result, and this one is different."""

    def __init__(self, call: str, frame: int) -> None:
        """`frame`: the frame that holds the first result."""
        super().__init__(
            f"tool call {call} already has another result, in frame {frame}; pop or goto before it to replace it"
        )
        self.call = call
        self.frame = frame


class KeyConflict(Refused):
    """The key was used for a change with other arguments. A key names one change for ever: take a new one."""

    def __init__(self, key: str, seq: int) -> None:
        """`seq`: the record of the first use."""
        super().__init__(f"key {key!r} was used with other arguments (record {seq}); a new change needs a new key")
        self.key = key
        self.seq = seq


class SessionEnded(Refused):
    """The session has ended: reads work, changes do not."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(
            f"session {session!r} has ended; it can still be read, and service.fork() goes on from its history"
        )
        self.session = session


class ForkUnfinished(Refused):
    """The session is a copy of another that was cut short; delete it and fork again."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(f"session {session!r} is an unfinished copy of another; delete it and fork again")
        self.session = session


class RecordsLost(Refused):
    """The session lost records and was salvaged: what is left stays as it is, so it takes no snapshots."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(
            f"session {session!r} lost records and was salvaged: it takes no snapshots, so nothing of it can be "
            "dropped; nothing was changed: service.fork() makes a sound session of what its branches hold"
        )
        self.session = session


# --- records ---------------------------------------------------------------------------------------------------------


class RecordUnknown(SessionActorError):
    """A record of a kind that this version does not know; a newer version wrote it."""

    def __init__(self, kind: str) -> None:
        """`kind`: as the record says."""
        super().__init__(
            f"records of kind {kind!r} are not known to this version; upgrade session-actor to read this session"
        )
        self.kind = kind


class RecordUnreadable(SessionActorError):
    """The data of a record is not what its kind says."""

    def __init__(self, kind: str, why: str) -> None:
        """`why`: what is wrong, with the place inside the record."""
        super().__init__(f"a record of kind {kind!r} cannot be read: {why}")
        self.kind = kind


class ReplayError(SessionActorError):
    """A record does not fit the state that the records before it made. Nothing was changed."""

    def __init__(self, kind: str, seq: int, why: str) -> None:
        """`seq`: the record. `why`: what does not fit."""
        super().__init__(
            f"record {seq} ({kind}) does not fit the records before it: {why}; `python -m session_actor verify`, with "
            "the store's directory, tells whether the store is damaged, and the `repair` that mends it; if it is "
            "not, keep a copy of it and report this"
        )
        self.kind = kind
        self.seq = seq
