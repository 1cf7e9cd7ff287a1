"""Plans: what a summary would take the place of, how a model is asked for it, and whether one that it wrote will do.

A plan is a value. Making one changes nothing, and it stays what it is while the session goes on; whether it still holds
is seen when it is carried out.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.budget.trim import Unit
from session_actor.frames import Frame
from session_actor.runs import Runs, contains
from session_actor.tokens.estimate import estimate_tokens

from .constraints import markers_with
from .extract import extracts
from .facts import Facts
from .frame_facts import texts_of
from .gate import Source, evaluate
from .headings import compose
from .known import known_in
from .merge import merged
from .prompts import Brief, merge_prompt, prompts_of, retry_prompt
from .ranges import range_of, tail_tokens
from .slices import at_once
from .source import Part, part_of, range_hash, said_in

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, MutableMapping

    from .ranges import Range
    from .source import Said
    from .verdict import Verdict

CAP_TOKENS: Final = 8_000
"""No summary is longer, unless what it has to keep is: a longer one is read by no model with the same care …"""

CAP_SHARE: Final = 10
"""… and none takes more than a tenth of the window: with the tail it is a good third, and the rest is free again."""

LEAST_TOKENS: Final = 64
"""A shorter summary says nothing."""

GAIN_TOKENS, GAIN_SHARE = 2_000, 10
"""A plan saves so many tokens at least, or a tenth of all that is sent."""

_MORE: Final = 4
"""A model may write a fourth more than the cap: what is a little too long is refused with a reason, not broken off."""

_SLACK: Final = 4
"""Where what has to be kept takes up the cap, there is a fourth more than that."""

_FRAMED: Final = 40
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
    retracted: tuple[str, ...] = ()
    """The assumptions that were retracted on this path."""
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


class Plan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a summary would take the place of. Its methods change nothing, and give the same for the same."""

    session: str
    head: int
    """The head when it was made."""
    generation: int
    """The number that the compaction gets."""
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
    brief: Brief
    """What the prompts say."""
    source: Source
    """What a summary is judged by."""
    extract: str
    """What `extractive` gives."""

    def merge_prompt(self, parts: Sequence[str]) -> str:
        """The prompt that makes one summary of the answers to several `prompts`, in their order."""
        return merge_prompt(self.brief, parts)

    def retry_prompt(self, verdict: Verdict, parts: Sequence[str] = ()) -> str:
        """What to ask when a summary was refused.

        Args:
            verdict: why.
            parts: the answers to `prompts`, if there were several.

        Returns:
            The prompt that led to the summary, with the reasons. It fits the summariser's window.
        """
        several = len(self.prompts) != 1
        return retry_prompt(self.brief, self.merge_prompt(parts) if several else self.prompts[0], verdict)

    def evaluate(self, text: str, stop_reason: str | None = "end") -> Verdict:
        """Judge a summary, after what is missing of the facts was added word for word.

        Args:
            text: as the model wrote it.
            stop_reason: why it stopped, in its provider's words; None: not known.

        Returns:
            The verdict; the same for the same text, whenever it is asked for.
        """
        return evaluate(
            text,
            self.facts,
            self.source,
            cap_tokens=self.cap_tokens,
            family=self.brief.family,
            stop_reason=stop_reason,
        )

    def extractive(self) -> str:
        """A summary that no model wrote: what the facts say. `evaluate` takes it."""
        return self.extract

    def tokens_after(self, text: str) -> int:
        """What a request takes up with this summary instead, estimated."""
        return self.tokens_before - self.range_tokens + shown_tokens(text, self.brief.family)

    def __repr__(self) -> str:
        """Numbers only."""
        return (
            f"Plan({self.session!r}, generation={self.generation}, frames {self.first_frame} to {self.covered_frame}, "
            f"tokens_before={self.tokens_before}, cap_tokens={self.cap_tokens}, {len(self.prompts)} prompts)"
        )


def shown_tokens(text: str, family: str) -> int:
    """What a summary costs in a request, estimated."""
    return estimate_tokens(text, family) + _FRAMED


def plan_of(wanted: Wanted, known: MutableMapping[int, Part] | None = None) -> Plan | None:
    """A plan, made at once; None: there is nothing to gain. See `planning`."""
    return at_once(planning(wanted, known))


def planning(wanted: Wanted, known: MutableMapping[int, Part] | None = None) -> Generator[None, None, Plan | None]:
    """Make a plan. It yields at least after every frame, so that the work can be cut into slices.

    Args:
        wanted: what it is made from.
        known: what is known of frames by their ids; what is not is found and put there. None: nothing is kept.

    Returns:
        The plan; None: there is nothing to gain. A plan saves 2,000 tokens or a tenth of the request at least.
    """
    frames = (*wanted.lent, *wanted.frames)
    chosen = range_of(frames, wanted.units, tail_tokens(wanted.window), wanted.pinned)
    if chosen is None or chosen.covered_frame < wanted.frames[0].id:
        return None
    draft = _Draft(wanted, chosen)
    if draft.most_tokens < LEAST_TOKENS:
        return None
    yield from draft.read({} if known is None else known)
    return (yield from draft.plan())


class _Draft:
    """A plan in the making."""

    def __init__(self, wanted: Wanted, chosen: Range) -> None:
        """Choose what the summary speaks for, and how long it may be."""
        self.wanted = wanted
        self.chosen = chosen
        kept = frozenset(chosen.kept)
        covered = [frame for frame in wanted.frames if frame.id <= chosen.covered_frame]
        self.frames = [frame for frame in (*wanted.lent, *covered) if frame.id not in kept]
        self.beside = [frame for frame in (*wanted.lent, *covered) if frame.id in kept]
        previous = wanted.previous
        earlier = 0 if previous is None else shown_tokens(previous.text, wanted.family)
        self.range_tokens = chosen.tokens + earlier
        shown = sum(unit.cost for unit in wanted.units if unit.frames)
        self.tokens_before = wanted.fixed_tokens + shown + earlier
        self.parts: list[Part] = []
        self.parts_beside: list[Part] = []

    @property
    def most_tokens(self) -> int:
        """How long a summary can be that is at most half of what it stands for and still saves enough [tokens]."""
        if not self.frames:
            return 0
        gain = min(GAIN_TOKENS, self.tokens_before // GAIN_SHARE)
        return min(self.range_tokens // 2, self.range_tokens - gain - _FRAMED)

    def read(self, known: MutableMapping[int, Part]) -> Iterator[None]:
        """Find what the frames say."""
        markers = markers_with(self.wanted.extra_markers)
        for frames, parts in ((self.frames, self.parts), (self.beside, self.parts_beside)):
            for frame in frames:
                part = known.get(frame.id)
                if part is None:
                    part = known[frame.id] = part_of(frame, markers)
                    yield
                parts.append(part)

    def plan(self) -> Generator[None, None, Plan | None]:
        """The plan; None: what has to be kept is too much."""
        wanted, most = self.wanted, self.most_tokens
        cap = min(most, CAP_TOKENS, wanted.window // CAP_SHARE)
        facts = self._facts(cap)
        yield
        needed = estimate_tokens(compose(facts, cap_tokens=0, family=wanted.family), wanted.family)
        cap = min(most, max(cap, LEAST_TOKENS, needed + needed // _SLACK))
        source = self._source()
        yield
        extract = self._extract(facts, source, cap)
        if extract is None:
            return None
        yield
        brief = self._brief(facts, cap)
        prompts = yield from prompts_of(brief, self._earlier, self._said())
        return self._made(brief, prompts, source, extract)

    def _extract(self, facts: Facts, source: Source, cap: int) -> str | None:
        """The fullest summary without a model that is accepted; None: not even the shortest is."""
        family = self.wanted.family
        for text in extracts(facts, self._earlier, self.frames, cap, family):
            if evaluate(text, facts, source, cap_tokens=cap, family=family).ok:
                return text
        return None

    def _brief(self, facts: Facts, cap: int) -> Brief:
        wanted = self.wanted
        window = wanted.window if wanted.summarizer_window is None else wanted.summarizer_window
        return Brief(facts, cap, cap + cap // _MORE, window, wanted.family, wanted.instructions)

    def _made(self, brief: Brief, prompts: tuple[str, ...], source: Source, extract: str) -> Plan:
        wanted, chosen = self.wanted, self.chosen
        return Plan(
            session=wanted.session,
            head=wanted.frames[-1].id,
            generation=wanted.generation,
            first_frame=wanted.frames[0].id,
            covered_frame=chosen.covered_frame,
            kept=chosen.kept,
            hash=range_hash(self._earlier or "", (part.digest for part in self.parts)),
            tokens_before=self.tokens_before,
            range_tokens=self.range_tokens,
            cap_tokens=brief.cap_tokens,
            facts=brief.facts,
            prompts=prompts,
            max_tokens=brief.answer_tokens,
            brief=brief,
            source=source,
            extract=extract,
        )

    @property
    def _earlier(self) -> str | None:
        """The summary before; None: there is none."""
        return None if self.wanted.previous is None else self.wanted.previous.text

    def _facts(self, cap_tokens: int) -> Facts:
        wanted = self.wanted
        return merged(
            [part.facts for part in self.parts],
            None if wanted.previous is None else wanted.previous.facts,
            retracted=wanted.retracted,
            cap_tokens=cap_tokens,
            family=wanted.family,
        )

    def _source(self) -> Source:
        """What a summary may take words from: all that it stands for, and what is shown beside it."""
        wanted = self.wanted
        in_force = wanted.frames[-1].in_force
        texts = [] if wanted.previous is None else [wanted.previous.text]
        texts += [wanted.instructions] if wanted.instructions else []
        texts += [in_force.system] if in_force is not None else []
        said = (text for frame in (*self.frames, *self.beside) for text in texts_of(frame))
        return Source(
            known_in([part.facts for part in (*self.parts, *self.parts_beside)], texts),
            (*texts, *said),
            self.range_tokens,
            self.tokens_before,
            _Path(wanted.runs) if wanted.runs else frozenset(frame.id for frame in wanted.frames),
        )

    def _said(self) -> Iterator[tuple[int, Said]]:
        return ((frame.id, said) for frame in self.frames for said in said_in(frame))


class _Path(Container[int]):
    """The ids of a path."""

    def __init__(self, runs: Runs) -> None:
        """Hold its runs."""
        self._runs = runs

    def __contains__(self, item: object) -> bool:
        """Whether a frame is on it."""
        return type(item) is int and contains(self._runs, item)
