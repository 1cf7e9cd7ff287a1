"""What one frame has for a summary. It follows from the frame alone, so it can be kept for as long as the frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

import msgspec

from session_actor.blocks import Native, Reference, Text, ToolCall, ToolResult
from session_actor.given.private import as_repr
from session_actor.ledger.natives import known_of

from .constraints import ENGLISH, rules_in
from .identifiers import found_in, measures_in
from .languages import Tally, summed, tally
from .secrets import redacted
from .texts import QUESTION_MARKS, clipped, folded, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from session_actor.blocks import Block
    from session_actor.frames import Frame

    from .constraints import Markers

USER, ASSISTANT, ARGUMENTS, RESULTS = range(4)
"""Who said a name: the smaller, the more it matters."""

SAID_CHARACTERS: Final = 400
"""As much of what the user said is kept."""

_QUESTIONS_KEPT: Final = 4
_QUESTION_CHARACTERS: Final = 300
_DEEPEST: Final = 32
_RESULT_CHARACTERS: Final = 8_192
"""Names are looked for in so much of a result."""


class Ranked(NamedTuple):
    """An exact name, and who said it."""

    text: str
    kind: str
    rank: int


class FrameFacts(msgspec.Struct, frozen=True, gc=False):
    """What one frame has for a summary."""

    frame: int
    rules: tuple[str, ...]
    """What the user, or anybody in a pinned frame, laid down."""
    decisions: tuple[str, ...]
    assumptions: tuple[str, ...]
    artifacts: tuple[tuple[str, str], ...]
    """Path, and how it was used."""
    names: tuple[Ranked, ...]
    numbers: frozenset[str]
    said: str
    """The beginning of what the user said; `""`: nothing."""
    questions: tuple[str, ...]
    """What the user asked last; of a text without a question its beginning."""
    ends: Literal["asked", "answered", ""]
    """Whether a question of the user, or an answer to it, came last; `""`: neither came."""
    tally: Tally

    def __repr__(self) -> str:
        """Without the content."""
        return f"FrameFacts(frame={self.frame}, {len(self.rules)} rules, {len(self.names)} names)"

    __rich_repr__ = as_repr


class _Said(NamedTuple):
    text: str
    rank: int


def facts_of(frame: Frame, *, pinned: bool | None = None, markers: Markers = ENGLISH) -> FrameFacts:
    """Find what a frame has for a summary; costs O(its length), and fails for no frame.

    Args:
        frame: any frame.
        pinned: whether it counts as pinned: what the assistant says in it can then be a rule, too. None: as it was
            pushed.
        markers: the words that make a sentence a rule.
    """
    parts = list(_parts(frame))
    user = [part.text for part in parts if part.rank == USER]
    spoken = [part.text for part in parts if part.rank <= ASSISTANT]
    laws = spoken if (frame.pinned if pinned is None else pinned) else user
    names, numbers = _names(parts, frame)
    said = _beginning(user) if user else ""
    return FrameFacts(
        frame=frame.id,
        rules=tuple(dict.fromkeys(rule for text in laws for rule in rules_in(text, markers))),
        decisions=_kept(frame.decisions),
        assumptions=_kept(frame.assumptions),
        artifacts=tuple([(folded(artifact.path), artifact.how) for artifact in frame.artifacts]),
        names=names,
        numbers=numbers,
        said=said,
        questions=_questions(user, said) if user else (),
        ends=_end(frame),
        tally=summed(map(tally, spoken)) if spoken else (),
    )


def texts_of(frame: Frame) -> tuple[str, ...]:
    """All that a frame says, results and notes included, reasoning and media not: a summary may take words from it."""
    notes = (*frame.assumptions, *frame.decisions, *(artifact.path for artifact in frame.artifacts))
    return (*(part.text for part in _parts(frame)), *notes)


def spoken_texts(frame: Frame) -> tuple[str, ...]:
    """What the user and the assistant say in a frame."""
    return tuple(part.text for part in _parts(frame) if part.rank <= ASSISTANT)


def _parts(frame: Frame) -> Iterator[_Said]:
    for turn in frame.turns:
        for block in turn.blocks:
            said = _said(block, turn.role)
            if said.text:
                yield said
    if frame.given_turns is not None:
        yield from (_Said(text, ASSISTANT) for text in (frame.user_input, frame.assistant_output) if text)


def _said(block: Block, role: str) -> _Said:
    if type(block) is Text:
        return _Said(block.text, {"user": USER, "assistant": ASSISTANT}.get(role, RESULTS))
    if type(block) is ToolCall:
        return _Said(_plain_arguments(block.arguments), ARGUMENTS)
    if type(block) is ToolResult:
        return _Said("\n".join([part.text for part in block.blocks if type(part) is Text]), RESULTS)
    if type(block) is Reference:
        return _Said(block.text, RESULTS)
    if type(block) is Native and role == "assistant":
        return _Said(known_of(block, "assistant").text or "", ASSISTANT)
    return _Said("", RESULTS)


def _plain_arguments(arguments: str) -> str:
    """The texts in a call's arguments; of what is no JSON all of it."""
    try:
        value = msgspec.json.decode(arguments.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return arguments
    return "\n".join(_leaves(value, 0))


def _leaves(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, dict) and depth < _DEEPEST:
        fields = cast("dict[str, Any]", value)
        yield from fields
        for item in fields.values():
            yield from _leaves(item, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < _DEEPEST:
        for item in cast("Iterable[Any]", value):
            yield from _leaves(item, depth + 1)
    else:
        yield str(cast("object", value))


def _names(parts: list[_Said], frame: Frame) -> tuple[tuple[Ranked, ...], frozenset[str]]:
    found: dict[str, Ranked] = {}
    numbers: set[str] = set()
    noted = [_Said(text, ASSISTANT) for text in (*frame.assumptions, *frame.decisions)]
    paths = [_Said(artifact.path, RESULTS) for artifact in frame.artifacts]
    for part in sorted((*parts, *noted, *paths), key=lambda one: one.rank):
        names = found_in(part.text if part.rank <= ASSISTANT else _ends(part.text))
        for text, kind in names.names:
            found.setdefault(text, Ranked(text, kind, part.rank))
        if part.rank <= ASSISTANT:
            for text, kind in measures_in(part.text):
                found.setdefault(text, Ranked(text, kind, part.rank))
        numbers |= names.numbers
    return tuple(found.values()), frozenset(numbers)


def _ends(text: str) -> str:
    """The head and the tail of a long result, whole words: more of it is shown to no summariser."""
    if len(text) <= _RESULT_CHARACTERS:
        return text
    head, tail = text[: _RESULT_CHARACTERS * 7 // 10], text[-_RESULT_CHARACTERS * 3 // 10 :]
    return f"{head.rsplit(None, 1)[0]}\n{tail.split(None, 1)[-1]}"


def _kept(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(None, (redacted(folded(text)) for text in texts)))


def _beginning(texts: list[str]) -> str:
    """The beginning of what was said; it is cut before secrets are looked for, and shorter after, so none is halved."""
    return clipped(redacted(folded(" ".join(text[: 4 * SAID_CHARACTERS] for text in texts[:4]))), SAID_CHARACTERS)


def _questions(texts: list[str], said: str) -> tuple[str, ...]:
    """The last questions in what was said; else its beginning."""
    found = [
        clipped(redacted(sentence[: 4 * _QUESTION_CHARACTERS]), _QUESTION_CHARACTERS)
        for text in texts
        for sentence in sentences(text)
        if sentence.endswith(QUESTION_MARKS)
    ]
    if not found:
        found = list(filter(None, [clipped(said, _QUESTION_CHARACTERS)]))
    return tuple(found[-_QUESTIONS_KEPT:])


def _end(frame: Frame) -> Literal["asked", "answered", ""]:
    """What came last in a frame: words of the user, or an answer without calls."""
    for turn in reversed(frame.turns):
        said = [block for block in turn.blocks if type(block) in {Text, Native} or turn.role == "user"]
        if turn.role == "user" and said:
            return "asked"
        if turn.role == "assistant" and said and not any(type(block) is ToolCall for block in turn.blocks):
            return "answered"
    return ""
