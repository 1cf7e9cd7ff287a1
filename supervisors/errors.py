"""The errors of this floor: one root, a docstring each; no message ever quotes a message's content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

_GETTER: Final[Any] = BaseException.__dict__["__traceback__"]
"""Reads the traceback of an exception whatever its class has in that place."""


def shown(value: object, how: Callable[[object], str] = repr) -> str:
    """An id in the words of an error: an end must not fail because an id cannot be shown."""
    try:
        return how(value)
    except Exception:  # noqa: BLE001 - whatever the embedder's class does
        return f"<{type(value).__qualname__}>"


class SupervisorError(Exception):
    """Root of everything that this floor raises by itself (`Refusal` is the embedder's and stands apart)."""


class Refusal(Exception):
    """Raised in a handler to say no: the caller gets it, the server lives. In a cast it is dropped and counted."""


class ServerError(SupervisorError):
    """A server could not answer."""


class CrashSummary(SupervisorError):
    """Type and place of an exception that crashed a server, without its text, its frames or its arguments."""

    @classmethod
    def of(cls, error: BaseException) -> CrashSummary:
        """Summarise `error`: its type and the innermost line that raised it; what its class overrides is not asked."""
        kind = type(error).__qualname__
        trace: TracebackType | None = _GETTER.__get__(error)
        if trace is None:
            return cls(shown(error, str) if issubclass(type(error), SupervisorError) else kind)
        while trace.tb_next is not None:
            trace = trace.tb_next
        code = trace.tb_frame.f_code
        return cls(f"{kind} raised in {code.co_name} at {code.co_filename}:{trace.tb_lineno}")


class ServerCrashed(ServerError):
    """The handler of this call raised; the message is not run again. `__cause__` is a `CrashSummary`."""


class ServerStopped(ServerError):
    """The server was stopped, or is being stopped, before it ran this message."""


class StartIgnored(ServerStopped):
    """`init` returned `IGNORE`: the child does not run, and that is no fault (OTP: ignore)."""


class ServerKilled(ServerError):
    """The server was killed (by `kill`, at a deadline, or by cancelling its task) before it answered."""


class ServerQuarantined(ServerError):
    """The child kept crashing and is quarantined until its supervisor's `release(id)`."""


class ServerDown(ServerError):
    """The server, or a supervisor above it, ended after crashes and is not coming back by itself."""


class InitFailed(ServerError):
    """`init`, or the factory, raised at the first start. `__cause__` is the exception that it raised."""


class CallTimeout(ServerError, TimeoutError):
    """No reply in time. A message that had not started is never run; one that had completes, its reply is dropped."""

    started = False
    """Whether the message was running: then what it does is done, or may be."""
    timeout_s: float | None = None
    """How long the caller waited [seconds]."""


class MailboxFull(ServerError):
    """The mailbox is at its limit (or, with `drop_oldest`, this call was the oldest and gave way)."""


class UnknownMessage(ServerError, TypeError):
    """The server has no handler for this type of message."""


class DeadlockError(ServerError):
    """Waiting here would never end: the servers in `chain` wait for one another, the first also being the last."""

    def __init__(self, chain: Sequence[object]) -> None:
        """Name the chain of server ids, from the asking one back to itself."""
        self.chain: tuple[object, ...] = tuple(chain)
        super().__init__(
            "these servers would wait for one another for ever: "
            + " -> ".join(shown(link, str) for link in self.chain)
            + "; cast, or reply later with defer()"
        )


class WrongLoop(ServerError):
    """Called from another thread or another event loop than the server's own."""


class AsyncioOnly(SupervisorError):
    """Supervisors run under asyncio (uvloop too), not under trio or without a running loop."""


class NotStarted(SupervisorError):
    """The supervisor is not running: not started yet, stopping, or ended."""


class AlreadyStarted(SupervisorError):
    """The supervisor is running already."""


class ChildExists(SupervisorError):
    """A child with this id exists in the supervisor."""


class ChildNotFound(SupervisorError):
    """The supervisor has no child with this id (or not in the needed state)."""


class TooManyChildren(SupervisorError):
    """The dynamic supervisor is at its `max_children`."""


class RestartsExhausted(SupervisorError):
    """A child crashed more often than its intensity allows; the supervisor ends."""


class AlreadyRegistered(SupervisorError):
    """The name is taken by a living server, `holder` (its ref)."""

    def __init__(self, message: str, holder: object) -> None:
        """Say what, and who has the name."""
        super().__init__(message)
        self.holder = holder


class AlreadyReplied(SupervisorError):
    """A deferred reply was given twice."""


class LinkedServerEnded(SupervisorError):
    """A linked server ended abnormally, and so does this one."""
