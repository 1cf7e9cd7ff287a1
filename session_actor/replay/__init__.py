"""Replay: what a session was after any of its records, and why a request showed what it did. It calls nothing."""

from __future__ import annotations

from session_actor.persistence.reading.session_lines import Damage

from .again import Rendered
from .difference import Diff
from .errors import MomentUnknown
from .moment import Moment
from .player import Replay
from .reading import Reader, Records, read_store
from .reasons import REASONS, Why

__all__ = [
    "REASONS",
    "Damage",
    "Diff",
    "Moment",
    "MomentUnknown",
    "Reader",
    "Records",
    "Rendered",
    "Replay",
    "Why",
    "read_store",
]
