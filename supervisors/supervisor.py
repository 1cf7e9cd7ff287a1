"""The static supervisor and its three strategies."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, get_args

from .child_spec import shutdown_of
from .deadlock import waiting
from .errors import ChildExists, StartIgnored, shown
from .exits import PARENT, Ending, ExitReason
from .incarnation import launch, stop_slot
from .tree import Tree, check_spec

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from .child_spec import ChildSpec
    from .clock import Clock
    from .events import OnEvent
    from .ref import ServerRef
    from .restart import Backoff, Intensity
    from .slot import Slot

Strategy = Literal["one_for_one", "one_for_all", "rest_for_one"]
_STRATEGIES: Final = get_args(Strategy)


class Supervisor(Tree):
    """Starts its children in order, restarts them by its strategy, stops them in reverse order.

    `one_for_one` restarts the child that ended; `one_for_all` stops and restarts all; `rest_for_one` it and those after
    it (OTP: supervisor). Use it as a root (`async with`, or `start` and `stop`), or return it from a child's `start`.

    Args:
        children: their specs, in the order of their start.
        strategy: see above.
        intensity: restarts allowed for each child; default 3 within a life shorter than 5 s.
        backoff: delays before restarts.
        on_event: called with each `Event`; None: the parent's.
        clock: time for windows, backoffs and deadlines of the whole tree; only a root's counts; None: the loop's.
        name: the id of a root, for messages.

    Raises:
        ChildExists: two children have one id.
        ValueError: an unknown strategy.
        TypeError: intensity, backoff or a child is of another class.
    """

    def __init__(
        self,
        children: Iterable[ChildSpec] = (),
        *,
        strategy: Strategy = "one_for_one",
        intensity: Intensity | None = None,
        backoff: Backoff | None = None,
        on_event: OnEvent | None = None,
        clock: Clock | None = None,
        name: Hashable = "root",
    ) -> None:
        """Prepare; nothing is started yet."""
        super().__init__(intensity=intensity, backoff=backoff, on_event=on_event, clock=clock, name=name)
        if strategy not in _STRATEGIES:
            message = f"strategy is one of {', '.join(_STRATEGIES)}, not {strategy!r}"
            raise ValueError(message)
        self.strategy: Strategy = strategy
        self._adding: set[Slot] = set()
        self._given: Final[dict[Hashable, ChildSpec]] = {}
        self._specs: dict[Hashable, ChildSpec] = self._given
        self._places: dict[Hashable, Slot] = {}  # of the given children, those too that a start did not come to
        for spec in children:
            check_spec(spec)
            self._refuse_known(spec.id)
            self._specs[spec.id] = spec

    async def start_child(self, spec: ChildSpec) -> ServerRef:
        """Add a child after the others, start it and wait for its init.

        Raises:
            ChildExists: the id is taken.
            InitFailed: its init raised; the child is not added.
            StartIgnored: its init returned IGNORE; the spec stays, unless it is temporary.
            NotStarted: the supervisor does not run.
        """
        check_spec(spec)
        self._refuse_stopped()
        self._refuse_known(spec.id)
        self._specs[spec.id] = spec
        slot = self._new_slot(spec)
        self._adding.add(slot)
        try:
            return await self._start_slot(slot)
        finally:
            self._adding.discard(slot)

    async def restart_child(self, child_id: Hashable) -> ServerRef:
        """Start a child that has ended, and wait for its init.

        Raises:
            ChildNotFound: there is none with this id.
            ChildExists: it has not ended.
            InitFailed: its init raised; the spec stays.
        """
        self._refuse_stopped()
        slot = self._ended(child_id)
        return await self._start_slot(slot)

    def get_child_spec(self, child_id: Hashable) -> ChildSpec:
        """Return the spec of a child.

        Raises:
            ChildNotFound: there is none with this id.
        """
        return self._find(child_id).spec

    def delete_child(self, child_id: Hashable) -> None:
        """Forget the spec of a child that has ended.

        Raises:
            ChildNotFound: there is none with this id.
            ChildExists: it has not ended; terminate it first.
        """
        self._ended(child_id)
        self._forget(child_id)

    def _ended(self, child_id: Hashable) -> Slot:
        slot = self._find(child_id)
        if slot.phase != "ended":
            message = f"child {shown(child_id)} of supervisor {self._name!r} has not ended; terminate it first"
            raise ChildExists(message)
        return slot

    def _refuse_known(self, child_id: Hashable) -> None:
        if child_id in self._specs:
            message = f"supervisor {self._name!r} has a child {shown(child_id)}"
            raise ChildExists(message)

    def _forget(self, child_id: Hashable) -> None:
        self._specs.pop(child_id, None)
        self._slots.pop(child_id, None)

    # -- as a behaviour -----------------------------------------------------------------------------------------------

    async def open(self, slot: Slot) -> None:
        """Start the given children in order, without those added later; the first that fails ends the start.

        Asked to end meanwhile, it returns, whatever hangs in its init: `close` stops that.
        """
        self._take(slot)
        self._specs = dict(self._given)
        known = self._places | self._slots
        self._places = {name: known[name] for name in self._given if name in known}
        self._slots = {}
        for spec in self._given.values():
            if self._ends():
                return
            child = known.get(spec.id)
            if child is not None and child.spec is spec and child.floor is slot.floor:
                self._slots[spec.id] = child
            else:
                child = self._new_slot(spec)
            waiter = self._launch_first(child)
            with waiting(child):
                await self._done_or_ending(waiter)
            if self._fault is not None:
                raise self._fault
            if not self._ends():
                with suppress(StartIgnored):
                    waiter.result()

    async def close(self, slot: Slot) -> None:
        """Stop the children in reverse order; a cancellation meanwhile kills those that are left."""
        del slot
        self._begin_closing()
        for child in reversed(tuple(self._slots.values())):
            while child.phase != "ended":
                try:
                    ending = Ending(PARENT, final=True, drain=child.spec.drain)
                    await stop_slot(child, ending, "kill" if child.killing else shutdown_of(child.spec, child.kind))
                except asyncio.CancelledError:
                    self.kill_children()

    def _let_go(self, slot: Slot, reason: ExitReason) -> None:
        failed = slot in self._adding and slot.first and not isinstance(reason.error, StartIgnored)
        if failed or (slot.spec.restart == "temporary" and not self._closing):
            self._forget(slot.id)

    def _restart(self, slot: Slot, delay_s: float) -> None:
        if self.strategy == "one_for_one":
            super()._restart(slot, delay_s)
            return
        self._work.append(partial(self._restart_group, slot, delay_s))
        self._own().wake()

    async def _restart_group(self, origin: Slot, delay_s: float) -> None:
        """Stop the origin's group in reverse order, wait, start it in order; what is queued in it stays queued."""
        if origin.phase != "backoff" or origin.task is not None:
            return
        slots = list(self._slots.values())
        group = slots if self.strategy == "one_for_all" else slots[slots.index(origin) :]
        for slot in reversed(group):
            ending = Ending(PARENT, final=slot.spec.restart == "temporary")
            await stop_slot(slot, ending, shutdown_of(slot.spec, slot.kind))
        await self._pause(delay_s)
        for slot in group:
            if self._ends():
                return
            if slot.phase == "backoff" and slot.task is None:
                launch(slot)
                if not await self._settled(slot):
                    return

    async def _settled(self, slot: Slot) -> bool:
        """Wait until the child has started or does not want to (True); False: it crashed again, or this is to end."""
        waiter = slot.start_waiter()
        if slot.exit_waiters is None:
            slot.exit_waiters = []
        slot.exit_waiters.append(waiter)
        await self._done_or_ending(waiter)
        return waiter.done() and (slot.task is not None or slot.phase == "ended")

    async def _done_or_ending(self, waiter: asyncio.Future[None]) -> None:
        """Wait for a child, or for the supervisor's own end."""
        own = self._own()
        waiter.add_done_callback(lambda _: own.wake(), context=own.floor.context)
        while not waiter.done() and not self._ends():
            own.waker = own.floor.loop.create_future()
            await own.waker

    def _ends(self) -> bool:
        return self._fault is not None or self._closing or self._own().ending is not None

    async def _pause(self, delay_s: float) -> None:
        """Wait for the backoff, or for the supervisor's own end."""
        own = self._own()
        due_s = own.floor.clock.monotonic() + delay_s
        timer = own.floor.clock.call_later(delay_s, own.wake)
        while own.floor.clock.monotonic() < due_s and not self._ends():
            own.waker = own.floor.loop.create_future()
            await own.waker
        timer.cancel()
