"""The records of the hooks' book: what is to run, what was tried, what is done. One Struct a kind.

The names of kinds and fields are the format on disk: they never change. A field may be added with a default; a kind
that a reader does not know is refused by name (`RecordUnknown`).
"""

from __future__ import annotations

from typing import ClassVar, Final, TypeAlias, get_args

import msgspec

from session_actor.errors import RecordUnknown, RecordUnreadable
from session_actor.given.private import as_repr
from session_actor.persistence.errors import ValueUnreadable
from session_actor.persistence.format import values


class _Record(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    kind: ClassVar[str]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    __rich_repr__ = as_repr


class _OfSession(_Record, frozen=True, gc=False):
    session: str


class _OfHook(_Record, frozen=True, gc=False):
    hook: str
    """The key."""


class HooksDue(_OfSession, frozen=True, gc=False):
    """A session is being ended, and these hooks must run: it comes before the record of the end itself."""

    kind: ClassVar[str] = "hooks_due"
    birth: str
    created_at_us: int
    reason: str
    hooks: tuple[tuple[str, str], ...]
    """The name and the key of each, in the order in which they begin."""
    delete: bool = False
    """Whether the session is deleted when they are through."""


class HooksVoid(_OfSession, frozen=True, gc=False):
    """The record of the end never came: the session goes on, and nothing is due."""

    kind: ClassVar[str] = "hooks_void"


class HookBegun(_OfHook, frozen=True, gc=False):
    """A try begins."""

    kind: ClassVar[str] = "hook_begun"


class HookCut(_OfHook, frozen=True, gc=False):
    """A try was cut short by closing the service: it does not count."""

    kind: ClassVar[str] = "hook_cut"


class HookFailed(_OfHook, frozen=True, gc=False):
    """A try failed."""

    kind: ClassVar[str] = "hook_failed"
    error: str
    """The name of its type."""
    dead: bool = False
    """Whether there will be no other try."""


class HookDone(_OfHook, frozen=True, gc=False):
    """A try succeeded: the hook is never run again."""

    kind: ClassVar[str] = "hook_done"


class HookDriven(_OfHook, frozen=True, gc=False):
    """An operator wants a dead hook to be tried again."""

    kind: ClassVar[str] = "hook_driven"


class HookDiscarded(_OfHook, frozen=True, gc=False):
    """An operator wants a hook to be given up."""

    kind: ClassVar[str] = "hook_discarded"


class DeletionAsked(_OfSession, frozen=True, gc=False):
    """A session that has ended is deleted when its hooks are through."""

    kind: ClassVar[str] = "deletion_asked"


class DeletionDone(_OfSession, frozen=True, gc=False):
    """It is deleted."""

    kind: ClassVar[str] = "deletion_done"


AnyRecord: TypeAlias = (
    HooksDue
    | HooksVoid
    | HookBegun
    | HookCut
    | HookFailed
    | HookDone
    | HookDriven
    | HookDiscarded
    | DeletionAsked
    | DeletionDone
)

KINDS: Final[dict[str, type[AnyRecord]]] = {record.kind: record for record in get_args(AnyRecord)}
"""The type of each kind of record."""


def decode(kind: str, data: bytes | msgspec.Raw) -> AnyRecord:
    """The record of `kind` with the JSON `data`. Raises RecordUnknown, RecordUnreadable."""
    record = KINDS.get(kind)
    if record is None:
        raise RecordUnknown(kind)
    try:
        return values.decode_typed(data, record)
    except ValueUnreadable as error:
        raise RecordUnreadable(kind, str(error)) from None
