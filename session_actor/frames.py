"""Turns and frames: the immutable values that a session remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from .blocks import NULL, Block, CallRef, Free, Native, Text, thawed
from .given.plain import shown
from .given.private import as_repr
from .state.times import as_datetime

if TYPE_CHECKING:
    from datetime import datetime

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
"""Who speaks in a turn."""


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
    anchor_tokens: int | None = None
    """How long the context was when the model was last called for this reply; None: as long as `input_tokens` says.

    Where the provider runs tools of its own it calls the model several times, and `input_tokens` is the sum: no measure
    of the context.
    """

    @property
    def raw_value(self) -> object:
        """The provider's own report as a Python value, a fresh copy each time; None when there is none."""
        return thawed(self.raw)

    def __repr__(self) -> str:
        """Without the provider's own report."""
        counts = [(name, getattr(self, name)) for name in self.__struct_fields__ if name != "raw"]
        return f"Usage({', '.join(f'{name}={shown(count)}' for name, count in counts)})"

    __rich_repr__ = as_repr


class Turn(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One message of the conversation."""

    role: Role
    blocks: tuple[Block, ...] = ()
    """What it says, in order; none is allowed, also in a user turn."""
    usage: Usage | None = None
    """What the provider charged for it; None: unknown, or not said by a model."""
    model: str | None = None
    """The model that said it, as the provider names it."""
    dialect: str | None = None
    """The API that it came from, such as `anthropic`."""
    stop_reason: str | None = None
    """Why the model stopped, in the words of whoever added the turn, such as `end_turn`, `tool_use`, `aborted`."""
    asked: str | None = None
    """What the request that it answers calls the model, when `model` cannot tell that it is the same: the name of a
    deployment, or one of a gateway's own; None: nothing else."""

    @property
    def text(self) -> str:
        """The texts of its `Text` blocks, joined as they are; `""` when it has none."""
        return "".join([block.text for block in self.blocks if type(block) is Text])

    def __repr__(self) -> str:
        """Without the content."""
        return f"Turn({self.role!r}, {len(self.blocks)} blocks)"

    __rich_repr__ = as_repr


class Tool(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool that the model may call."""

    name: str
    """No two tools of one `Instructions` share it."""
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

    __rich_repr__ = as_repr


class Instructions(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the model is told beside the conversation: complete, as in force from a frame on."""

    system: str = ""
    """The system prompt; `""`: none."""
    tools: tuple[Tool, ...] = ()
    model: str | None = None
    """The model to ask; None: not said."""
    native_tools: tuple[Native, ...] = ()
    """Tools that a provider runs itself, as its API writes them: offered to that dialect only, before `tools`."""

    def __repr__(self) -> str:
        """Without the system prompt."""
        tools = len(self.tools) + len(self.native_tools)
        return f"Instructions({len(self.system)} characters, {tools} tools, model={self.model!r})"

    __rich_repr__ = as_repr


class Hold(msgspec.Struct, frozen=True, gc=False):
    """A call is held back, for example until a human approves it."""

    ref: CallRef
    reason: str
    """Any non-empty text of up to 512 characters, such as `approval`. A later hold of the same call replaces it."""


class Artifact(msgspec.Struct, frozen=True, gc=False):
    """A file or another thing that was read or changed in the course of the conversation."""

    path: str
    """What names it: any non-empty text of up to 4,096 characters, such as a path or a URL."""
    how: Literal["read", "modified"]


class Retraction(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An assumption that turned out to be wrong, taken back."""

    assumption: str
    """As it was stated."""
    note: str | None = None
    """What is right instead, or why it is wrong; None: not said."""

    def __repr__(self) -> str:
        """Without the content."""
        return "Retraction()"

    __rich_repr__ = as_repr


class OpenCall(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A call that still waits for its result, seen from one frame."""

    ref: CallRef
    held: str | None = None
    """The reason of its hold; None: not held."""


class PendingCall(msgspec.Struct, frozen=True, gc=False):
    """An open call with all that is needed to run it."""

    ref: CallRef
    """Names the call for ever; `add_tool_result` and `hold_call` take it."""
    id: str
    """The provider's id of the call, which providers may repeat."""
    name: str
    """The tool."""
    arguments: str
    """JSON text exactly as the model wrote it, complete or not."""
    held: str | None = None
    """The reason of its hold; None: not held."""

    def __repr__(self) -> str:
        """Without the arguments."""
        return f"PendingCall({self.id!r}, {self.name!r}, held={self.held!r})"

    __rich_repr__ = as_repr


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
    """What the user said; with `given_turns` only a summary beside them."""
    assistant_output: str = ""
    """What was answered; with `given_turns` only a summary beside them."""
    assumptions: tuple[str, ...] = ()
    """What was taken for granted."""
    decisions: tuple[str, ...] = ()
    """What was decided."""
    given_turns: tuple[Turn, ...] | None = None
    """The turns as they were pushed. None: `user_input` and `assistant_output` are the turns (see `turns`).

    A text that was added with nothing beside it (`add_user("Hi")`) is kept as those, too.
    """
    forked_from: int | None = None
    """The frame it was forked from; None: it was pushed on top of its parent."""
    pinned: bool = False
    """As it was pushed: whoever shortens the conversation is asked to keep this frame."""
    instructions: Instructions | None = None
    """The instructions that this frame brought; None: it brought none."""
    holds: tuple[Hold, ...] = ()
    """The calls that this frame holds back."""
    in_force: Instructions | None = None
    """The instructions in force from here on: its own, else its parent's."""
    exchange: int | None = None
    """The id of the newest frame with a user turn on its stack, maybe its own: where its exchange began.

    All frames of one exchange share it: the answer to a question is in those whose `exchange` is the question's id.
    None: no user turn yet.
    """
    step: int | None = None
    """The id of the newest frame with an assistant turn on its stack, maybe its own: where its step began.

    A step is an assistant turn and the results of its calls. A user turn above it ends the step (`exchange` is then
    larger than `step`). None: no assistant turn yet.
    """
    open_calls: tuple[OpenCall, ...] = ()
    """The calls on its stack that wait for a result."""
    configured: int | None = None
    """The id of the frame that brought the instructions in force, maybe its own. None: none are in force."""
    run_from: int = 0
    """From this id up to its own, without a gap, its stack has all ids; below it is that frame's `parent`."""
    artifacts: tuple[Artifact, ...] = ()
    """What this frame notes as read or modified."""
    spent: Usage | None = None
    """What the providers charged for all of its stack, itself included; without `raw`.

    None: not known, since it was recovered from records of a version that did not keep it.
    """
    retracted: Retraction | None = None
    """The assumption that this frame takes back."""

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
        return as_datetime(self.at_us)

    def __repr__(self) -> str:
        """Ids and sizes only: the content may be private."""
        turns = "" if self.given_turns is None else f", {len(self.given_turns)} turns"
        return f"Frame(id={self.id}, parent={self.parent}, depth={self.depth}{turns})"

    __rich_repr__ = as_repr
