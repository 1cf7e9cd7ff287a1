"""Results as they are shown: whole, with their middle left out, as one line, or as a placeholder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.blocks import Document, Image, Native, Text
from session_actor.requests.texts import clean

from . import notes as words
from . import texts
from .entries import ShownResult
from .long import shortened
from .media import shown_media, shown_native
from .natives import known_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.blocks import ResultBlock, ToolResult

    from .assistant import Call
    from .entries import Target, Why
    from .held import Media
    from .notes import Notes

_WORTH_A_STUB: Final = 200
"""Shorter results [characters] stay: the line in their place would save nothing."""


class Read(NamedTuple):
    """What a result shows, wherever that is."""

    blocks: list[Text | Image | Document | Native]
    why: Why | None = None


def read_result(  # noqa: PLR0917 - what decides of it
    result: ToolResult, name: str, frame: int, target: Target, notes: Notes, media: Media, *, old: bool
) -> Read:
    """What `result` in `frame` shows to the target; `old`: as one line, when that is shorter. `name`: of the tool."""
    kept: list[Text | Image | Document | Native] = []
    for block in result.blocks:
        shown = _block(block, frame, target, notes, media)
        if shown is not None:
            kept.append(shown)
    said = [block.text for block in kept if type(block) is Text]
    others = [block for block in kept if type(block) is not Text]
    if old and is_worth_a_stub(kept):
        notes.omit(words.STUB, frame)
        return Read([Text(texts.stub(name, sum(map(len, said)), len(others)))], "stub")
    text = "\n".join(said)
    short = shortened(text, target.result_cap_tokens, target.family)
    if short is None:
        return Read(kept)
    notes.omit(words.LONG, frame)
    return Read([Text(short), *others], "cut")


def is_worth_a_stub(blocks: Iterable[object]) -> bool:
    """Whether a result that shows these becomes one line when it is old."""
    long = 0
    for block in blocks:
        if type(block) is not Text:
            return True
        long += len(block.text)
    return long > _WORTH_A_STUB


def _block(
    block: ResultBlock, frame: int, target: Target, notes: Notes, media: Media
) -> Text | Image | Document | Native | None:
    if type(block) is Text:
        text = clean(block.text)
        if text is not block.text:
            notes.omit(words.SURROGATES, frame)
        return Text(text) if text.strip() else None
    if type(block) is Native:
        known = known_of(block, "result")
        if block.dialect == target.dialect and known.sendable:
            return shown_native(block, frame, notes, media)
        if known.text is not None:
            return Text(clean(known.text))
        notes.omit(words.NATIVE, frame)
        return None
    return shown_media(block, target, frame, notes, media) if isinstance(block, Image | Document) else None


def shown_result(  # noqa: PLR0917 - what decides of it
    result: ToolResult, call: Call, frame: int, target: Target, notes: Notes, media: Media, *, old: bool
) -> tuple[ShownResult, list[Text | Image | Document]]:
    """`result` in its place after its call, and what it holds that must stand in the user entry after it."""
    read = read_result(result, call.name, frame, target, notes, media, old=old)
    inside, after = read.blocks, list[Text | Image | Document]()
    if target.dialect in {"openai_chat", "gemini"} or (target.dialect == "anthropic" and result.is_error):
        inside = [block for block in read.blocks if type(block) is Text]
        after = media_of(read, frame, notes)
    if after:
        notes.add(words.MEDIA, frame)
        after.insert(0, Text(texts.media_label(call.name, call.call_id)))
    if not inside:
        if not after:
            notes.add(words.NOTHING, frame)
        inside = [Text(texts.ONLY_MEDIA if after else texts.NO_OUTPUT)]
    shown = ShownResult(call.ref, call.call_id, call.name, tuple(inside), result.is_error, read.why, call.toolset)
    return shown, after


def media_of(read: Read, frame: int, notes: Notes) -> list[Text | Image | Document]:
    """What of a result stands in a user entry beside its texts."""
    if any(type(block) is Native for block in read.blocks):
        notes.omit(words.NATIVE, frame)
    return [block for block in read.blocks if isinstance(block, Image | Document)]


def result_as_user(read: Read, title: str, frame: int, notes: Notes) -> list[Text | Image | Document]:
    """A result in a user entry, because its own place is not there any more; framed: a tool said it, not the user."""
    text = "\n".join([block.text for block in read.blocks if type(block) is Text])
    media = media_of(read, frame, notes)
    return [Text(f"{title}\n{texts.fenced('result', text or texts.NO_OUTPUT)}"), *media]


def placeholder(call: Call, held: str | None) -> ShownResult:
    """What stands in place of a result that is not there; `held`: why it is held back, None: it is not."""
    why: Why = "interrupted" if held is None else "held"
    text = Text(texts.INTERRUPTED if held is None else clean(texts.held(held)))
    return ShownResult(call.ref, call.call_id, call.name, (text,), held is None, why, call.toolset)
