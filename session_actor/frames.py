"""Turns and frames: the immutable values that a session remembers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

import msgspec

from .blocks import NULL, Block, CallRef, Free, Text, thawed

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
"""Who speaks in a turn."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the provider charged for one reply, in tokens."""

    input_tokens: int = 0
    """Everything that was sent, the cached part included."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    """The part of `input_tokens` that came from the provider's cache."""
    cache_write_tokens: int = 0
    """The part of `input_tokens` that was written to the provider's cache."""
    reasoning_tokens: int = 0
    """The part of `output_tokens` that was reasoning."""
    raw: Free = NULL
    """The provider's own report: any value when given, JSON text in a frame; `raw_value` reads it."""

    @property
    def raw_value(self) -> object:
        """The provider's own report as a Python value, a fresh copy each time; None when there is none."""
        return thawed(self.raw)


class Turn(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One message of the conversation."""

    role: Role
    blocks: tuple[Block, ...] = ()
    usage: Usage | None = None
    model: str | None = None
    dialect: str | None = None
    stop_reason: str | None = None

    def __repr__(self) -> str:
        """Without the content."""
        return f"Turn({self.role!r}, {len(self.blocks)} blocks)"


class Tool(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool that the model may call."""

    name: str
    description: str = ""
    schema: Free = NULL
    """JSON schema of the arguments: any value when given, JSON text in a frame; `schema_value` reads it."""

    @property
    def schema_value(self) -> object:
        """The schema as a Python value, a fresh copy each time; None when there is none."""
        return thawed(self.schema)

    def __repr__(self) -> str:
        """Name only."""
        return f"Tool({self.name!r})"


class Instructions(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the model is told beside the conversation: complete, as in force from a frame on."""

    system: str = ""
    tools: tuple[Tool, ...] = ()
    model: str | None = None

    def __repr__(self) -> str:
        """Without the system prompt."""
        return f"Instructions({len(self.system)} characters, {len(self.tools)} tools, model={self.model!r})"


class Hold(msgspec.Struct, frozen=True, gc=False):
    """A call is held back, for example until a human approves it."""

    ref: CallRef
    reason: str


class OpenCall(msgspec.Struct, frozen=True, gc=False):
    """A call that still waits for its result, seen from one frame."""

    ref: CallRef
    held: str | None = None
    """The reason of its hold; None: not held."""


class PendingCall(msgspec.Struct, frozen=True, gc=False):
    """An open call with all that is needed to run it."""

    ref: CallRef
    id: str
    name: str
    arguments: str
    held: str | None = None
    """The reason of its hold; None: not held."""

    def __repr__(self) -> str:
        """Without the arguments."""
        return f"PendingCall({self.id!r}, {self.name!r}, held={self.held!r})"


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One immutable push.

    Frames name each other by id only. Objects linked to objects would be a chain that the garbage collector cannot be
    kept out of.
    """

    id: int
    """From 1, larger than every id before it in this session, never used again."""
    parent: int | None
    """The frame below; None: the first of its stack."""
    depth: int
    """How many frames its stack has, itself included."""
    at_us: int
    """When it was pushed: microseconds since the epoch, UTC. `timestamp` is the same as a datetime."""
    user_input: str = ""
    assistant_output: str = ""
    assumptions: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    given_turns: tuple[Turn, ...] | None = None
    """The turns as they were pushed. None: `user_input` and `assistant_output` are the turns (see `turns`)."""
    forked_from: int | None = None
    """The frame it was forked from; None: it was pushed on top of its parent."""
    pinned: bool = False
    instructions: Instructions | None = None
    """The instructions that this frame brought; None: it brought none."""
    holds: tuple[Hold, ...] = ()
    """The calls that this frame holds back."""
    in_force: Instructions | None = None
    """The instructions in force from here on: its own, else its parent's."""
    exchange: int | None = None
    """The newest frame with a user turn on its stack (maybe itself): where the current exchange began."""
    step: int | None = None
    """The newest frame with an assistant turn on its stack (maybe itself): where the current step began."""
    open_calls: tuple[OpenCall, ...] = ()
    """The calls on its stack that wait for a result."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The messages of this frame. Without `given_turns`: one for each of the two texts that is not empty."""
        if self.given_turns is not None:
            return self.given_turns
        made: list[Turn] = []
        if self.user_input:
            made.append(Turn("user", (Text(self.user_input),)))
        if self.assistant_output:
            made.append(Turn("assistant", (Text(self.assistant_output),)))
        return tuple(made)

    @property
    def timestamp(self) -> datetime:
        """When it was pushed, aware, UTC, exact to the microsecond."""
        return _EPOCH + timedelta(microseconds=self.at_us)

    def __repr__(self) -> str:
        """Ids and sizes only: the content may be private."""
        turns = "" if self.given_turns is None else f", {len(self.given_turns)} turns"
        return f"Frame(id={self.id}, parent={self.parent}, depth={self.depth}{turns})"
