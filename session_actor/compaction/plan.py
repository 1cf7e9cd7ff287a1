"""Plans: what a summary would take the place of, how a model is asked for it, and whether one that it wrote will do.

A plan is a value. Making one changes nothing, and it stays what it is while the session goes on; whether it still holds
is seen when it is carried out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import msgspec

from session_actor.budget.trim import Unit
from session_actor.frames import Frame
from session_actor.given.private import as_repr
from session_actor.state.runs import Runs
from session_actor.tokens.estimate import estimate_tokens

from .extract import extracts
from .facts import Facts
from .prompts import Brief, merge_prompt, retry_prompt

if TYPE_CHECKING:
    from .gate import Gate
    from .verdict import Verdict

FRAMED_TOKENS: Final = 40
"""About what the frame around a summary costs in a request."""


class Previous(msgspec.Struct, frozen=True, gc=False):
    """The compaction that a path shows now: its summary is the first part of what the next one stands for."""

    generation: int
    covered_frame: int
    text: str
    """The sealed summary."""
    facts: Facts
    """As its plan had them."""
    kept: tuple[int, ...] = ()
    """As its plan had them."""

    def __repr__(self) -> str:
        """Numbers only."""
        return f"Previous(generation={self.generation}, covered_frame={self.covered_frame})"

    __rich_repr__ = as_repr


class Wanted(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a plan is made from."""

    session: str
    generation: int
    """The number that the compaction gets."""
    frames: Sequence[Frame]
    """The path above what is covered already, oldest first, what a trim hides included. Its last one is the head."""
    lent: Sequence[Frame] = ()
    """The frames of `previous.kept` that are still there, oldest first."""
    units: Sequence[Unit]
    """What is shown now, with its real costs. Units without frames, such as a summary, are passed over."""
    fixed_tokens: int = 0
    """What every request has besides the messages: system prompt, tools and the like."""
    window: int
    """The model's [tokens]."""
    family: str
    """Of its tokenizer."""
    previous: Previous | None = None
    pinned: frozenset[int] = frozenset()
    """Frames that are pinned besides those that were pushed so."""
    retracted: Mapping[str, int] = {}
    """The assumptions that were retracted on this path, each with the newest frame that did so."""
    instructions: str | None = None
    """What the summary should mind in addition; for the prompts."""
    summarizer_window: int | None = None
    """The window of the model that writes the summary [tokens]; None: `window`."""
    extra_markers: tuple[str, ...] = ()
    """Words that make a sentence a rule, in other languages than English."""
    runs: Runs = []
    """The ids of the whole path, as `path_runs` gives them; empty: only those of `frames` can be pointed to."""

    def __repr__(self) -> str:
        """Numbers only."""
        return f"Wanted({self.session!r}, generation={self.generation}, {len(self.frames)} frames)"

    __rich_repr__ = as_repr


class Basis(NamedTuple):
    """What a plan asks and judges by."""

    brief: Brief
    """What its prompts say."""
    gate: Gate
    """What judges a summary."""
    frames: tuple[Frame, ...]
    """What gives way."""
    earlier: str | None
    """The summary that gives way, too; None: there is none."""

    def __repr__(self) -> str:
        """Numbers only."""
        return f"Basis({len(self.frames)} frames)"


class Plan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a summary would take the place of. Its methods change nothing, and give the same for the same."""

    IDENTITY: ClassVar = ("session", "head", "generation", "covered_frame", "hash")
    """The fields that tell two plans apart."""

    session: str
    head: int
    """The head when it was made."""
    generation: int
    """The number that the compaction gets, unless one is made on another branch before."""
    first_frame: int
    """The oldest frame that it is the first to cover."""
    covered_frame: int
    """The newest frame that it covers: with it, all below on its path."""
    kept: tuple[int, ...]
    """Frames up to it that stay shown as they are, ascending: pinned ones, and what the user asked for in the exchange
    that goes on. No summary speaks for them."""
    hash: str
    """Of all that the summary stands for, the summary before it included: ids and content, in hex."""
    tokens_before: int
    """What a request takes up now."""
    range_tokens: int
    """What gives way of it."""
    cap_tokens: int
    """How long a summary may be."""
    facts: Facts
    """What it has to keep."""
    prompts: tuple[str, ...]
    """What to ask a model, each prompt by itself; the answers to several go to `merge_prompt`.

    (): the summariser's window is too small for any; there is `extractive`.
    """
    max_tokens: int
    """How long the model's answer to one of them may be."""
    basis: Basis

    def merge_prompt(self, parts: Sequence[str]) -> str:
        """The prompt that makes one summary of the answers to several `prompts`, in their order."""
        return merge_prompt(self.basis.brief, parts)

    def retry_prompt(self, verdict: Verdict, parts: Sequence[str] = ()) -> str:
        """What to ask when a summary was refused.

        Args:
            verdict: why.
            parts: the answers to `prompts`, if there were several.

        Returns:
            The prompt that led to the summary, with the reasons. It fits the summariser's window.
        """
        several = len(self.prompts) != 1
        return retry_prompt(self.basis.brief, self.merge_prompt(parts) if several else self.prompts[0], verdict)

    def evaluate(self, text: str, stop_reason: str | None = "end") -> Verdict:
        """Judge a summary, after what is missing of the facts was added word for word.

        Args:
            text: as the model wrote it.
            stop_reason: why it stopped, in its provider's words; None: not known.

        Returns:
            The verdict; the same for the same text, whenever it is asked for.
        """
        return self.basis.gate.evaluate(text, stop_reason)

    def extractive(self) -> str:
        """A summary that no model wrote: what the facts say, and in a few words what was done.

        `evaluate` takes it. It costs as much as one or two evaluations.
        """
        brief, _, frames, earlier = self.basis
        *fuller, plain = extracts(self.facts, earlier, frames, self.cap_tokens, brief.family)
        return next((text for text in fuller if self.evaluate(text).ok), plain)

    def tokens_after(self, text: str) -> int:
        """What a request takes up with this summary instead, estimated."""
        return self.tokens_before - self.range_tokens + shown_tokens(text, self.basis.brief.family)

    def __repr__(self) -> str:
        """Numbers only."""
        return (
            f"Plan({self.session!r}, generation={self.generation}, frames {self.first_frame} to {self.covered_frame}, "
            f"tokens_before={self.tokens_before}, cap_tokens={self.cap_tokens}, {len(self.prompts)} prompts)"
        )

    __rich_repr__ = as_repr


def shown_tokens(text: str, family: str) -> int:
    """What a summary costs in a request, estimated."""
    return estimate_tokens(text, family) + FRAMED_TOKENS
