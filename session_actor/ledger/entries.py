"""Entries: the ledger after all repairs. A renderer turns them into a dialect's messages and decides nothing more.

A CHUNK is what is rendered and counted at once: one assistant entry and all up to the next one; the first chunk of a
view is what comes before its first assistant entry. No rule reaches over the border of a chunk, so a finished chunk is
rendered and counted once.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from session_actor.blocks import CallRef, Document, Image, Native, Text, Thinking, ToolCall
from session_actor.dialects import Dialect
from session_actor.requests.request import Note

from .held import Held

Why: TypeAlias = Literal["interrupted", "held", "stub", "cut"]
"""Why a result does not show what the tool said: no result came; the call is held for approval; it is old and only a
line of it is left; it is long and its middle is left out."""


class Target(msgspec.Struct, frozen=True):
    """Whom a request is for, as far as it decides what is shown. Equal targets give equal entries."""

    dialect: Dialect
    model: str
    family: str
    """The family of the model's tokenizer, as `estimate_tokens` takes it."""
    result_cap_tokens: int
    """A result estimated longer shows its head (70%) and its tail (30%)."""
    sees_images: bool = True
    sees_documents: bool = True
    short_call_ids: bool = False
    """Whether the ids of calls are nine letters and digits."""


class UserEntry(msgspec.Struct, frozen=True, gc=False):
    """What the user's side says; never empty. References are framed text by now."""

    blocks: tuple[Text | Image | Document | Native, ...]
    """A `Native` here is a content block of the target's dialect, such as a recording: it is sent as it came."""


class AssistantEntry(msgspec.Struct, frozen=True, gc=False):
    """What the model said; never empty. The ids of its calls are those that go on the wire."""

    blocks: tuple[Text | Thinking | ToolCall | Native, ...]
    """A `Thinking` or `Native` here is one of the target's own: it is sent as it came. So is every `signature`; a
    `Text` that has one may be empty, but never stands alone. The arguments of a call are the text of a JSON object."""


class ShownResult(msgspec.Struct, frozen=True, gc=False):
    """One result as it is shown."""

    ref: CallRef
    call_id: str
    """As on the wire: the id of its call in the entry before. `""` for a call of Gemini's that came without an id."""
    name: str
    """The tool."""
    blocks: tuple[Text | Image | Document | Native, ...]
    """Never empty: a result that says nothing shows a text that says so. Texts only for `openai_chat` and `gemini`, and
    for an error of `anthropic`: what else it holds follows in the user entry. A `Native` is the dialect's own."""
    is_error: bool = False
    why: Why | None = None
    """Why it is not what the tool said; None: it is."""
    toolset: str | None = None
    """Whose member the tool is, of `anthropic`; None: of none."""


class ResultsEntry(msgspec.Struct, frozen=True, gc=False):
    """The results of all calls of the assistant entry before, one each, in the order of the calls."""

    results: tuple[ShownResult, ...]


Entry: TypeAlias = UserEntry | AssistantEntry | ResultsEntry
"""A view starts with a `UserEntry`; a `ResultsEntry` follows exactly the assistant entries with calls; no two entries
of one type are neighbours. So a chunk is [assistant, results?, user?], and the first one is [user]."""


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """A part of a view that is rendered, counted and hashed at once (see above). Equal for equal frames and target."""

    entries: tuple[Entry, ...]
    """[user] for the first chunk of a view, [assistant, results?, user?] for all others."""
    first_frame: int
    """The frame that its first turn stands in; 0 for a chunk that holds nothing of a frame."""
    last_frame: int
    """The newest frame that a turn of it stands in. Where a frame has many turns, chunks may share it."""
    user_frame: int | None = None
    """The frame of the first user or system turn in it: where the next exchange begins. None: there is none."""
    omitted: tuple[Note, ...] = ()
    added: tuple[Note, ...] = ()
    paused: bool = False
    """Whether it ends with an assistant turn that the provider paused: it is sent as it is, without a user turn after
    it, and the model goes on. The same where the provider waits for our results alone, to go on with calls of its own.
    """
    first_turn: int = 0
    """The number of its first turn in `first_frame`."""
    user_turn: int = 0
    """The number of that turn in `user_frame`."""
    media: tuple[Held, ...] = ()
    """The images and other media that it shows."""
