"""What a replay refuses, beside what every read does."""

from __future__ import annotations

from session_actor.errors import Refused


class MomentUnknown(Refused):
    """The session cannot be shown as it was then."""

    def __init__(self, what: str, why: str) -> None:
        """`what`: the moment that was asked for. `why`: why it is not known, and which are."""
        super().__init__(f"{what} cannot be gone to: {why}")
        self.what = what
        self.why = why
