"""A hook, as an embedder describes it, and what its function is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from session_actor.errors import InvalidArgument
from session_actor.given.given_numbers import check_seconds
from session_actor.state.names import check_name

if TYPE_CHECKING:
    from .view import SessionView

Phase = Literal["created", "activated", "passivated", "before_compaction", "after_compaction", "ended"]
"""When a hook is called."""

PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
_REVERSED: Final = frozenset({"passivated", "after_compaction", "ended"})
"""Phases that close something: what was set up first is taken down last."""
_PRIORITY_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class HookContext:
    """What a hook is given."""

    session_id: str
    phase: Phase
    key: str
    """The same for all tries of one hook on one occasion, also after a restart: give it to what you call, so that a
    try which is repeated does nothing twice."""
    attempt: int
    """Which try this is, from 1."""
    reason: str = field(repr=False)
    """Why the session ended, as `service.end` was told; "deleted" or "idle". `activated`: "created" or "loaded".
    `passivated`: "unloaded" or "closed". Else empty."""
    view: SessionView
    """The session as it was at that moment."""


HookFunction: TypeAlias = Callable[[HookContext], Awaitable[object]]
"""An async function; what it returns is not looked at, what it raises means that it failed."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A function that is called at a turn of every session's life.

    Args:
        name: one of its own within its phase. What is pending is known by this name, also to the next version of your
            server: keep it.
        fn: `async def fn(ctx: HookContext)`.
        phase: when: `created`, `activated`, `passivated`, `before_compaction`, `after_compaction` or `ended`.
        priority: 0 to 100. Low ones begin first; in the phases that close something (`passivated`, `after_compaction`,
            `ended`) last. Equal ones: in the order in which they were given, or the reverse of it.
        mandatory: run it at least once, whatever happens; for `ended` alone. Others are called once.
        timeout_s: how long a try may take before it is cancelled and has failed [seconds].

    Raises:
        InvalidArgument: an argument that can never be right.
    """

    name: str
    fn: HookFunction = field(repr=False)
    phase: Phase
    priority: int = 50
    mandatory: bool = False
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        """Check what the types cannot say, and what callers without a type checker get wrong."""
        check_name(self.name, "name")
        if not callable(self.fn):
            raise InvalidArgument("fn", f"must be an async function, got {type(self.fn).__name__}")
        if type(self.phase) is not str or self.phase not in PHASES:
            raise InvalidArgument("phase", f"must be one of {', '.join(PHASES)}")
        if type(self.priority) is not int or not 0 <= self.priority <= _PRIORITY_MAX:
            raise InvalidArgument("priority", f"must be a whole number from 0 to {_PRIORITY_MAX}")
        if type(self.mandatory) is not bool:
            raise InvalidArgument("mandatory", "must be True or False")
        if self.mandatory and self.phase != "ended":
            raise InvalidArgument("mandatory", f"is for hooks of ended alone, not of {self.phase}")
        check_seconds("timeout_s", self.timeout_s, zero=False)


def by_phase(hooks: Iterable[Hook]) -> dict[Phase, tuple[Hook, ...]]:
    """The hooks of each phase, in the order in which they begin. Raises InvalidArgument."""
    try:
        given = tuple(hooks)
    except TypeError:
        raise InvalidArgument("hooks", f"must be a list of hooks, got {type(hooks).__name__}") from None
    found: dict[Phase, list[Hook]] = {}
    for place, hook in enumerate(given):
        if type(hook) is not Hook:
            raise InvalidArgument(f"hooks[{place}]", f"must be a Hook, got {type(hook).__name__}")
        same = found.setdefault(hook.phase, [])
        if any(other.name == hook.name for other in same):
            raise InvalidArgument(f"hooks[{place}]", f"there is another hook {hook.name!r} of {hook.phase}")
        same.append(hook)
    ordered: dict[Phase, tuple[Hook, ...]] = {}
    for phase, unsorted in found.items():
        inwards = sorted(unsorted, key=lambda hook: hook.priority)
        ordered[phase] = tuple(reversed(inwards) if phase in _REVERSED else inwards)
    return ordered


def key_of(hook: Hook, birth: str, occasion: str = "") -> str:
    """The key of a hook on an occasion in the life of the session of this birth."""
    return blake2b(
        f"{birth}\0{hook.phase}\0{occasion}\0{hook.name}".encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()
