"""What one message holds, as Markdown: texts, calls with their arguments, results, images and documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from session_actor.blocks import Document, Image, Native, Reference, Text, Thinking, ToolCall, ToolResult

from .fields import DECODER, fields, is_fields, text, word
from .markdown_text import code, fenced, folded, plain, prose

if TYPE_CHECKING:
    from session_actor.blocks import Block

LONG_LINES: Final = 20
LONG_CHARACTERS: Final = 2_000
"""What is longer is folded."""

EMPTY: Final = "*(nothing)*"


def block_of(block: Block | Image | Document | Native) -> str:
    """Any block but a call or a result."""
    match block:
        case Text():
            return prose(block.text)
        case Thinking():
            return folded("Thinking", prose(block.text)) if block.text else ""
        case Reference():
            return f"Not trusted text{'' if block.source is None else f' from {code(block.source)}'}:\n\n" + text_of(
                block.text, "Text"
            )
        case Native():
            return _native(block)
        case Image() | Document():
            return _media(block)
        case _:
            return ""


def call_of(call: ToolCall, *, is_answered: bool) -> str:
    """A call with its arguments."""
    open_ = "" if is_answered else " *(no result)*"
    return f"**calls** {code(call.name)}{open_}\n\n{_arguments(call.arguments)}"


def result_of(result: ToolResult, name: str | None) -> str:
    """A result. `name`: of the tool; None: not known."""
    what = "**failed**" if result.is_error else "**result**"
    of = ", ".join(map(code, filter(None, (name, result.call_id))))
    shown = [text_of(block.text, "Result") if isinstance(block, Text) else block_of(block) for block in result.blocks]
    return "\n\n".join([f"{what} of {of}", *(filter(None, shown) if any(shown) else [EMPTY])])


def text_of(text: str, what: str, language: str = "") -> str:
    """A text as it is; a long one is folded, with `what` it is."""
    if not text:
        return ""
    lines = text.count("\n") + 1
    if lines <= LONG_LINES and len(text) <= LONG_CHARACTERS:
        return fenced(text, language)
    return folded(f"{plain(what)}: {lines:,} lines, {len(text):,} characters", fenced(text, language))


def _arguments(arguments: str) -> str:
    """Arguments as JSON; texts of more than a line, such as files and scripts, are shown beside it as they are."""
    try:
        value = DECODER.decode(arguments)
    except (ValueError, RecursionError):
        return text_of(arguments, "Arguments", "json")
    given = fields(value) if is_fields(value) else {}
    long = {name: said for name, said in given.items() if isinstance(said, str) and "\n" in said}
    short = {name: said for name, said in given.items() if name not in long} if long else value
    parts = [text_of(json_of(short), "Arguments", "json")] if short or not long else []
    for name, said in long.items():
        parts.append(f"{code(name)}:\n\n{text_of(said, name)}")
    return "\n\n".join(parts)


def _native(block: Native) -> str:
    """A block of the provider's own: as JSON, and before it what it says."""
    value = block.value
    said = word(fields(value).get("text")) if is_fields(value) else None
    whole = text_of(json_of(value), "Block of the provider's own", "json")
    return whole if said is None else f"{prose(said)}\n\n{folded('As given', fenced(json_of(value), 'json'))}"


def name_of(tool: Native) -> str:
    """What a tool that a provider runs itself is called."""
    value = fields(tool.value)
    return word(value.get("name")) or word(value.get("type")) or ", ".join(value)


def json_of(value: Any) -> str:
    """Any value as JSON to be read."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=repr)


def _media(block: Image | Document) -> str:
    name = block.name if isinstance(block, Document) else None
    of = [code(each) for each in (name, block.media_type, block.url, block.file_id) if each]
    size = [] if block.data is None else [f"{len(block.data):,} bytes"]
    told = f"*{type(block).__name__}* {', '.join([*of, *size])}"
    written = _written(block)
    return told if written is None else f"{told}\n\n{text_of(written, 'Text')}"


def _written(block: Image | Document) -> str | None:
    """The text of a document that is one; None: it is none."""
    if isinstance(block, Image) or block.data is None or not (block.media_type or "").startswith("text/"):
        return None
    return text(block.data.decode("utf-8", "replace"))
