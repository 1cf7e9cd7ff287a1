"""What is said of hooks: in `service.health()`, and of single ones that are pending or dead."""

from __future__ import annotations

from datetime import datetime

import msgspec


class HooksHealth(msgspec.Struct, frozen=True):
    """How the mandatory hooks of a service are."""

    pending: int = 0
    """Hooks of sessions that have ended which are still to run."""
    dead: int = 0
    """Those that failed too often: `service.hooks.dead_letters()` lists them."""
    unregistered: tuple[str, ...] = ()
    """Names of pending hooks for which this service was given none: they wait until it is."""
    breakers_open: tuple[str, ...] = ()
    """Hooks that failed again and again, and are left alone for a while."""
    deletions: int = 0
    """Sessions that are deleted when their hooks are through."""
    trouble: str | None = None
    """Why what is pending could not be read, and so neither runs nor can be noted; None: it could."""


class PendingHook(msgspec.Struct, frozen=True):
    """A mandatory hook that is still to run."""

    session_id: str
    name: str
    key: str
    attempts: int
    """How many tries have begun, one that runs included."""
    error: str | None
    """The type of the newest error; None: there was none."""
    ended_at: datetime
    """When the session ended (aware, UTC)."""
    registered: bool
    """Whether this service has a mandatory hook of this name."""
    delete: bool
    """Whether the session is deleted when all its hooks are through."""


class DeadLetter(PendingHook, frozen=True):
    """A mandatory hook that failed too often: it is not tried again until it is driven."""
