"""The log of this floor, for what an operator should see: ids, types and places, never what was said."""

from __future__ import annotations

from typing import Final

from session_actor.persistence.safe_log import SafeLogger

LOGGER: Final = SafeLogger("session_actor")
