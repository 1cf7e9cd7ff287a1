"""The errors of compactions and retractions. Nothing was changed then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.errors import Refused
from session_actor.given.plain import shown

if TYPE_CHECKING:
    from .verdict import Verdict


class SummaryRejected(Refused):
    """The gate refused a summary: it would lose, or change, what matters."""

    def __init__(self, verdict: Verdict) -> None:
        """`verdict`: with the reasons."""
        codes = ", ".join(dict.fromkeys(reason.code for reason in verdict.errors))
        super().__init__(
            f"the summary was rejected ({codes}); nothing was changed: plan.retry_prompt(verdict) asks for a better "
            "one, and plan.extractive() is one that needs no model"
        )
        self.verdict = verdict


class StalePlan(Refused):
    """The conversation is no longer the one that the plan was made for."""

    def __init__(self, why: str) -> None:
        """`why`: what is different."""
        super().__init__(f"the plan does not hold any more: {why}; nothing was changed: prepare another")


class PlanUsed(Refused):
    """The plan was carried out before; a plan is used once."""

    def __init__(self, generation: int) -> None:
        """`generation`: of the compaction that it became."""
        super().__init__(
            f"the plan was carried out before, as compaction {generation}; nothing was changed: prepare another"
        )
        self.generation = generation


class CompactionUnknown(Refused):
    """There is no such compaction: it never was, was taken back, or is not remembered any more."""

    def __init__(self, generation: object) -> None:
        """`generation`: as asked for."""
        super().__init__(
            f"there is no compaction {shown(generation)} in force in this session; the `generation` of a request "
            "tells which one it shows"
        )
        self.generation = generation


class AssumptionUnknown(Refused):
    """No frame of the path states this assumption, or it was retracted there before."""

    def __init__(self) -> None:
        """It never says which: that is content."""
        super().__init__(
            "no frame of this path states this assumption, or it was retracted already; give it word for word as in "
            "the `assumptions` of a frame (white space does not count)"
        )
