"""What was found in the log when a store was opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from session_actor.persistence.errors import LogCorrupt
    from session_actor.persistence.log.chain import Found
    from session_actor.persistence.log.session_log import SessionLog
    from session_actor.persistence.store import TornTail


class Recovered:
    """What was found. `logs`: the newest birth of each session with records in the log. `dead`: deleted births."""

    def __init__(self) -> None:
        """Nothing was found yet."""
        self.logs: dict[str, SessionLog] = {}
        self.dead: list[SessionLog] = []
        self.torn: list[TornTail] = []
        self.unowned_damage: LogCorrupt | None = None
        """Damage that may concern every session; `proven_whole` are those that it does not."""
        self.proven_whole: set[SessionLog] = set()
        self.damage: Found = []
        """All damage."""
        self.last_lines: dict[SessionLog, tuple[int, int]] = {}
        """Segment and offset of each session's newest record in the log."""
        self.first_seqs: dict[SessionLog, int] = {}
        """The number of its oldest record there."""
        self.full: OSError | None = None
        """The disk has no room to make durable what an earlier process had written: see `unsure`."""
        self.unsure_births: set[tuple[str, str]] = set()
        """Births that damage names, and that nobody knows: the name itself may be damaged."""

    def missed_by(self, births: Collection[tuple[str, str]]) -> Found:
        """The damage by which some of these births may have lost records."""
        concerned = {*births, *self.unsure_births} if births else set[tuple[str, str]]()
        return [found for found in self.damage if concerned and not concerned.isdisjoint(found[1].owners or concerned)]
