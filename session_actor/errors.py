"""Every error of the package: one tree under `SessionActorError`.

A `Refused` is an answer: nothing was changed, the session lives. So is a `StoreError`, but a change may have been made.
The refusals of a session are in `refusals`. The errors of the two floors below come out of this package as the classes
of the same name here, each of which is also the floor's own class: `except SessionActorError` catches all of them, and
`except session_actor.persistence.StoreLocked` still catches its own. `translate` makes them. No error carries content
of a conversation.
"""

from __future__ import annotations

from typing import TypeVar

from session_actor.persistence import errors as store
from session_actor.supervisors import errors as actors

# ruff: noqa: PLC0414 - so they are exported from here, too
from .refusals import BranchAttached as BranchAttached
from .refusals import BranchUnknown as BranchUnknown
from .refusals import CallAlreadyAnswered as CallAlreadyAnswered
from .refusals import CallAmbiguous as CallAmbiguous
from .refusals import CallUnknown as CallUnknown
from .refusals import CheckpointUnknown as CheckpointUnknown
from .refusals import EmptyStack as EmptyStack
from .refusals import ForkUnfinished as ForkUnfinished
from .refusals import FrameUnknown as FrameUnknown
from .refusals import HeadMoved as HeadMoved
from .refusals import InvalidArgument as InvalidArgument
from .refusals import KeyConflict as KeyConflict
from .refusals import NameTaken as NameTaken
from .refusals import NameUnknown as NameUnknown
from .refusals import RecordsLost as RecordsLost
from .refusals import RecordUnknown as RecordUnknown
from .refusals import RecordUnreadable as RecordUnreadable
from .refusals import Refused as Refused
from .refusals import ReplayError as ReplayError
from .refusals import SessionActorError as SessionActorError
from .refusals import SessionEnded as SessionEnded

Made = TypeVar("Made", bound=BaseException)

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
    ours = remade(error, next(_OURS[base] for base in type(error).__mro__ if base in _OURS))
    ours.__cause__ = error.__cause__
    return ours


def remade(error: BaseException, kind: type[Made]) -> Made:
    """The error as a new object of `kind`, with its message and its attributes, without its traceback.

    One object that is raised to many callers would collect the tracebacks of all.
    """
    made = kind.__new__(kind, *error.args)
    made.args = error.args
    made.__dict__.update(error.__dict__)
    return made


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
