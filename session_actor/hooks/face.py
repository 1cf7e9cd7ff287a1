"""`service.hooks`: what is pending, what is dead, and what an operator can do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.state.times import as_datetime

from .errors import HookUnknown
from .records import HookDiscarded, HookDriven
from .report import DeadLetter, PendingHook

if TYPE_CHECKING:
    from datetime import datetime

    from .book import Due, Entry
    from .service_hooks import ServiceHooks


class HooksFace:
    """The mandatory hooks of a service that are still to run.

    All may raise StoreCorrupt or another StoreError when what is pending could not be read.
    """

    __slots__ = ("_hooks",)

    def __init__(self, hooks: ServiceHooks) -> None:
        """Made by `SessionService.hooks`."""
        self._hooks = hooks

    def pending(self) -> list[PendingHook]:
        """Those that wait or run, by the end of their sessions; of one session in the order of their beginning."""
        self._hooks.keeper.check()
        return [PendingHook(*self._told(entry, due)) for entry, due in self._dues() if not due.dead]

    def dead_letters(self) -> list[DeadLetter]:
        """Those that failed too often."""
        self._hooks.keeper.check()
        return [DeadLetter(*self._told(entry, due)) for entry, due in self._dues() if due.dead]

    async def drive(self, letter: DeadLetter | str) -> None:
        """Have a dead hook tried again, as often as one that is new, with the same key.

        `letter`: as listed, or its key. Returns when that is noted; the hook then runs as any that is pending.

        Raises HookUnknown when it is not dead (any more); NotDurable, StoreDegraded when the disk refuses.
        """
        key = letter if isinstance(letter, str) else letter.key
        keeper = self._hooks.keeper
        keeper.check()
        found = keeper.book.find(key)
        if found is None or not found[1].dead:
            raise HookUnknown(key, "dead hook")
        position = keeper.append(HookDriven(key))
        self._hooks.mandatory.drive(found[1])
        await keeper.kept(position)

    async def discard(self, letter: PendingHook | str) -> None:
        """Give up a hook that is dead, or pending and not registered: it is never run, and holds up no deletion.

        `letter`: as listed, or its key. Returns when that is noted.

        Raises HookUnknown for any other; NotDurable, StoreDegraded when the disk refuses.
        """
        key = letter if isinstance(letter, str) else letter.key
        keeper, mandatory = self._hooks.keeper, self._hooks.mandatory
        keeper.check()
        found = keeper.book.find(key)
        if found is None or not (found[1].dead or not mandatory.registered(found[1].name)):
            raise HookUnknown(key, "hook that is dead, or pending and not registered,")
        position = keeper.append(HookDiscarded(key))
        if not found[0].hooks:
            await mandatory.through(found[0], found[0].session)
        await keeper.kept(position)

    def _dues(self) -> list[tuple[Entry, Due]]:
        entries = self._hooks.keeper.book.entries.values()
        return [(entry, due) for entry in entries for due in entry.hooks.values()]

    def _told(self, entry: Entry, due: Due) -> tuple[str, str, str, int, str | None, datetime, bool, bool]:
        ended_at = as_datetime(entry.ended_at_us)
        registered = self._hooks.mandatory.registered(due.name)
        return entry.session, due.name, due.key, due.attempt, due.error, ended_at, registered, entry.delete
