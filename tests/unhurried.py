"""A turn of the loop in which servers may run as many messages as they like, however busy the machine is."""

from math import inf

from session_actor.supervisors import ServerRef


def unhurried(ref: ServerRef) -> None:
    """Let calls of idle servers run at once for the rest of this turn, and of later ones until one is asked for."""
    ref.slot.floor.budget.check_at = inf
