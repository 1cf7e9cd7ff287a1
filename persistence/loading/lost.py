"""Telling what is lost of a session that was loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.persistence.format.gap import GAP, read_gap
from session_actor.persistence.store import LoadedSession, Lost

if TYPE_CHECKING:
    from session_actor.persistence.repair.salvaging import Salvaged


def with_losses(loaded: LoadedSession, salvaged: Salvaged | None) -> LoadedSession:
    """The same, with a report that says what is lost, and what salvage has just done about it, if anything."""
    gaps = [record for record in loaded.records if record.kind == GAP]
    if not gaps and salvaged is None:
        return loaded
    lost = tuple(Lost(gap.first, record.seq, gap.why) for record in gaps for gap in [read_gap(record)])
    dropped, kept_at = (0, ()) if salvaged is None else (salvaged.dropped, salvaged.kept_at)
    report = msgspec.structs.replace(loaded.report, gaps=lost, dropped=dropped, kept_at=kept_at)
    return msgspec.structs.replace(loaded, report=report)
