"""What frames say, as a summary is made from it and as a plan remembers it. Pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from session_actor.blocks import Document, Image, Native, Reference, Text, ToolCall, ToolResult
from session_actor.ledger.natives import known_of
from session_actor.persistence.format.values import encode_record_data
from session_actor.requests.texts import clean
from session_actor.tokens.estimate import estimate_tokens

from .constraints import ENGLISH
from .frame_facts import FrameFacts, facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from session_actor.blocks import Block
    from session_actor.frames import Frame, Turn

    from .constraints import Markers

DIGEST_BYTES: Final = 16


_COUNTED: Final = 65_536
"""So many characters of a text are counted: no prompt shows as much."""


class Said(NamedTuple):
    """One thing that a frame says."""

    who: str
    """Who says it, or what it is: one line."""
    text: str
    is_bulk: bool = False
    """Whether it is what a tool got or gave, or a page: less of it is shown."""


class Part(msgspec.Struct, frozen=True, gc=False):
    """What a plan needs to know of one frame. It follows from the frame alone, and may be kept for later plans."""

    digest: bytes
    """Of the frame's id and all that it says."""
    facts: FrameFacts
    tokens: tuple[int, ...]
    """What each of the things that it says costs; of a very long one the beginning is counted."""
    family: str
    """Of the tokenizer that they were counted for."""


class _Content(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """All that a frame says: neither its place nor what follows from the frames below it."""

    id: int
    user_input: str
    assistant_output: str
    assumptions: tuple[str, ...]
    decisions: tuple[str, ...]
    given_turns: object
    artifacts: object


def part_of(frame: Frame, family: str, markers: Markers = ENGLISH) -> Part:
    """What a plan needs to know of a frame; costs O(its length). `family`: of the model's tokenizer."""
    tokens = tuple(estimate_tokens(said.text[:_COUNTED], family) for said in said_in(frame))
    return Part(digest_of(frame), facts_of(frame, pinned=False, markers=markers), tokens, family)


def digest_of(frame: Frame) -> bytes:
    """A hash of the frame's id and all that it says."""
    content = _Content(
        frame.id,
        frame.user_input,
        frame.assistant_output,
        frame.assumptions,
        frame.decisions,
        frame.given_turns,
        frame.artifacts,
    )
    return blake2b(encode_record_data(content), digest_size=DIGEST_BYTES).digest()


def said_in(frame: Frame) -> Iterator[Said]:
    """What a frame says, in its order; reasoning is no part of it, media are named only."""
    for turn in frame.turns:
        for block in turn.blocks:
            yield from _said(turn, block)
    yield from (Said("assumption", text) for text in frame.assumptions)
    yield from (Said("decision", text) for text in frame.decisions)
    yield from (Said("file", f"{artifact.how} {artifact.path}") for artifact in frame.artifacts)


def _said(turn: Turn, block: Block) -> Iterator[Said]:
    if isinstance(block, ToolCall):
        yield Said("assistant calls a tool", f"{block.name} {block.arguments}", is_bulk=True)
    elif isinstance(block, ToolResult):
        text = "\n".join(filter(None, map(_text, block.blocks)))
        yield Said("error of a tool" if block.is_error else "result of a tool", text, is_bulk=True)
    elif isinstance(block, Reference):
        yield Said("reference, not a message of the user", block.text, is_bulk=True)
    else:
        text = _text(block)
        if text:
            yield Said(turn.role, text)


def _text(block: Block) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Native):
        return known_of(block, "assistant").text or ""
    if isinstance(block, Image):
        return "[an image]"
    return "[a document]" if isinstance(block, Document) else ""


def range_hash(previous: str, digests: Iterable[bytes]) -> str:
    """The hash of a range, in hex: of the summary before it (`""`: none) and of its frames, in their order."""
    start = blake2b(clean(previous).encode(), digest_size=DIGEST_BYTES).digest()
    return blake2b(b"".join((start, *digests)), digest_size=DIGEST_BYTES).hexdigest()
