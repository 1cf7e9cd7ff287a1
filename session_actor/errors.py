"""Every error of the package: one tree under `SessionActorError`.

A `Refused` is an answer: nothing was changed, the session lives. So is a `StoreError`, but a change may have been made.
The errors of the two floors below come out of this
package as the classes of the same name here, each of which is also the floor's own class: `except SessionActorError`
catches all of them, and `except session_actor.persistence.StoreLocked` still catches its own. `translate` makes them.
No error carries content of a conversation.
"""

from __future__ import annotations

from session_actor.persistence import errors as store
from session_actor.supervisors import errors as actors

from .plain import shown


class SessionActorError(Exception):
    """The root: every error that this package raises on purpose derives from it."""


# --- refusals of a session: nothing was changed ----------------------------------------------------------------------


class Refused(SessionActorError, actors.Refusal):
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

    def __init__(self, what: str) -> None:
        """`what`: what needs a frame."""
        super().__init__(f"{what} needs a frame, and the stack is empty; push one first")


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


# --- of the store ----------------------------------------------------------------------------------------------------


class StoreError(SessionActorError, store.PersistenceError, actors.Refusal):
    """The store cannot do what it was asked for.

    An answer of the floor below, and no crash: a call that meets it fails alone, and its session lives.
    """

    @classmethod
    def of(cls, what: str, error: OSError, advice: str) -> StoreError:
        """For what the operating system said. `what`: was not done. `advice`: what to do next."""
        ours = cls(f"{what}: {error.strerror or error}; {advice}")
        ours.__cause__ = error
        return ours


class ValueNotStorable(Refused, store.ValueNotStorable):
    """A value would not come back as it was given; nothing was changed."""


class RecordTooLarge(Refused, store.RecordTooLarge):
    """A change is larger than one record may be; nothing was changed."""


class BacklogFull(Refused, store.BacklogFull):
    """Too many records wait for the disk; nothing was changed. Try again in a moment."""


class StoreDegraded(Refused, store.StoreDegraded):
    """The disk takes no records at present; nothing was changed. It recovers by itself."""


class LevelUnreachable(Refused, store.LevelUnreachable):
    """This store cannot promise the level that was asked for; nothing was changed."""


class StoreClosed(Refused, store.StoreClosed):
    """The store is not open; nothing was changed."""


class NotDurable(StoreError, store.NotDurable):
    """The change is made and queued, but not at the level that was asked for. Flush, or retry with the same key."""


class Fenced(StoreError, store.Fenced):
    """Another owner has the session now; never retry here."""


class StoreUnusable(StoreError):
    """The store's directory cannot be made, read or written: what the operating system said is the `__cause__`."""

    def __init__(self, error: OSError) -> None:
        """`error`: as the operating system gave it."""
        where = "" if error.filename is None else f" at {error.filename}"
        super().__init__(
            f"cannot open the store{where}: {error.strerror or error}; "
            "give a directory that this process may make, read and write"
        )


class StoreLocked(StoreError, store.StoreLocked):
    """Another process has the store open."""


class NetworkFileSystem(StoreError, store.NetworkFileSystem):
    """The store's directory is on a network file system."""


class NotAStore(StoreError, store.NotAStore):
    """The directory holds somebody else's files; nothing in it was touched."""


class StoreVersionTooNew(StoreError, store.StoreVersionTooNew):
    """A newer version wrote the store; it was left untouched."""


class UnusableId(StoreError, store.UnusableId):
    """A session id must be a non-empty str of at most 512 characters."""


class FrameUnreadable(Refused, StoreError):
    """The disk did not give a frame that is kept there; nothing was changed. What it said is the `__cause__`."""

    def __init__(self, session: str, error: Exception) -> None:
        """`session`: the id. `error`: as it was met."""
        why = getattr(error, "strerror", None) or error
        super().__init__(
            f"a frame of session {session!r} cannot be read from the store: {why}; "
            "nothing was changed: try again, and look at the disk if it goes on"
        )
        self.session = session


class StoreCorrupt(StoreError, store.StoreCorrupt):
    """A file of the store is damaged; nothing of it was changed."""


class CatalogCorrupt(StoreCorrupt, store.CatalogCorrupt):
    """The catalog cannot be read."""


class LogCorrupt(StoreCorrupt, store.LogCorrupt):
    """A line in the middle of the log is damaged."""


class JournalCorrupt(StoreCorrupt, store.JournalCorrupt):
    """A line in the valid part of a journal is damaged."""


class JournalTruncated(StoreCorrupt, store.JournalTruncated):
    """A journal is shorter than it must be."""


# --- of the actors ---------------------------------------------------------------------------------------------------


class ActorError(SessionActorError, actors.SupervisorError):
    """The session's actor cannot answer."""


class CallTimeout(ActorError, actors.CallTimeout):
    """No reply in time: the outcome is unknown, retry with the same key. A change that had not begun is never made."""


class MailboxFull(ActorError, actors.MailboxFull):
    """Too many calls wait for the session; nothing was changed."""


class DeadlockError(ActorError, actors.DeadlockError):
    """Waiting for the session from here would never end."""


class WrongLoop(ActorError, actors.WrongLoop):
    """The session belongs to another event loop or thread."""


class UnknownMessage(ActorError, actors.UnknownMessage):
    """A session takes only the messages of `session_actor.commands`."""


class AsyncioOnly(ActorError, actors.AsyncioOnly):
    """Sessions run under asyncio only."""


def translate(error: store.PersistenceError | actors.SupervisorError) -> SessionActorError:
    """The error of this package for an error of a floor below: a new object of the same message and attributes.

    One that is of this package already is returned as it is.
    """
    if isinstance(error, SessionActorError):
        return error
    kind = next(_OURS[base] for base in type(error).__mro__ if base in _OURS)
    ours = kind.__new__(kind, *error.args)
    ours.args = error.args
    ours.__dict__.update(error.__dict__)
    ours.__cause__ = error.__cause__
    return ours


def _below(kind: type[SessionActorError]) -> dict[type[Exception], type[SessionActorError]]:
    """Which floor's error stands behind each class derived from `kind`."""
    found: dict[type[Exception], type[SessionActorError]] = {}
    for ours in kind.__subclasses__():
        found.update(_below(ours))
        for base in ours.__bases__:
            if issubclass(base, store.PersistenceError | actors.SupervisorError) and not issubclass(
                base, SessionActorError
            ):
                found[base] = ours
    return found


_OURS = _below(SessionActorError)
