"""Why a server ended, as a value."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["normal", "stopped", "killed", "crashed", "parent"]


class ExitReason(NamedTuple):
    """Why an incarnation ended.

    `normal`: by itself. `stopped`: `ref.stop`, `stop_self("stopped")`. `parent`: by its supervisor (OTP: shutdown).
    `killed`: at a deadline, by `kill()` or by cancellation. `crashed`: an exception, kept in `error`.
    """

    kind: Kind
    error: BaseException | None = None

    @property
    def abnormal(self) -> bool:
        """Whether a transient child is restarted after it."""
        return self.kind in ("killed", "crashed")

    def __repr__(self) -> str:
        """Show kind and type of the error, never its text."""
        return self.kind if self.error is None else f"{self.kind}({type(self.error).__qualname__})"


class Ending(NamedTuple):
    """An end that was asked for: by `stop`, a supervisor, or the server itself."""

    reason: ExitReason
    final: bool
    """Nothing is restarted afterwards; what is queued fails as soon as the stop is seen."""
    drain: bool = False
    """Run what is queued first."""
    by_itself: bool = False
    """Asked for by the server: the supervisor's restart policy applies."""


def asked_reason(kind: str) -> ExitReason:
    """Return the reason for an end that somebody asks for.

    Raises:
        ValueError: neither "normal" nor "stopped"; the other kinds say what happened, nobody can ask for them.
    """
    if kind not in ("normal", "stopped"):
        message = f"a server can be asked to end as 'normal' or 'stopped', not as {kind!r}"
        raise ValueError(message)
    return NORMAL if kind == "normal" else STOPPED


NORMAL = ExitReason("normal")
STOPPED = ExitReason("stopped")
KILLED = ExitReason("killed")
PARENT = ExitReason("parent")
