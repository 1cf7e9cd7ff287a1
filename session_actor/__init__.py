"""Conversations that are never lost: supervised asyncio session actors with a durable journal, for async agent servers.

Names are loaded when they are first used, so that `import session_actor` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from session_actor.persistence import FileStore as FileStore
    from session_actor.persistence import MemoryStore as MemoryStore

    from .blocks import Block as Block
    from .blocks import CallRef as CallRef
    from .blocks import Document as Document
    from .blocks import Image as Image
    from .blocks import Native as Native
    from .blocks import Text as Text
    from .blocks import Thinking as Thinking
    from .blocks import ToolCall as ToolCall
    from .blocks import ToolResult as ToolResult
    from .frames import Frame as Frame
    from .frames import Instructions as Instructions
    from .frames import PendingCall as PendingCall
    from .frames import Tool as Tool
    from .frames import Turn as Turn
    from .frames import Usage as Usage
    from .handle import Session as Session
    from .service import ServiceHealth as ServiceHealth
    from .service import SessionService as SessionService
    from .stack import Stack as Stack

_HOMES: Final[dict[str, tuple[str, ...]]] = {
    ".service": ("ServiceHealth", "SessionService"),
    ".handle": ("Session",),
    ".stack": ("Stack",),
    ".frames": ("Frame", "Instructions", "PendingCall", "Tool", "Turn", "Usage"),
    ".blocks": (
        "Block", "CallRef", "Document", "Image", "Native", "Text", "Thinking", "ToolCall", "ToolResult",
    ),
    ".persistence": ("FileStore", "MemoryStore"),
}  # fmt: skip

_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - one table, above, says what is public


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME_OF]
