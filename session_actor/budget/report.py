"""How full a model's window is, as it is shown to callers."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

Pressure: TypeAlias = Literal["green", "yellow", "red"]
"""How full: below 75% of the budget, up to 95%, above."""

YELLOW: Final = 0.75
"""From this share of the allowance on the pressure is yellow, and old tool results are shown as stubs."""

RED: Final = 0.95
"""From this share on it is red, by the upper bound."""


class Budget(msgspec.Struct, frozen=True, gc=False):
    """What the next request would take of a model's window, in tokens."""

    model: str
    window: int
    """What the model takes, input and output together."""
    output_reserve: int
    """What is left free for the reply."""
    safety_reserve: int
    """What is left free because the rest is an estimate; smaller once `calibrated`."""
    allowance: int
    """What the input may take: the window, or the model's own cap of the input, less the reserves."""
    system: int
    """The system prompt."""
    tools: int
    """The tools."""
    format: int
    """What `extra` of the newest request brought, such as a response format."""
    messages: int
    """The messages that were in the newest request of this path."""
    pending: int
    """The messages that came since then: no request has shown them yet."""
    used: int
    """The sum of the five: what the input would be, as likely as not."""
    upper: int
    """What it would be at most, by all that is known of the estimate's error."""
    free: int
    """What is left of the allowance; 0 when nothing is."""
    pressure: Pressure
    """Red by `upper`, yellow by `used`."""
    calibrated: bool
    """Whether the provider's own counts of this conversation are part of it."""


def pressure_of(used: int, upper: int, allowance: int) -> Pressure:
    """How full a budget is. Red is said of what may be, yellow of what is likely."""
    if upper >= RED * allowance:
        return "red"
    return "yellow" if used >= YELLOW * allowance else "green"
