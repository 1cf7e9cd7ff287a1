"""What a request is asked for: whom, under which instructions, with how much room. Read from a command, and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from session_actor.blocks import NULL, thawed
from session_actor.budget.ceilings import ceiling
from session_actor.budget.readings import NOTHING, Key, Learned
from session_actor.budget.reserves import reserves
from session_actor.dialects import checked_dialect
from session_actor.errors import InvalidArgument, ValueNotStorable
from session_actor.frames import Frame, Turn
from session_actor.given import content
from session_actor.given.content import checked
from session_actor.given.plain import is_a
from session_actor.ledger.entries import Target
from session_actor.models import profile_of
from session_actor.requests.plain_calls import plain_call_output
from session_actor.requests.renderer import dialect_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from session_actor.blocks import Block
    from session_actor.budget.reserves import Reserves
    from session_actor.commands import Content
    from session_actor.dialects import Dialect
    from session_actor.frames import Instructions
    from session_actor.models import ModelProfile
    from session_actor.requests.renderer import Renderer
    from session_actor.state.state import State

    from .marks import Mark

RESULT_CAP: Final = 25_000
"""No tool result is shown at greater length [tokens], and none that takes more than a quarter of the budget."""


_LEAST_OUTPUT: Final = {"openai_responses": 16}
"""The least `max_output_tokens` that a dialect takes; smaller wishes are raised to it."""

_NOBODY: Final = Frame(0, None, 0, 0)
"""Stands at the head of the empty path."""


class Ask(NamedTuple):
    """A request, before anything of the conversation is looked at."""

    dialect: Dialect
    renderer: Renderer
    model: str
    profile: ModelProfile
    top: Frame
    """The frame at its head."""
    wanted_output: int | None
    extra: msgspec.Raw
    """What is merged into it, as JSON text."""
    ephemeral: tuple[Block, ...]
    learned: Learned
    """What is known of real lengths."""
    room: Reserves
    """How the window is divided; next: when the estimate was corrected by real counts."""
    calibrated_room: Reserves
    result_cap: int
    """No tool result is shown at greater length [tokens]."""

    @classmethod
    def of_nothing(cls, profile: ModelProfile, model: str) -> Ask:
        """A request of an empty path, which nobody can send; its budget can be told."""
        dialect = profile.dialects[0]
        return cls(
            dialect, dialect_of(dialect), model, profile, _NOBODY, None, NULL, (), NOTHING, *_room(profile, None)
        )

    @property
    def instructions(self) -> Instructions | None:
        """Those in force."""
        return self.top.in_force

    def reserves(self, *, calibrated: bool = False) -> Reserves:
        """How the window is divided."""
        return self.calibrated_room if calibrated else self.room

    def allowance(self, *, calibrated: bool = False) -> int:
        """What the input may take [tokens]."""
        allowance = self.reserves(calibrated=calibrated).allowance
        most = ceiling(self.learned, self.key, allowance)
        return allowance if most is None else min(allowance, most)

    @property
    def key(self) -> Key:
        """Whom it is for, under which instructions; of no compaction."""
        return Key(self.model, self.dialect, self.top.configured)

    @property
    def warned(self) -> Key | None:
        """The same when requests for it were refused as too long; None: none was."""
        return None if ceiling(self.learned, self.key, self.room.allowance) is None else self.key

    def with_output(self, wanted: int) -> Ask:
        """The same, for an answer of that length, as far as model and window allow it."""
        room, calibrated_room, result_cap = _room(self.profile, wanted)
        return self._replace(wanted_output=wanted, room=room, calibrated_room=calibrated_room, result_cap=result_cap)

    def output(self, *, calibrated: bool = False) -> int:
        """The longest answer that it asks for [tokens]: unless it was said, one for which a plain call will do."""
        output = self.reserves(calibrated=calibrated).output
        plain = plain_call_output(self.dialect, self.model) if self.wanted_output is None else None
        return output if plain is None else min(output, plain)

    def target(self, mark: Mark | None) -> Target:
        """Whom it is for. What varies from request to request has no part in it: equal targets share what is made."""
        profile = self.profile
        cap = self.result_cap
        if mark is not None and mark.result_cap is not None:
            cap = min(cap, mark.result_cap)
        short = profile.short_call_ids and self.dialect == "openai_chat"
        return Target(self.dialect, self.model, profile.family, cap, profile.sees_images, profile.sees_documents, short)

    @property
    def extra_value(self) -> dict[str, Any] | None:
        """What is merged into it, a fresh copy each time; None: nothing."""
        return cast("dict[str, Any] | None", thawed(self.extra))


def ask(  # noqa: PLR0917 - what a request can be asked for
    state: State,
    top: Frame,
    dialect: object,
    model: object = None,
    wanted_output: object = None,
    extra: Mapping[str, Any] | msgspec.Raw | None = None,
    ephemeral: Content | None = None,
) -> Ask:
    """What a command asks for at a head. Raises `InvalidArgument`, `ValueNotStorable`."""
    name = checked_dialect(dialect)
    wanted = None if wanted_output is None else checked(content.count, wanted_output, "max_output_tokens")
    if wanted:
        wanted = max(wanted, _LEAST_OUTPUT.get(name, 1))
    model = _model(model, top.in_force)
    merged = NULL if extra is None else _merged(extra)
    profile = profile_of(model, state.models)
    return Ask(
        name,
        dialect_of(name),
        model,
        profile,
        top,
        wanted,
        merged,
        _ephemeral(ephemeral),
        state.learned,
        *_room(profile, wanted),
    )


def _room(profile: ModelProfile, wanted: int | None) -> tuple[Reserves, Reserves, int]:
    """How a window is divided, before and after calibration, and the longest result. Raises `InvalidArgument`."""
    room = reserves(profile, wanted)
    usual = room if wanted is None else reserves(profile)
    return room, reserves(profile, wanted, calibrated=True), min(RESULT_CAP, max(1, usual.allowance // 4))


def _merged(extra: object) -> msgspec.Raw:
    try:
        merged = checked(content.free, extra, "extra")
    except ValueNotStorable as refused:
        raise ValueNotStorable(
            refused.where,
            f"{refused.why}. It is recorded: give plain values, for example the JSON schema of a class as "
            "Class.model_json_schema(), and settings as a dict instead of an object of the SDK",
        ) from None
    if merged is not NULL and not is_a(thawed(merged), dict):
        raise InvalidArgument("extra", "must be a dict of further arguments of the SDK's call")
    return merged


def _model(model: object, instructions: Instructions | None) -> str:
    if model is not None:
        given = checked(content.text, model, "model")
        if not given:
            raise InvalidArgument("model", "must not be empty")
        return given
    if instructions is None or instructions.model is None:
        raise InvalidArgument("model", 'is not known: give it here, or once for all by configure(model="…")')
    return instructions.model


def _ephemeral(given: Content | None) -> tuple[Block, ...]:
    if given is None:
        return ()
    blocks = checked(content.blocks, given, "ephemeral")
    checked(content.turn, Turn("user", blocks), "ephemeral")
    return blocks
