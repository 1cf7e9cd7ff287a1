"""How plans are made: in steps, so that nothing else has to wait for long. Pure."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Final

from session_actor.state.runs import contains
from session_actor.tokens.estimate import estimate_tokens

from .constraints import markers_with
from .frame_facts import texts_of
from .gate import GAIN_SHARE, GAIN_TOKENS, LEAST_TOKENS, Gate, Source
from .headings import compose
from .known import knowing
from .merge import merging
from .naming import Names
from .plan import FRAMED_TOKENS, Basis, Plan, shown_tokens
from .prompts import Brief, listed, prompts_of
from .ranges import range_of, tail_tokens
from .slices import at_once
from .source import part_of, range_hash, said_in

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, MutableMapping

    from session_actor.state.runs import Runs

    from .facts import Facts
    from .plan import Wanted
    from .ranges import Range
    from .source import Part, Said

CAP_TOKENS: Final = 8_000
"""No summary is longer, unless what it has to keep is: a longer one is read by no model with the same care …"""

CAP_SHARE: Final = 10
"""… and none takes more than a tenth of the window: with the tail it is a good third, and the rest is free again."""

_MORE: Final = 4
"""A model may write a fourth more than the cap: what is a little too long is refused with a reason, not broken off."""

_SLACK: Final = 4
"""Where what has to be kept takes up the cap, there is a fourth more than that."""


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
    if not wanted.frames:
        return None
    frames = (*wanted.lent, *wanted.frames)
    chosen = range_of(frames, wanted.units, tail_tokens(wanted.window), wanted.pinned)
    if chosen is None or chosen.covered_frame < wanted.frames[0].id:
        return None
    yield
    draft = _Draft(wanted, chosen)
    if draft.most_tokens < LEAST_TOKENS:
        return None
    yield
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
        self.texts: list[str] = []

    @property
    def most_tokens(self) -> int:
        """How long a summary can be that is at most half of what it stands for and still saves enough [tokens]."""
        if not self.frames:
            return 0
        gain = min(GAIN_TOKENS, self.tokens_before // GAIN_SHARE)
        return min(self.range_tokens // 2, self.range_tokens - gain - FRAMED_TOKENS)

    def read(self, known: MutableMapping[int, Part]) -> Iterator[None]:
        """Find what the frames say."""
        markers, family = markers_with(self.wanted.extra_markers), self.wanted.family
        for frames, parts in ((self.frames, self.parts), (self.beside, self.parts_beside)):
            for frame in frames:
                part = known.get(frame.id)
                if part is None or part.family != family:
                    part = known[frame.id] = part_of(frame, family, markers)
                parts.append(part)
                self.texts += texts_of(frame)
                yield

    def plan(self) -> Generator[None, None, Plan | None]:
        """The plan; None: what has to be kept is too much."""
        wanted, most = self.wanted, self.most_tokens
        cap = min(most, CAP_TOKENS, wanted.window // CAP_SHARE)
        facts = yield from self._facts(cap)
        yield
        needed = estimate_tokens(compose(facts, cap_tokens=0, family=wanted.family), wanted.family)
        if needed > most:
            return None
        cap = min(most, max(cap, LEAST_TOKENS, needed + needed // _SLACK))
        yield
        source = yield from self._source()
        yield
        names = Names(source.known, source.texts, facts)
        yield
        gate = Gate(facts, source, cap_tokens=cap, family=wanted.family, names=names, needed_tokens=needed)
        yield
        window = wanted.window if wanted.summarizer_window is None else wanted.summarizer_window
        lines = listed(facts, wanted.family)
        brief = Brief(facts, cap, cap + cap // _MORE, window, wanted.family, lines, wanted.instructions)
        yield
        prompts = yield from prompts_of(brief, self._earlier, self._said())
        return self._made(prompts, Basis(brief, gate, tuple(self.frames), self._earlier))

    def _made(self, prompts: tuple[str, ...], basis: Basis) -> Plan:
        wanted, chosen, brief = self.wanted, self.chosen, basis.brief
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
            basis=basis,
        )

    @property
    def _earlier(self) -> str | None:
        """The summary before; None: there is none."""
        return None if self.wanted.previous is None else self.wanted.previous.text

    def _facts(self, cap_tokens: int) -> Generator[None, None, Facts]:
        wanted = self.wanted
        return merging(
            [part.facts for part in self.parts],
            None if wanted.previous is None else wanted.previous.facts,
            retracted=wanted.retracted,
            cap_tokens=cap_tokens,
            family=wanted.family,
        )

    def _source(self) -> Generator[None, None, Source]:
        """What a summary may take words from: all that it stands for, and what is shown beside it."""
        wanted = self.wanted
        in_force = wanted.frames[-1].in_force
        texts = [] if wanted.previous is None else [wanted.previous.text]
        texts += [wanted.instructions] if wanted.instructions else []
        texts += [in_force.system] if in_force is not None else []
        known = yield from knowing([part.facts for part in (*self.parts, *self.parts_beside)], texts)
        return Source(
            known,
            (*texts, *self.texts),
            self.range_tokens,
            self.tokens_before,
            _Path(wanted.runs) if wanted.runs else frozenset(frame.id for frame in wanted.frames),
        )

    def _said(self) -> Iterator[tuple[int, Said, int]]:
        for frame, part in zip(self.frames, self.parts, strict=True):
            for said, tokens in zip(said_in(frame), part.tokens, strict=True):
                yield frame.id, said, tokens


class _Path(Container[int]):
    """The ids of a path."""

    def __init__(self, runs: Runs) -> None:
        """Hold its runs."""
        self._runs = runs

    def __contains__(self, item: object) -> bool:
        """Whether a frame is on it."""
        return type(item) is int and contains(self._runs, item)
