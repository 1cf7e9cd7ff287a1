"""The errors of this package for what the server of a session answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.persistence import PersistenceError
from session_actor.supervisors import InitFailed, ServerCrashed, ServerQuarantined, SupervisorError
from session_actor.supervisors import errors as actors

from .errors import CallTimeout, SessionActorError, UnknownMessage, remade, translate
from .service_errors import SessionCrashed, SessionQuarantined

if TYPE_CHECKING:
    from collections.abc import Callable


def _not_taken(session: str) -> UnknownMessage:
    return UnknownMessage(
        f"session {session!r} takes no message of this class: it takes `Push`, `Pop` and the other commands that "
        "`session_actor` has, each called as a method of the session"
    )


OF_A_SESSION: Final[dict[type[SupervisorError], Callable[[str], SessionActorError]]] = {
    ServerCrashed: SessionCrashed,
    ServerQuarantined: SessionQuarantined,
    actors.UnknownMessage: _not_taken,
}
"""Errors that tell the id."""


def explain_late(session: str, error: actors.CallTimeout) -> CallTimeout:
    """What the caller of a session's server may do that had no reply in time."""
    what = (
        "what was asked may still be done: send it again with the same key="
        if error.started
        else "it was not run: send it again"
    )
    late = CallTimeout(f"session {session!r} did not answer within {error.timeout_s} s; {what}, or raise timeout_s")
    late.started, late.timeout_s = error.started, error.timeout_s
    return late


def explain_start(error: InitFailed) -> SessionActorError:
    """Why a session could not start: a new error each time."""
    cause = error.__cause__
    if isinstance(cause, SessionActorError):
        return remade(cause, type(cause))
    return translate(cause if isinstance(cause, PersistenceError) else error)
