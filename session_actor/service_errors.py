"""What a service or a session as a whole answers, beside the refusals of its state."""

from __future__ import annotations

from session_actor.supervisors import ServerCrashed, ServerQuarantined, ServerStopped

from .errors import Refused, SessionActorError


class SessionNotFound(Refused):
    """There is no session of this id."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(
            f"there is no session {session!r}: it was never made here, or it was deleted "
            "(service.session makes one only with create=True)"
        )
        self.session = session


class SessionNotQuarantined(Refused):
    """The session was to be released, and is not in quarantine."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(
            f"session {session!r} is not quarantined, so there is nothing to release: service.health().quarantined "
            "lists those that are"
        )
        self.session = session


class Lagged(SessionActorError):
    """A reader of `Session.changes` did not keep up, or what it missed is not there any more."""

    def __init__(self, session: str, last_seq: int, *, lost: bool) -> None:
        """`last_seq`: where to go on. `lost`: what lies before cannot be had; False: it comes again."""
        why = "some of them are not there any more: read the session anew" if lost else "the store has the others"
        super().__init__(
            f"a reader of the changes of session {session!r} has fallen behind; {why}, and go on with "
            f"session.changes(after_seq={last_seq})"
        )
        self.session = session
        self.last_seq = last_seq
        self.lost = lost


class SessionExists(Refused):
    """A new session was to be made, and its id is taken."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(f"there is a session {session!r} already; choose another id, or delete that session first")
        self.session = session


class SessionDeleted(Refused):
    """The session was deleted. This handle stays dead, even if the id is made again."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(f"session {session!r} was deleted; service.session(…, create=True) makes a new one of that id")
        self.session = session


class SessionBusy(Refused):
    """Another exchange is running on this session."""

    def __init__(self, session: str, waited_s: float | None = None, *, own: bool = False) -> None:
        """`session`: the id. `waited_s`: how long it was waited for in vain [seconds]; None: not at all.

        `own`: the exchange is that of the task which asks.
        """
        told = "; answer the caller 'busy', or wait: exchange(wait_s=seconds)"
        if waited_s:
            told = f" that did not end within {waited_s} s; answer the caller 'busy'"
        if own:
            told = ", and it is this task that is in it: leave it first, or do without another"
        super().__init__(f"session {session!r} is in an exchange{told}")
        self.session = session


class SessionFenced(Refused):
    """Another owner has taken the session over; this process may not change it any more."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(f"session {session!r} belongs to another owner now; nothing was changed: do not retry here")
        self.session = session


class SessionCrashed(SessionActorError, ServerCrashed):
    """The session crashed over this message, which is not run again; the session restarts from its store."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(
            f"session {session!r} crashed over this message and restarts; read it again before you retry: "
            "with a key= the retry is safe"
        )
        self.session = session


class SessionQuarantined(SessionActorError, ServerQuarantined):
    """The session crashed again and again and is set aside; the others go on."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(
            f"session {session!r} kept crashing and is quarantined; mend the cause, then service.release({session!r})"
        )
        self.session = session


class ServiceClosed(SessionActorError, ServerStopped):
    """The service is closed, closing, or not yet open; nothing was changed."""

    def __init__(self) -> None:
        """Say what to do."""
        super().__init__(
            "the session service is not open; use it inside `async with SessionService.open(…) as service:`"
        )


class CloseTimeout(SessionActorError, TimeoutError):
    """The disk did not take what was queued before the service had to be closed."""

    def __init__(self, timeout_s: float, unsynced: int | None = None) -> None:
        """Say how much is in doubt.

        `timeout_s`: how long closing was allowed to take [seconds]. `unsynced`: how many records are not known to be on
        the disk, the newest of all sessions; None: the store does not tell.
        """
        lost = "what had not reached the disk" if unsynced is None else f"the newest records, {unsynced} of them,"
        super().__init__(
            f"the disk did not answer within close_timeout_s={timeout_s}; the service is closed, and {lost} may be "
            "lost: check the disk, and give closing more time"
        )
        self.timeout_s = timeout_s
        self.unsynced = unsynced


class ServiceDown(SessionActorError):
    """A part of the service kept crashing, and the service gave up; what was acknowledged is in the store."""

    def __init__(self, why: str) -> None:
        """`why`: what the service's supervisor says."""
        super().__init__(f"the session service has given up ({why}); close it, mend the cause, open it again")
