"""A summary that was judged before it is committed: the gate takes a while, and nobody should wait for it twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .plan import Plan
    from .verdict import Verdict


class Judged:
    """What the gate said of one text for one plan."""

    __slots__ = ("_plan", "_stop_reason", "_text", "_verdict")

    def __init__(self, plan: Plan, text: str, stop_reason: str | None) -> None:
        """Judge it. May run in any thread."""
        self._plan = plan
        self._text = text
        self._stop_reason = stop_reason
        self._verdict = plan.evaluate(text, stop_reason)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the reasons."""
        return self._verdict.codes

    def verdict_on(self, plan: Plan, text: str, stop_reason: str | None) -> Verdict | None:
        """The verdict, if it is on these; else None."""
        same = plan is self._plan and text == self._text and stop_reason == self._stop_reason
        return self._verdict if same else None

    def __repr__(self) -> str:
        """Without the text."""
        return f"Judged({self._verdict!r})"
