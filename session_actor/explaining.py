"""The errors of this package for what the server of a session answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.persistence import PersistenceError
from session_actor.supervisors import InitFailed, ServerCrashed, ServerQuarantined, SupervisorError

from .errors import SessionActorError, remade, translate
from .service_errors import SessionCrashed, SessionQuarantined

if TYPE_CHECKING:
    from collections.abc import Callable

OF_A_SESSION: Final[dict[type[SupervisorError], Callable[[str], SessionActorError]]] = {
    ServerCrashed: SessionCrashed,
    ServerQuarantined: SessionQuarantined,
}
"""Errors that tell the id."""


def explain_start(error: InitFailed) -> SessionActorError:
    """Why a session could not start: a new error each time."""
    cause = error.__cause__
    if isinstance(cause, SessionActorError):
        return remade(cause, type(cause))
    return translate(cause if isinstance(cause, PersistenceError) else error)
