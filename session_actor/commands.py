"""The public messages of a session. `await session.ref.call(Push(…))` is what `await session.push(…)` does.

Every command has these keyword fields:
`on`: the branch that it is for, as `session.on(branch)` sets it; None: the session's own head.
`durability`: the level at which the reply comes; None: the service's default.
`key`: makes a retry safe; None: no key.
`expect_head`: the id of the frame that must be the head, 0 for the empty stack, else `HeadMoved`; None: not checked.
Every refusal is a `Refused`, and then nothing was changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from session_actor.supervisors.messages import Call

from .blocks import Block, CallRef, Native, ToolCall
from .compaction.overlays import Compaction
from .frames import Frame, Tool, Turn, Usage
from .given.plain import shown
from .given.private import as_repr
from .requests.request import Request

if TYPE_CHECKING:
    from .compaction.judged import Judged  # noqa: TC004 - the fields are never decoded, and the modules are heavy
    from .compaction.plan import Plan  # noqa: TC004 - the same

How: TypeAlias = Literal["read", "modified"]
"""What was done to an artifact."""

Unit: TypeAlias = Literal["frame", "step", "exchange"]
"""What `Pop` counts."""

Content: TypeAlias = str | Sequence[str | Block]
"""A text, or blocks; a str among blocks is a `Text`."""

Target: TypeAlias = int | str | Frame
"""A frame or its id (0: the empty stack below the first frame), or the name of a branch or checkpoint."""


PushFields: TypeAlias = "tuple[str, str, Sequence[str], Sequence[str], Sequence[Turn] | None, bool]"
"""The fields of `Push`, in their order."""

AssistantFields: TypeAlias = """tuple[
    Content, Sequence[ToolCall], Usage | None, str | None, str | None, str | None, Sequence[str], Sequence[str]
]"""
"""Those of `AddAssistant`."""

ForkFields: TypeAlias = """tuple[
    Target | UnsetType, str | None, str, str, Sequence[str], Sequence[str], Sequence[Turn] | None, bool, bool
]"""
"""Those of `Fork`."""


class Command(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The fields that every command has."""

    on: str | None = None
    durability: str | None = None
    key: str | None = None
    expect_head: int | None = None

    def __repr__(self) -> str:
        """Without the arguments: they may be private."""
        return f"{type(self).__name__}(on={shown(self.on)}, key={shown(self.key)})"

    __rich_repr__ = as_repr


class Push(Command, Call[Frame], frozen=True, gc=False):
    """Push a frame; the reply is the frame.

    Without `turns` the two texts become a user and an assistant turn; with them (even none) the texts only annotate.
    """

    user_input: str = ""
    assistant_output: str = ""
    assumptions: Sequence[str] = ()
    decisions: Sequence[str] = ()
    turns: Sequence[Turn] | None = None
    pinned: bool = False


class AddUser(Command, Call[Frame], frozen=True, gc=False):
    """Push a frame with one user turn; the reply is the frame. An empty content makes a turn without blocks."""

    content: Content


class AddAssistant(Command, Call[Frame], frozen=True, gc=False):
    """Push a frame with one assistant turn: the content, then the tool calls; the reply is the frame."""

    content: Content = ""
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage | None = None
    model: str | None = None
    dialect: str | None = None
    stop_reason: str | None = None
    assumptions: Sequence[str] = ()
    decisions: Sequence[str] = ()


class AddResponse(Command, Call[Frame], frozen=True, gc=False):
    """Push a frame with the reply of a provider; the reply is the frame.

    Refused: `InvalidArgument` for what is no assistant turn, or a request that the session has no record of.
    """

    reply: Turn
    """An assistant turn; `turn_of` makes it of a provider's reply."""
    request: int | None = None
    """The `seq` of the request that it replies to; None: not said."""
    assumptions: Sequence[str] = ()
    decisions: Sequence[str] = ()


class AddReference(Command, Call[Frame], frozen=True, gc=False):
    """Push a frame with a user turn of one `Reference`: text that is not trusted; the reply is the frame.

    Refused: `InvalidArgument` for an empty text.
    """

    text: str
    source: str | None = None


class NoteArtifact(Command, Call[Frame], frozen=True, gc=False):
    """Push a frame that notes a file, or another thing, as read or modified; the reply is the frame.

    Refused: `InvalidArgument` for an empty path, one over 4,096 characters, or another `how`.
    """

    path: str
    how: How = "read"


class AddToolResult(Command, Call[Frame], frozen=True, gc=False):
    """Push a frame with the result of one tool call; the reply is the frame.

    The same result again gives the same frame. Refused: `CallUnknown`, `CallAmbiguous`, `CallAlreadyAnswered`.
    """

    call: str | CallRef
    content: Content = ""
    is_error: bool = False


class HoldCall(Command, Call[Frame], frozen=True, gc=False):
    """Push a frame that holds an open call back, for example until a human approves it; the reply is the frame.

    A held call stays open over later turns until its result comes. Refused: as `AddToolResult`.
    """

    call: str | CallRef
    reason: str = "approval"


class Configure(Command, Call[Frame], frozen=True, gc=False):
    """Push a frame with new instructions; the reply is the frame. None: as before. An empty value: none."""

    system: str | None = None
    tools: Sequence[Tool | Native] | None = None
    model: str | None = None


class Pop(Command, Call[list[Frame]], frozen=True, gc=False):
    """Take the newest `n` frames, steps or exchanges off the stack; the reply is their frames, newest first.

    Fewer when there are fewer, `[]` when there is none. Whatever lies above the oldest of them goes with it. They stay
    readable by id, and live where another branch or a checkpoint holds them.
    """

    n: int = 1
    unit: Unit = "frame"


class Goto(Command, Call[Frame | None], frozen=True, gc=False):
    """Move the session's head; the reply is the frame there, None on an empty branch and at 0.

    A branch attaches: what is pushed next moves it. A frame or a checkpoint detaches, and so does 0, the empty stack: a
    push there makes a new branch.
    Refused: `FrameUnknown`, `NameUnknown`; with `on` (a handle of one branch stays on it).
    """

    target: Target


class Fork(Command, Call[Frame | None], frozen=True, gc=False):
    """Make a branch at a frame and go there; with any push field a new frame on it comes first.

    The reply is the new frame, or the frame that the branch stands on; None: an empty branch was made, at 0. `branch`
    None: `b<id of that frame>`. The old branch stays where it was. With `on`, or `attach=False`, the session's own head
    stays, too. Refused: `FrameUnknown`, `NameUnknown`, `NameTaken`; `EmptyStack` for a head or branch without a frame.
    """

    frame: Target | UnsetType = UNSET
    """0: the empty stack; the new frame is then the first of its own. Left out: the head. None is refused."""
    branch: str | None = None
    user_input: str = ""
    assistant_output: str = ""
    assumptions: Sequence[str] = ()
    decisions: Sequence[str] = ()
    turns: Sequence[Turn] | None = None
    pinned: bool = False
    attach: bool = True


class Checkpoint(Command, Call[Frame], frozen=True, gc=False):
    """Name a frame for ever; the reply is the frame.

    Refused: `NameTaken`, `EmptyStack`, `FrameUnknown`, `NameUnknown`.
    """

    name: str
    frame: Target | UnsetType = UNSET
    """Left out: the head. None is refused."""


class RenameBranch(Command, Call[None], frozen=True, gc=False):
    """Give a branch another name. Refused: `BranchUnknown`, `NameTaken`."""

    name: str
    new: str


class RenameCheckpoint(Command, Call[None], frozen=True, gc=False):
    """Give a checkpoint another name. Refused: `CheckpointUnknown`, `NameTaken`."""

    name: str
    new: str


class DeleteBranch(Command, Call[None], frozen=True, gc=False):
    """Forget a branch; its frames stay readable by id. Refused: `BranchUnknown`, `BranchAttached`."""

    name: str


class DeleteCheckpoint(Command, Call[None], frozen=True, gc=False):
    """Forget a checkpoint; its frame stays readable by id. Refused: `CheckpointUnknown`."""

    name: str


class End(Command, Call[None], frozen=True, gc=False):
    """End the session: from then on it can only be read."""

    reason: str = "done"


class BuildRequest(Command, Call[Request], frozen=True, gc=False):
    """Build the request for the next reply; the reply is the `Request`, and that it was given out is recorded.

    Refused: `NothingToSend`, `ContextOverflow`, `InvalidArgument`, `RequestForgotten`. The fields are the arguments of
    `Session.build_request`.
    """

    dialect: str
    model: str | None = None
    """None: that of the instructions."""
    max_output_tokens: int | None = None
    """None: what is reserved for the answer."""
    extra: Mapping[str, Any] | None = None
    """None: nothing."""
    ephemeral: Content | None = None
    """None: nothing."""


class CommitCompaction(Command, Call[Compaction], frozen=True, gc=False):
    """Let a summary stand for what a plan covers; the reply is the `Compaction`.

    It is judged again here, unless `judged` is of this very plan and text. Refused: `SummaryRejected`, `StalePlan`,
    `PlanUsed`, `InvalidArgument`.
    """

    plan: Plan
    text: str
    usage: Usage | None = None
    """What the provider charged for it; None: not known."""
    stop_reason: str | None = "end"
    """Why the model stopped, in its provider's words; None: not known."""
    judged: Judged | None = None
    """What the gate said before, to save time; None: it is asked."""


class Uncompact(Command, Call[None], frozen=True, gc=False):
    """Take a compaction back, on all branches: what it stood for is shown again. Refused: `CompactionUnknown`."""

    generation: int


class Pin(Command, Call[Frame], frozen=True, gc=False):
    """Keep a frame shown, whatever is left out, or no longer; the reply is the frame.

    Refused: `FrameUnknown`, `NameUnknown`, `EmptyStack`, `InvalidArgument`.
    """

    frame: Target
    pinned: bool = True


class Retract(Command, Call[Frame], frozen=True, gc=False):
    """Push a frame that takes an assumption back; the reply is the frame.

    Refused: `AssumptionUnknown` when no frame of the path states it, or it was taken back already.
    """

    assumption: str
    note: str | None = None
    """What is right instead, or why it is wrong; None: not said."""
    stated: int | None = None
    """A frame that states it, to save the search; None: it is searched for."""


class RequestFailed(Command, Call[bool], frozen=True, gc=False):
    """Note that a provider refused a request; the reply says whether the next one will be shorter for it.

    `Session.request_failed` makes one from what the provider said. Refused: `InvalidArgument` for a request that is
    none of the newest 32.
    """

    request: int
    """The `seq` of the request."""
    too_long: bool = True
    """Whether it was refused for its length."""
    tokens: int | None = None
    """How long it was, as the provider counted [tokens]; None: it did not say."""
    limit: int | None = None
    """What the provider takes at most [tokens]; None: it did not say."""
    with_output: bool = True
    """Whether that is input and output together."""
