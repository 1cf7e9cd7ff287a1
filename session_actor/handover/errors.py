"""What handing over can answer."""

from __future__ import annotations

from session_actor.errors import Refused, SessionActorError
from session_actor.service_errors import ServiceClosed
from session_actor.supervisors import CrashSummary


class HandedOver(ServiceClosed):
    """The service was handed over to another process, or to another generation of the library; send the call there."""

    def __init__(self, to: str = "another process") -> None:
        """`to`: who has the sessions now."""
        SessionActorError.__init__(
            self,
            f"this session service was handed over to {to}: send the call there; one that was not answered here may be "
            "recorded, and with a key= sending it again is safe",
        )
        self.to = to


class HandoverFailed(SessionActorError):
    """The next generation could not take over; the old one goes on, and no message is lost."""

    def __init__(self, what: str, why: str) -> None:
        """`what`: who could not be handed over. `why`: the reason."""
        super().__init__(f"{what} could not be handed over: {why}; the old generation goes on, mend that and try again")
        self.what = what
        self.why = why


def failed(what: str, error: Exception) -> HandoverFailed:
    """Why a session could not be handed over.

    Of an error that is not the library's own, and may quote the conversation, only its type and its place are told.
    """
    told = error if isinstance(error, SessionActorError) else CrashSummary.of(error)
    found = HandoverFailed(what, f"{type(error).__name__}: {error}" if told is error else str(told))
    found.__cause__ = told
    return found


class HandoverUnusable(Refused):
    """A value that was handed over is not one that this version, or this session, can go on from."""
