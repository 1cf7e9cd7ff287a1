"""What is known of a model: how much it takes and gives, and how that is counted."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from session_actor.dialects import DIALECTS, Dialect
from session_actor.errors import InvalidArgument
from session_actor.given.plain import is_a, shown
from session_actor.tokens.estimate import FAMILIES
from session_actor.tokens.images import RULES

SMALLEST_WINDOW: Final = 100
"""No window is smaller: the reserves of it would be nothing."""

FEWEST_MESSAGES: Final = 16
"""No limit of messages is lower: a step of parallel calls would hardly fit."""


class ModelProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of one model, or of a family of models that share it.

    Raises `InvalidArgument` for a field that cannot be right: it says which and why.
    """

    name: str
    """The model, or how the names of the family's models begin."""
    window: int
    """The most that the model reads and writes in one call together [tokens]."""
    max_output: int
    """The most that it writes in one call [tokens], reasoning included."""
    family: str
    """The family of its tokenizer: one that `estimate_tokens` takes."""
    image_rule: str = "unknown"
    """How its images are counted: a name in `tokens.images.RULES`."""
    dialects: tuple[Dialect, ...] = ("openai_chat",)
    """The APIs that its provider offers it by, the best first."""
    as_of: str = ""
    """The day when all this was known to hold, as YYYY-MM-DD; `""`: not said."""
    source: str = ""
    """Where it is published; `""`: not said."""
    input_cap: int | None = None
    """The most that it reads in one call [tokens]; None: what the window leaves beside the output."""
    tools_prompt: int = 0
    """What the provider itself adds to the prompt when there are tools [tokens]."""
    sees_images: bool = True
    """Whether it takes images. To one that does not, a text says instead that there was one."""
    sees_documents: bool = True
    """Whether it reads PDFs; the same."""

    says_max_tokens: bool = False
    """Whether its API knows the longest answer of Chat Completions as `max_tokens` only."""
    short_call_ids: bool = False
    """Whether its API takes only call ids of nine letters and digits."""
    most_messages: int | None = None
    """So many messages its API of Chat Completions takes in one request; None: no limit is published. Names that say
    that Azure serves the model ("azure/…") have its limit without this."""

    def __post_init__(self) -> None:
        """Refuse what cannot be right."""
        _text(self.name, "name", empty=False)
        _text(self.as_of, "as_of")
        _text(self.source, "source")
        _tokens(self.window, "window", SMALLEST_WINDOW)
        _tokens(self.max_output, "max_output", 1, self.window)
        if self.input_cap is not None:
            _tokens(self.input_cap, "input_cap", SMALLEST_WINDOW, self.window)
        _tokens(self.tools_prompt, "tools_prompt", 0, self.window)
        _one_of(self.family, "family", FAMILIES)
        _one_of(self.image_rule, "image_rule", tuple(RULES))
        if not is_a(self.dialects, tuple) or not self.dialects:
            raise InvalidArgument("dialects", "must be a tuple of at least one dialect")
        for dialect in self.dialects:
            _one_of(dialect, "dialects", DIALECTS)
        if self.most_messages is not None:
            _messages(self.most_messages)
        for what in ("sees_images", "sees_documents", "says_max_tokens", "short_call_ids"):
            value: Any = getattr(self, what)
            if value is not True and value is not False:
                raise InvalidArgument(what, f"must be a bool, got {type(value).__name__}")


def _text(value: object, what: str, *, empty: bool = True) -> None:
    if type(value) is not str:
        raise InvalidArgument(what, f"must be a str, got {type(value).__name__}")
    if not value and not empty:
        raise InvalidArgument(what, "must not be empty")


def _tokens(value: object, what: str, least: int, most: int = 2**53) -> None:
    if type(value) is not int:
        raise InvalidArgument(what, f"must be an int, got {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidArgument(what, f"must be from {least} to {most} tokens, got {shown(value)}")


def _messages(value: object) -> None:
    if type(value) is not int:
        raise InvalidArgument("most_messages", f"must be an int, got {type(value).__name__}")
    if value < FEWEST_MESSAGES:
        raise InvalidArgument("most_messages", f"must be at least {FEWEST_MESSAGES}, got {shown(value)}")


def _one_of(value: object, what: str, known: tuple[str, ...]) -> None:
    if type(value) is not str or value not in known:
        raise InvalidArgument(what, f"must be one of {', '.join(known)}; got {shown(value)}")
