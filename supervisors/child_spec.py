"""What a supervisor must know to start, restart and stop a child."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from .checks import check_kind, check_timeout
from .mailbox import DEFAULT_MAILBOX, MailboxSpec
from .restart import Backoff, Intensity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from .gen_server import GenServer
    from .restart import RestartKind
    from .supervisor_base import SupervisorBase

Shutdown: TypeAlias = float | Literal["kill"] | None

_RESTARTS = ("permanent", "transient", "temporary")


class _Usual(float):
    """Seconds that nobody has asked for: they do not hold for a supervisor."""


_USUAL_S: Final = _Usual(5.0)


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One child: `start` makes a server or a supervisor, or `task` is a coroutine function that runs as a bare task.

    Args:
        id: names the child within its supervisor.
        start: called for every incarnation, inside the child's own task.
        task: called for every incarnation; stopping it cancels it.
        restart: `permanent` always, `transient` after a crash or kill, `temporary` never (OTP: restart types).
        shutdown_s: seconds between stop and kill; "kill" kills at once; None waits for ever. A supervisor waits for
            its children, which have theirs: where nothing is given, it has no limit (OTP: shutdown).
        init_timeout_s: seconds that `init` may take, else it has failed (at a restart: crashed). None: no limit.
        mailbox: limit and overflow of the server's mailbox.
        intensity: the child's own restart limit; None takes the supervisor's.
        backoff: the child's own delays; None takes the supervisor's.
        drain: run what is queued before stopping when the supervisor stops it (within `shutdown_s`).

    Raises:
        ValueError: not exactly one of start and task, an unknown restart kind, seconds that are negative or NaN.
        TypeError: the id is not hashable, start or task is not a function, mailbox, intensity or backoff is of another
            class.
    """

    id: Hashable
    _: KW_ONLY
    start: Callable[[], GenServer | SupervisorBase] | None = None
    task: Callable[[], Awaitable[object]] | None = None
    restart: RestartKind = "permanent"
    shutdown_s: Shutdown = _USUAL_S
    init_timeout_s: float | None = None
    mailbox: MailboxSpec = DEFAULT_MAILBOX
    intensity: Intensity | None = None
    backoff: Backoff | None = None
    drain: bool = False

    def __post_init__(self) -> None:
        """Check what the types cannot say."""
        hash(self.id)
        if (self.start is None) == (self.task is None):
            message = f"child {self.id!r}: give exactly one of start= and task="
            raise ValueError(message)
        if self.restart not in _RESTARTS:
            message = f"child {self.id!r}: restart is one of {', '.join(_RESTARTS)}, not {self.restart!r}"
            raise ValueError(message)
        if not callable(self.start or self.task):
            message = f"child {self.id!r}: start and task are functions, not {type(self.start or self.task).__name__}"
            raise TypeError(message)
        if isinstance(self.shutdown_s, str):
            if self.shutdown_s != "kill":
                message = f"child {self.id!r}: shutdown_s is seconds, 'kill' or None, not {self.shutdown_s!r}"
                raise ValueError(message)
        else:
            check_timeout("shutdown_s", self.shutdown_s)
        check_timeout("init_timeout_s", self.init_timeout_s)
        check_kind(f"child {self.id!r}: mailbox", self.mailbox, MailboxSpec)
        if self.intensity is not None:
            check_kind(f"child {self.id!r}: intensity", self.intensity, Intensity)
        if self.backoff is not None:
            check_kind(f"child {self.id!r}: backoff", self.backoff, Backoff)


def shutdown_of(spec: ChildSpec, kind: Literal["worker", "supervisor"]) -> Shutdown:
    """What `shutdown_s` means for a child of this kind."""
    return None if kind == "supervisor" and isinstance(spec.shutdown_s, _Usual) else spec.shutdown_s
