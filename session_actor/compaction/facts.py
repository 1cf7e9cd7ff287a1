"""Facts: what a summary has to keep of the frames that it stands for."""

from __future__ import annotations

import msgspec

from session_actor.given.private import as_repr


class Fact(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One thing that a summary has to keep, word for word."""

    text: str
    """White space folded, secrets replaced by `[secret]`; else as it was said."""
    frame: int
    """The frame that said it first."""
    kind: str = ""
    """Of an identifier: `path`, `url`, `hash`, `id`, `version`, `email`, `number`; of an artifact: how it was used."""
    seen: int = 1
    """In how many frames."""
    last_seen: int = 0
    """The last frame that said it."""
    missed: int = 0
    """For how many compactions in a row it was not seen again."""

    def __repr__(self) -> str:
        """Without the text."""
        return f"Fact({self.kind!r}, frame={self.frame}, {len(self.text)} characters)"

    __rich_repr__ = as_repr


class Facts(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a summary of a range has to keep. Plain values only: it can be stored, and is part of what a plan is."""

    goal: Fact | None = None
    """What the user wanted first, cut short; None: the user said nothing."""
    constraints: tuple[Fact, ...] = ()
    """Rules that the user gave."""
    decisions: tuple[Fact, ...] = ()
    assumptions: tuple[Fact, ...] = ()
    """Those that were not retracted."""
    retracted: tuple[Fact, ...] = ()
    """Assumptions that turned out to be wrong."""
    artifacts: tuple[Fact, ...] = ()
    """Files and other things that were noted as read or modified."""
    identifiers: tuple[Fact, ...] = ()
    open_question: Fact | None = None
    """What the user asked last, if it is not answered in the range."""
    answered: tuple[str, ...] = ()
    """The user's last questions that were answered."""
    inputs: tuple[Fact, ...] = ()
    """The beginnings of what the user said last."""
    languages: tuple[str, ...] = ()
    """What is spoken, as far as can be told: `en`, `de`, … or a script such as `cyrillic`."""

    def __repr__(self) -> str:
        """Without the content."""
        return (
            f"Facts({len(self.constraints)} constraints, {len(self.decisions)} decisions, "
            f"{len(self.assumptions)} assumptions, {len(self.retracted)} retracted, "
            f"{len(self.artifacts)} artifacts, {len(self.identifiers)} identifiers)"
        )

    __rich_repr__ = as_repr
