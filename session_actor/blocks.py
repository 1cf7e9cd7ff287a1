"""Blocks: what a turn is made of. All are immutable values; the field `type` tells them apart in a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec

from session_actor.persistence.format import values

from .given.private import as_repr

if TYPE_CHECKING:
    Free: TypeAlias = Any
else:
    Free = msgspec.Raw
"""Any value that JSON can hold exactly. It is given as it is, and kept as its JSON text (`msgspec.Raw`)."""

NULL: Final = msgspec.Raw(b"null")
"""The free value None: one object, so that records leave it out."""


class CallRef(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Names one tool call for ever: providers repeat call ids, this never repeats within a session."""

    frame: int
    """The frame that holds the call."""
    index: int
    """Its place among the tool calls of that frame, from 0."""


class Text(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="text"):
    """Plain text."""

    text: str
    signature: str | None = None
    """What Gemini wants back with it unchanged, as base64 (a `thoughtSignature`); None: nothing."""
    phase: str | None = None
    """What a message of Responses is, which wants that back: `commentary` or `final_answer`; None: not said."""
    more: Free = NULL
    """What else its provider says of it, as a dict: where it comes from, such as the `annotations` of OpenAI and the
    `grounding_metadata` and `citation_metadata` of Gemini. `annotations` go back to Responses, which takes them. Any
    value when given, JSON text in a frame; `more_value` reads it."""

    @property
    def more_value(self) -> dict[str, Any]:
        """That as a Python value, a fresh copy each time; empty when there is none."""
        return _thawed_dict(self.more)

    def __repr__(self) -> str:
        """Without the text: it may be private."""
        return f"Text({len(self.text)} characters)"

    __rich_repr__ = as_repr


class Reference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="reference"):
    """Text that is not trusted, such as a web page: shown to the model as data whose instructions do not count.

    Only user turns hold references.
    """

    text: str
    source: str | None = None
    """Where it came from, as the model is told; None: not said."""

    def __repr__(self) -> str:
        """Without the text."""
        return f"Reference({len(self.text)} characters)"

    __rich_repr__ = as_repr


class Image(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="image", kw_only=True):
    """An image: exactly one of `data`, `url` (never fetched here) and `file_id` (of one provider's file store)."""

    data: bytes | None = None
    media_type: str | None = None
    """Such as `image/png`; needed with `data`."""
    url: str | None = None
    file_id: str | None = None
    dialect: str | None = None
    """Whose file store holds `file_id`."""

    def __repr__(self) -> str:
        """Without the content."""
        return f"Image({self.media_type})"

    __rich_repr__ = as_repr


class Document(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="document", kw_only=True):
    """A document such as a PDF: exactly one of `data`, `url` (never fetched here) and `file_id`."""

    data: bytes | None = None
    media_type: str | None = None
    """Such as `application/pdf`; needed with `data`."""
    url: str | None = None
    file_id: str | None = None
    dialect: str | None = None
    """Whose file store holds `file_id`."""
    name: str | None = None

    def __repr__(self) -> str:
        """Without the content."""
        return f"Document({self.media_type})"

    __rich_repr__ = as_repr


class ToolCall(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="tool_call"):
    """The model asks for a tool. Only assistant turns hold calls."""

    id: str
    name: str
    arguments: str = "{}"
    """The JSON text exactly as the model wrote it, complete or not. (A dict is accepted and written as JSON.)"""
    signature: str | None = None
    """What Gemini wants back with it unchanged, as base64 (a `thoughtSignature`), also where it speaks Chat
    Completions; None: nothing."""
    more: Free = NULL
    """What else its provider says of it, as a dict, such as the `toolset_name` of Anthropic and the `namespace` of
    Responses: sent back to the same dialect. Any value when given, JSON text in a frame; `more_value` reads it."""

    @property
    def more_value(self) -> dict[str, Any]:
        """That as a Python value, a fresh copy each time; empty when there is none."""
        return _thawed_dict(self.more)

    def __repr__(self) -> str:
        """Without the arguments."""
        return f"ToolCall({self.id!r}, {self.name!r})"

    __rich_repr__ = as_repr


class ToolResult(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="tool_result"):
    """What a tool answered. Only tool turns hold results."""

    call_id: str
    blocks: tuple[ResultBlock, ...] = ()
    is_error: bool = False
    ref: CallRef | None = None
    """Which call it answers. None when given: found by `call_id`; never None in a frame."""

    @property
    def text(self) -> str:
        """The texts of its `Text` blocks, joined as they are; `""` when it has none."""
        return "".join([block.text for block in self.blocks if type(block) is Text])

    def __repr__(self) -> str:
        """Without the content."""
        return f"ToolResult({self.call_id!r}, {len(self.blocks)} blocks, is_error={self.is_error})"

    __rich_repr__ = as_repr


class Thinking(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="thinking"):
    """The model's reasoning, with the signature that its provider wants back unchanged."""

    text: str
    signature: str | None = None
    field: str | None = None
    """The key of the message that it came under, of a server that speaks Chat Completions: `reasoning`; None: the usual
    one, `reasoning_content`. Each such server refuses the other."""

    def __repr__(self) -> str:
        """Without the text."""
        return f"Thinking({len(self.text)} characters)"

    __rich_repr__ = as_repr


class Native(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="native"):
    """A block kept verbatim as one provider gave it; it is only ever sent back to the same dialect."""

    dialect: str
    model: str | None
    raw: Free
    """The block: any value when given, its JSON text in a frame; `value` reads it."""

    @property
    def value(self) -> object:
        """The block as a Python value, a fresh copy each time."""
        return thawed(self.raw)

    def __repr__(self) -> str:
        """Without the content."""
        return f"Native({self.dialect!r}, {self.model!r})"

    __rich_repr__ = as_repr


ResultBlock: TypeAlias = Text | Image | Document | Native
"""A block that a result can hold."""

Block: TypeAlias = Text | Image | Document | ToolCall | ToolResult | Thinking | Native | Reference
"""Any block."""


def _thawed_dict(raw: object) -> dict[str, Any]:
    value = thawed(raw)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def thawed(raw: object) -> object:
    """The Python value of a free value, whether it is still as given or already JSON text."""
    return values.loads(bytes(raw)) if isinstance(raw, msgspec.Raw) else raw
