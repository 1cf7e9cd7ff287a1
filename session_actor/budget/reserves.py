"""How much of a model's window is kept free: for its answer, and for what an estimate can be wrong by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.errors import InvalidArgument
from session_actor.given.plain import shown

if TYPE_CHECKING:
    from session_actor.models.profile import ModelProfile

SMALL_WINDOW: Final = 64_000
"""Below this a window is divided by shares alone."""


class Reserves(msgspec.Struct, frozen=True, gc=False):
    """A window, divided [tokens]. `output + safety + allowance` is never more than the window."""

    output: int
    """For the answer: what the request asks for as its maximum."""
    safety: int
    """For what the estimate can be wrong by."""
    allowance: int
    """For all that is sent: the budget."""


def output_reserve(profile: ModelProfile) -> int:
    """Return what is kept for the answer when nobody asks for another figure [tokens].

    A sixth of the window, from 4,096 to 32,768; of a window below 64,000 a quarter. Never more than the model writes.
    `profile`: the model's, as `profile_of(model)` gives it.
    """
    window = profile.window
    wanted = window // 4 if window < SMALL_WINDOW else min(max(window // 6, 4_096), 32_768)
    return max(1, min(wanted, profile.max_output))


def safety_reserve(profile: ModelProfile, *, calibrated: bool = False) -> int:
    """Return what is kept for what the estimate can be wrong by [tokens].

    3% of the window, from 8,000 to 32,000; of a window below 64,000 a sixteenth; never more than a quarter of the
    model's input cap. Once the estimate is `calibrated` by real counts, half of it. `profile`: the model's, as
    `profile_of(model)` gives it.
    """
    window = profile.window
    reserve = window // 16 if window < SMALL_WINDOW else min(max(window * 3 // 100, 8_000), 32_000)
    if profile.input_cap is not None:
        reserve = min(reserve, profile.input_cap // 4)
    return max(1, reserve // 2 if calibrated else reserve)


def reserves(profile: ModelProfile, max_output_tokens: int | None = None, *, calibrated: bool = False) -> Reserves:
    """Divide a model's window.

    Args:
        profile: the model.
        max_output_tokens: the answer's maximum; None: `output_reserve(profile)`. A larger wish than the model can
            write, or one that leaves less than a quarter of the window for the conversation, is lowered.
        calibrated: whether the estimate of what is sent was corrected by real counts.

    Returns:
        The reserves; each is at least 1, and input within the allowance plus output never exceeds the window.

    Raises:
        InvalidArgument: `max_output_tokens` is no int from 1.
    """
    safety = safety_reserve(profile, calibrated=calibrated)
    output = output_reserve(profile)
    if max_output_tokens is not None:
        most = profile.window - safety - profile.window // 4
        output = min(_wish(max_output_tokens), profile.max_output, most)
    allowance = profile.window - output - safety
    if profile.input_cap is not None:
        allowance = min(allowance, profile.input_cap - safety)
    return Reserves(output, safety, allowance)


def _wish(value: object) -> int:
    if type(value) is not int:
        raise InvalidArgument("max_output_tokens", f"must be an int, got {type(value).__name__}")
    if value < 1:
        raise InvalidArgument("max_output_tokens", f"must be at least 1, got {shown(value)}")
    return value
