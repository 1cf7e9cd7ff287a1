"""The output gate: replies of changes leave in the order of the changes, each when its durability level is reached."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from session_actor.errors import translate
from session_actor.persistence import PersistenceError
from session_actor.supervisors import NO_REPLY

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence import Level, Store
    from session_actor.supervisors import Deferred  # noqa: TC004 - the fields are never decoded


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


class _Held(Struct, eq=False):
    """One reply that waits for its level, or for a reply before it; the store calls it at its level, or with its error.

    (A msgspec Struct, and what the store calls itself, because one is made for every change that waits for the disk.)
    """

    line: deque[_Held]
    """All that are held, in the order in which they leave."""
    reply: object
    deferred: Deferred[Any] | _Calls
    reached: bool = False
    error: BaseException | None = None

    def __call__(self, error: BaseException | None) -> None:
        """Its level is reached, or will not be: let it leave, and those that are ready behind it."""
        self.reached = True
        self.error = error
        line = self.line
        while line and line[0].reached:
            first = line.popleft()
            if first.error is None:
                first.deferred.reply(first.reply)
            else:
                first.deferred.fail(_explained(first.error))

    def __repr__(self) -> str:
        """Nothing of the reply, which is conversation."""
        return f"<_Held reached={self.reached}>"

    def __rich_repr__(self) -> Any:
        """None, so that rich takes `repr`, too: it would show all fields."""
        return None


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
        line = self._held
        if line is None:
            line = self._held = deque()
        held = _Held(line, reply, self._defer())
        line.append(held)
        try:
            store.when(level, position, held)
        except BaseException:
            line.remove(held)
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
        self._held.append(_Held(self._held, None, _Calls(callback), reached=True))

    @property
    def newest(self) -> object:
        """The reply that was held last; None: none is."""
        return self._held[-1].reply if self._held else None

    @property
    def holding(self) -> bool:
        """Whether a reply is being held."""
        return bool(self._held)


def _explained(error: BaseException) -> BaseException:
    return translate(error) if isinstance(error, PersistenceError) else error
