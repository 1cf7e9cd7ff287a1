"""Hearing that a server has ended: monitors and links."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import LinkedServerEnded, shown
from .exits import STOPPED, Ending, ExitReason

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator

    from .ref import ServerRef
    from .slot import Slot


class Down(NamedTuple):
    """An incarnation of `ref` ended with `reason`; `restarting` tells whether another one is to come."""

    ref: ServerRef
    reason: ExitReason
    restarting: bool


class Exit(NamedTuple):
    """A linked server ended; sent to a server with `trap_exit`."""

    ref: ServerRef
    reason: ExitReason


class Monitor:
    """Watches one server: `await monitor` gives the next `Down`; `async for` all of them, up to the final one."""

    def __init__(self, ref: ServerRef, owner: Slot | None = None) -> None:
        """Watch `ref`, see `monitor`; for the server in `owner`, see `monitor_into_mailbox`."""
        self.ref = ref
        self._slot = ref.slot
        self._slot.floor.check(ref.id)
        self._downs: deque[Down] = deque()
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._over = False
        self._owner = owner
        self._deliver: Callable[[Down], None] = self._downs.append if owner is None else owner.enqueue_system
        if self._slot.reason is not None:
            self._hear(self._slot.reason, restarting=False)
        else:
            self._slot.watch(self._hear)
            if owner is not None:
                owner.own(self.cancel)

    def cancel(self) -> None:
        """Hear no more; those who wait get what was heard, or the end of the iteration."""
        self._slot.unwatch(self._hear)
        self._end()
        self._wake()

    def __await__(self) -> Generator[Any, Any, Down]:
        """Wait for the next Down.

        Raises:
            LookupError: cancelled, or the final Down was taken before.
            WrongLoop: in another thread or loop.
        """
        return self._next().__await__()

    def __aiter__(self) -> Monitor:
        """Iterate over the Downs."""
        return self

    async def __anext__(self) -> Down:
        """Return the next Down."""
        try:
            return await self._next()
        except LookupError:
            raise StopAsyncIteration from None

    async def _next(self) -> Down:
        while not self._downs:
            if self._over:
                message = f"the monitor of server {shown(self.ref.id)} is over: cancelled, or its final Down was taken"
                raise LookupError(message)
            self._slot.floor.check(self.ref.id)
            waiter: asyncio.Future[None] = self._slot.floor.loop.create_future()
            self._waiters[waiter] = None
            try:
                await waiter
            finally:
                self._waiters.pop(waiter, None)
        return self._downs.popleft()

    def _hear(self, reason: ExitReason, restarting: bool) -> None:  # noqa: FBT001 - a callback
        if not restarting:
            self._end()
        self._deliver(Down(self.ref, reason, restarting))
        self._wake()

    def _end(self) -> None:
        self._over = True
        if self._owner is not None:
            self._owner.disown(self.cancel)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def monitor(ref: ServerRef) -> Monitor:
    """Watch `ref`: a `Down` for the end of each incarnation; at once when it has ended already (OTP: monitor).

    Raises:
        WrongLoop: called from another thread or loop, as awaiting the monitor does there.
    """
    return Monitor(ref)


def monitor_into_mailbox(ref: ServerRef, slot: Slot) -> Monitor:
    """Watch `ref` for the server in `slot`: Downs are messages; it ends with the current incarnation."""
    return Monitor(ref, slot)


def link(slot: Slot, ref: ServerRef) -> None:
    """Tie the current incarnations of `slot` and `ref` together."""
    other = ref.slot
    other.floor.check(ref.id)
    if other.reason is not None:
        _signal(slot, ref, other.reason)
        return
    _follow(other, slot)
    _follow(slot, other)


def _follow(ending: Slot, follower: Slot) -> None:
    """Pass the end of `ending` on to `follower`, once; forgotten when `follower` ends first."""

    def pass_on(reason: ExitReason, restarting: bool) -> None:  # noqa: FBT001 - a callback
        del restarting
        ending.unwatch(pass_on)
        follower.disown(forget)
        _signal(follower, ending.ref, reason)

    def forget() -> None:
        ending.unwatch(pass_on)

    ending.watch(pass_on)
    follower.own(forget)


def _signal(slot: Slot, ref: ServerRef, reason: ExitReason) -> None:
    server = slot.opening if slot.server is None else slot.server  # links are made in `init`, too
    if server is not None and server.trap_exit:
        slot.enqueue_system(Exit(ref, reason))
    elif reason.kind in ("crashed", "killed"):
        slot.crash_from_outside(LinkedServerEnded(f"linked server {shown(ref.id)} ended: {reason!r}"))
    elif reason.kind != "normal":
        slot.ask_end(Ending(STOPPED, final=False, by_itself=True))
