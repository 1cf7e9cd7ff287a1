"""The output gate: replies of changes leave in the order of the changes, each when its durability level is reached."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from session_actor.persistence import PersistenceError
from session_actor.supervisors import NO_REPLY

from .errors import translate

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence import Level, Store
    from session_actor.supervisors import Deferred


class _Calls:
    """Stands for a caller."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def reply(self, value: object) -> None:
        del value
        self._callback()

    def fail(self, error: BaseException) -> None:
        del error
        self._callback()


class _Held:
    """One reply that waits for its level, or for a reply before it."""

    __slots__ = ("deferred", "error", "reached", "reply")

    def __init__(self, reply: object, deferred: Deferred[Any] | _Calls) -> None:
        self.reply = reply
        self.deferred = deferred
        self.reached = False
        self.error: BaseException | None = None


class OutputGate:
    """Holds one session's replies at `written` and `synced`; the mailbox goes on meanwhile.

    A reply whose level is already reached, with none held before it, never enters the gate.
    The rule is that of group commit in databases: the acknowledgement follows the log, never leads it.
    """

    __slots__ = ("_defer", "_held", "_store")

    def __init__(self, store: Store, defer: Callable[[], Deferred[Any]]) -> None:
        """Make an empty gate over `store`; `defer` takes the running call's reply out of the handler's hands."""
        self._store = store
        self._defer = defer
        self._held: deque[_Held] | None = None  # made by the first reply that must wait: most sessions never have one

    def release_at(self, level: Level, position: int, reply: object) -> object:
        """Return `reply` when `level` covers `position` already, else hold it and return NO_REPLY.

        A held reply goes out when the store reports the level, after every reply held before it. When the store
        reports a failure instead, the caller gets that error (NotDurable): the change stays applied and queued.
        """
        store = self._store
        store.reach(level)
        reached = store.written_position if level == "written" else store.synced_position
        if reached >= position and not self._held:
            return reply
        held = _Held(reply, self._defer())
        if self._held is None:
            self._held = deque()
        self._held.append(held)
        try:
            store.when(level, position, partial(self._report, held))
        except BaseException:
            self._held.remove(held)
            raise
        return NO_REPLY

    def go_on_after(self, former: OutputGate) -> None:
        """Hold replies behind those that `former`, the gate of the server before, still holds; it reports them."""
        if former._held is None:
            former._held = deque()
        self._held = former._held

    def after(self, callback: Callable[[], None]) -> None:
        """Call back when all replies that are held now have left, or their errors; at once when none is."""
        if not self._held:
            callback()
            return
        held = _Held(None, _Calls(callback))
        held.reached = True
        self._held.append(held)

    @property
    def newest(self) -> object:
        """The reply that was held last; None: none is."""
        return self._held[-1].reply if self._held else None

    @property
    def holding(self) -> bool:
        """Whether a reply is being held."""
        return bool(self._held)

    def _report(self, held: _Held, error: BaseException | None) -> None:
        held.reached = True
        held.error = error
        queue = self._held
        while queue and queue[0].reached:
            first = queue.popleft()
            if first.error is None:
                first.deferred.reply(first.reply)
            else:
                first.deferred.fail(_explained(first.error))


def _explained(error: BaseException) -> BaseException:
    return translate(error) if isinstance(error, PersistenceError) else error
