"""How a service keeps its sessions: the options of `SessionService.open`, checked once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast

from session_actor.errors import InvalidArgument
from session_actor.given.given_numbers import check_count, check_seconds
from session_actor.given.plain import is_a, shown
from session_actor.persistence import LEVELS, RECOVERIES
from session_actor.supervisors import Backoff, Intensity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session_actor.compaction.options import Summaries
    from session_actor.hooks.hook import Hook, Phase
    from session_actor.models import ModelProfile
    from session_actor.persistence import Level, Recovery
    from session_actor.supervisors.clock import Clock


Retention = Literal["all", "prune"]
"""What is kept of frames that nothing holds any more: all of them, or none."""

RETENTIONS: Final[tuple[Retention, ...]] = ("all", "prune")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """See `SessionService.open`. Making one raises InvalidArgument for a value that can never be right."""

    durability: Level
    idle_timeout_s: float | None
    max_live: int | None
    mailbox_limit: int
    max_restarts: int
    restart_window_s: float
    close_timeout_s: float
    retention: Retention = "all"
    recovery: Recovery = "strict"
    models: Mapping[str, ModelProfile] | None = None
    summaries: Summaries | None = None
    """None: as when nothing is said of them."""
    hooks: Mapping[Phase, tuple[Hook, ...]] | None = None
    """Those of each phase, in the order in which they begin; None: there are none."""
    clock: Clock | None = None
    """Time for backoffs, breakers and timeouts of the tree; None: the loop's."""

    def __post_init__(self) -> None:
        """Check what the types cannot say, and what callers without a type checker get wrong."""
        if type(self.durability) is not str or self.durability not in LEVELS:
            raise InvalidArgument("durability", f"must be one of {', '.join(LEVELS)}")
        if type(self.retention) is not str or self.retention not in RETENTIONS:
            raise InvalidArgument("retention", f"must be one of {', '.join(RETENTIONS)}")
        if type(self.recovery) is not str or self.recovery not in RECOVERIES:
            raise InvalidArgument("recovery", f"must be one of {', '.join(RECOVERIES)}")
        if self.models is not None:
            check_models(self.models)
        check_count("max_live", self.max_live, least=1, optional=True)
        check_count("mailbox_limit", self.mailbox_limit, least=1)
        check_count("max_restarts", self.max_restarts, least=0)
        check_seconds("idle_timeout_s", self.idle_timeout_s, optional=True, zero=False)
        check_seconds("restart_window_s", self.restart_window_s, zero=False)
        check_seconds("close_timeout_s", self.close_timeout_s)

    @property
    def intensity(self) -> Intensity:
        """When a session that crashes is quarantined."""
        return Intensity(max_restarts=self.max_restarts, max_seconds=self.restart_window_s)

    @property
    def backoff(self) -> Backoff:
        """How long a session that crashed waits before it restarts."""
        return Backoff()


def check_path(store: object) -> str:
    """The path of a directory, as a str. Raises InvalidArgument."""
    path = os.fsdecode(os.fspath(store)) if isinstance(store, str | os.PathLike) else ""
    if not path or "\0" in path:
        raise InvalidArgument("store", "must be the path of a directory, or a Store such as MemoryStore()")
    return path


def check_models(models: object) -> None:
    """Raises InvalidArgument for what is no dict of ModelProfiles by name."""
    from session_actor.models import ModelProfile

    if not is_a(models, dict):
        raise InvalidArgument("models", f"must be a dict of ModelProfiles by name, got {type(models).__name__}")
    for name, profile in cast("dict[object, object]", models).items():
        if type(name) is not str or not name:
            raise InvalidArgument("models", "must have names of models as keys")
        if type(profile) is not ModelProfile:
            raise InvalidArgument(f"models[{shown(name)}]", f"must be a ModelProfile, got {type(profile).__name__}")
