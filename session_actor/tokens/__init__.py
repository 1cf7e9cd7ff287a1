"""How many tokens a text has: an estimate with the standard library alone, and exact counters as an extra."""

from __future__ import annotations

from .estimate import FAMILIES, estimate_tokens
from .exact import CounterUnavailable, exact_counter

__all__ = ["FAMILIES", "CounterUnavailable", "estimate_tokens", "exact_counter"]
