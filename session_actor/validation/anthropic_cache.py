"""The cache breakpoints of a request for Anthropic.

Source: docs "Prompt caching" (at most four; none on thinking; those of an hour before those of five minutes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

_MOST_BREAKPOINTS: Final = 4


class Cache:
    """The breakpoints of a request, in the order tools, system, messages."""

    def __init__(self, problems: Problems) -> None:
        """None yet."""
        self._problems = problems
        self._count = 0
        self._short = False

    def breakpoint(self, path: str, holder: Mapping[str, Any], *, allowed: bool = True) -> None:
        """Count the breakpoint of a block, if it has one."""
        value = holder.get("cache_control")
        if value is None:
            return
        place = f"{path}.cache_control"
        self._count += 1
        if not allowed:
            self._problems.add(place, "cache", "must not stand on a thinking block")
        control = self._problems.mapping(place, value)
        if control is None:
            return
        life = control.get("ttl", "5m")
        if control.get("type") != "ephemeral" or life not in ("5m", "1h"):
            self._problems.add(place, "cache", "must be of type 'ephemeral', with a ttl of '5m' or '1h' or none")
        elif life == "1h" and self._short and path != "request":
            self._problems.add(place, "cache", "must not come after one of five minutes: the longer ones come first")
        self._short = self._short or life == "5m"

    def close(self) -> None:
        """Say it when there are too many."""
        if self._count > _MOST_BREAKPOINTS:
            self._problems.add(
                "request", "cache", f"has {self._count} cache breakpoints; at most {_MOST_BREAKPOINTS} are allowed"
            )
