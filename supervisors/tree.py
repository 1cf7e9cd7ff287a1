"""What static and dynamic supervisors have in common: children, their ends, start and stop as a root."""

from __future__ import annotations

import asyncio
import random
from abc import abstractmethod
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from .checks import check_kind, check_timeout
from .child_spec import ChildSpec, shutdown_of
from .deadlock import refuse_own_task, waiting
from .errors import AlreadyStarted, ChildExists, ChildNotFound, NotStarted, RestartsExhausted, ServerDown, shown
from .events import OnEvent, emit
from .exits import PARENT, STOPPED, Ending, ExitReason
from .floor import Floor
from .incarnation import finish, launch, stop_slot
from .log import logger
from .ref import ServerRef
from .restart import Backoff, Exhausted, Intensity, RestartKind, next_restart, wants_restart
from .slot import Phase, Slot
from .supervisor_base import SupervisorBase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable
    from types import TracebackType

    from .clock import Clock


class ChildInfo(NamedTuple):
    """A child as `which_children` shows it."""

    id: Hashable
    ref: ServerRef
    kind: Literal["worker", "supervisor"]
    restart: RestartKind
    phase: Phase


class ChildCounts(NamedTuple):
    """Children by number (OTP: count_children)."""

    specs: int
    """All children, ended ones too."""
    active: int
    """Those that have a task now."""
    supervisors: int
    workers: int


class Tree(SupervisorBase):
    """The part of a supervisor that does not depend on its strategy."""

    def __init__(
        self,
        *,
        intensity: Intensity | None = None,
        backoff: Backoff | None = None,
        on_event: OnEvent | None = None,
        clock: Clock | None = None,
        name: Hashable = "root",
    ) -> None:
        """Prepare; see the subclasses."""
        self.intensity = Intensity() if intensity is None else intensity
        self.backoff = Backoff() if backoff is None else backoff
        check_kind("intensity", self.intensity, Intensity)
        check_kind("backoff", self.backoff, Backoff)
        self.on_event = on_event
        self.slot: Slot | None = None
        self._clock = clock
        self._name = name
        self._slots: dict[Hashable, Slot] = {}
        self._fault: RestartsExhausted | None = None
        self._closing = False
        self._work: deque[Callable[[], Awaitable[None]]] = deque()

    # -- as a root ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start as the root of a tree and wait until all children given to it are up.

        Cancelling undoes it, and waits for that: the init that is running is cancelled, what is up is stopped in
        reverse order. Cancelling again kills what is left.

        Raises:
            AsyncioOnly: no asyncio loop is running.
            AlreadyStarted: it runs already, as a root or as a child.
            InitFailed: a child's first init raised; the others were stopped in reverse order.
            ServerStopped: it was stopped meanwhile.
        """
        self._refuse_running()
        logger()
        spec = ChildSpec(self._name, start=lambda: self, restart="temporary", shutdown_s=None)
        slot = self.slot = Slot(spec, Floor.current(self._clock), None, ServerRef)
        launch(slot)
        try:
            await slot.start_waiter()
        except asyncio.CancelledError:
            await self._undo_start(slot)
            raise

    async def _undo_start(self, slot: Slot) -> None:
        patience: Literal["kill"] | None = None
        while slot.task is not None:
            self._cancel_inits()
            try:
                await stop_slot(slot, Ending(STOPPED, final=True), patience)
            except asyncio.CancelledError:
                patience = "kill"

    def _cancel_inits(self) -> None:
        for child in self._slots.values():
            if isinstance(child.behaviour, Tree):
                child.behaviour._cancel_inits()  # noqa: SLF001 - one of its own class
            elif child.phase == "starting":
                child.kill()

    async def stop(self, timeout_s: float | None = None) -> None:
        """Stop the children, then the supervisor itself; may be called from another task than `start`.

        Args:
            timeout_s: seconds until everything that is left is killed; None leaves it to each child's `shutdown_s`.

        Raises:
            ServerDown: it had given up before.
            DeadlockError: called from inside one of its servers.
            ValueError: the timeout is negative or NaN.
        """
        check_timeout("timeout_s", timeout_s)
        slot = self.slot
        if slot is None:
            return
        slot.floor.check(slot.id)
        refuse_own_task(slot)
        await stop_slot(slot, Ending(STOPPED, final=True), timeout_s)
        if slot.reason is not None and slot.reason.kind == "crashed" and slot.refuse is not None:
            raise slot.refuse()

    async def __aenter__(self) -> Self:
        """Start; see `start`."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop; raises ServerDown when the supervisor had given up, unless the body raises already."""
        try:
            await self.stop()
        except ServerDown:
            if error is None:
                raise

    @property
    def alive(self) -> bool:
        """Whether it runs and has not given up."""
        return self.slot is not None and self.slot.refuse is None and not self._closing

    @property
    def reason(self) -> ExitReason | None:
        """Why it ended; None while it runs."""
        return None if self.slot is None else self.slot.reason

    @property
    def parent(self) -> SupervisorBase | None:
        """The supervisor above, None for a root."""
        return None if self.slot is None else self.slot.parent

    # -- children -----------------------------------------------------------------------------------------------------

    def child(self, child_id: Hashable) -> ServerRef:
        """Return the child's ref.

        Raises:
            ChildNotFound: there is none with this id.
        """
        return self._find(child_id).ref

    def which_children(self) -> list[ChildInfo]:
        """List the children in the order of their start."""
        return [ChildInfo(slot.id, slot.ref, slot.kind, slot.spec.restart, slot.phase) for slot in self._slots.values()]

    def count_children(self) -> ChildCounts:
        """Count the children."""
        slots = self._slots.values()
        supervisors = sum(slot.kind == "supervisor" for slot in slots)
        return ChildCounts(
            len(slots), sum(slot.task is not None for slot in slots), supervisors, len(slots) - supervisors
        )

    async def terminate_child(self, child_id: Hashable) -> None:
        """Stop a child for good, within its `shutdown_s`. An ended one: returns at once.

        Raises:
            ChildNotFound: there is none with this id.
            DeadlockError: called from inside the child.
        """
        slot = self._find(child_id)
        slot.floor.check(slot.id)
        refuse_own_task(slot)
        await stop_slot(slot, Ending(PARENT, final=True, drain=slot.spec.drain), shutdown_of(slot.spec, slot.kind))

    def _find(self, child_id: Hashable) -> Slot:
        slot = self._slots.get(child_id)
        if slot is None:
            message = f"supervisor {self._name!r} has no child {shown(child_id)}"
            raise ChildNotFound(message)
        return slot

    def _new_slot(self, spec: ChildSpec) -> Slot:
        slot = Slot(spec, self._own().floor, self, ServerRef)
        self._slots[spec.id] = slot
        return slot

    async def _start_slot(self, slot: Slot) -> ServerRef:
        """Start a slot that is not running and wait for its init; InitFailed and the like are the caller's."""
        waiter = self._launch_first(slot)
        with waiting(slot):
            await waiter
        return slot.ref

    def _launch_first(self, slot: Slot) -> asyncio.Future[None]:
        """Launch a slot that is not running as if for the first time; returns what is done when its init is through."""
        if slot.task is not None:
            raise ChildExists(f"child {shown(slot.id)} of supervisor {self._name!r} is running")
        slot.first = True
        slot.attempt = 0
        launch(slot)
        return slot.start_waiter()

    def _own(self) -> Slot:
        """Return the supervisor's own place, which it has from its first start on."""
        if self.slot is None:
            msg = f"supervisor {self._name!r} is not running: start it, or put it into a tree"
            raise NotStarted(msg)
        return self.slot

    def _refuse_stopped(self) -> None:
        own = self._own()
        own.floor.check(own.id)
        if not self.alive or own.phase != "running":
            msg = f"supervisor {self._name!r} is not running: it is starting, stopping, ended, or waits for its restart"
            raise NotStarted(msg)

    def _refuse_running(self) -> None:
        if self.slot is not None and self.slot.task is not None:
            message = f"supervisor {self._name!r} is running already; use a new one"
            raise AlreadyStarted(message)

    # -- as a behaviour -----------------------------------------------------------------------------------------------

    def _take(self, slot: Slot) -> None:
        """Take a place for a new life."""
        if self.slot is not slot:
            self._refuse_running()
        self.slot = slot
        self._fault = None
        self._closing = False
        self._work.clear()

    async def live(self, slot: Slot) -> ExitReason:
        """Do what child ends ask for, until the end."""
        while True:
            if self._fault is not None:
                raise self._fault
            if slot.ending is not None:
                return slot.ending.reason
            if self._work:
                await self._work.popleft()()
            else:
                slot.waker = slot.floor.loop.create_future()
                await slot.waker

    def kill_children(self) -> None:
        """Kill the children, at once."""
        self._begin_closing()
        for slot in self._slots.values():
            if slot.task is not None:
                slot.kill()

    def child_ended(self, slot: Slot, reason: ExitReason) -> None:
        """Decide what follows the end of a child's incarnation."""
        ending = slot.ending
        if self._closing or (ending is not None and ending.final):
            self._finish(slot, reason)
        elif slot.first and not (slot.spec.task is not None and ending is not None and reason is ending.reason):
            self._finish(slot, reason)  # a bare task that was asked to end before its first step has not failed
        elif ending is not None and not ending.by_itself:
            slot.phase = "backoff"
        elif wants_restart(slot.spec.restart, reason):
            self._count(slot, reason)
        else:
            self._finish(slot, reason)

    def _count(self, slot: Slot, reason: ExitReason) -> None:
        now_s = slot.floor.clock.monotonic()
        lived_s = 0.0 if slot.lived_from_s is None else now_s - slot.lived_from_s
        intensity = self.intensity if slot.spec.intensity is None else slot.spec.intensity
        backoff = self.backoff if slot.spec.backoff is None else slot.spec.backoff
        decision = next_restart(slot.attempt, lived_s, intensity, backoff, random.random)
        if isinstance(decision, Exhausted):
            emit(self, "exhausted", slot, reason)
            self._exhausted(slot, reason)
            return
        slot.attempt = decision.attempt
        slot.restarts += 1
        slot.phase = "backoff"
        emit(self, "restarting", slot, reason, decision.delay_s)
        self._restart(slot, decision.delay_s)

    def _restart(self, slot: Slot, delay_s: float) -> None:
        """Start one child again, nobody else is touched."""

        def again() -> None:
            slot.backoff_timer = None
            launch(slot)

        if delay_s <= 0:
            again()
        else:
            slot.backoff_timer = slot.floor.clock.call_later(delay_s, again)

    def _exhausted(self, slot: Slot, reason: ExitReason) -> None:
        """Escalate: end the supervisor; its parent decides."""
        own = self._own()
        self._fault = RestartsExhausted(
            f"child {shown(slot.id)} of supervisor {self._name!r} crashed after {slot.attempt} restarts in a row"
        )
        self._begin_closing()
        self._finish(slot, reason)
        if own.parent is None:
            emit(self, "gave_up", own, ExitReason("crashed", self._fault))
        own.wake()

    def _finish(self, slot: Slot, reason: ExitReason) -> None:
        """End a slot for good. Its id is free before anybody is told: who hears of the end may use it again."""
        finish(slot, reason)
        if self._fault is not None:
            slot.refuse = partial(_down, slot, self._fault)
        self._let_go(slot, reason)
        emit(self, "stopped", slot, reason)
        slot.tell_end(reason, restarting=False)

    @abstractmethod
    def _let_go(self, slot: Slot, reason: ExitReason) -> None:
        """Free the id of a slot that has ended, when it is not to be started again."""

    def _begin_closing(self) -> None:
        """From now on no child is started, also none that waits for its restart."""
        self._closing = True
        for slot in self._slots.values():
            slot.stop_backoff()


def _down(slot: Slot, fault: RestartsExhausted) -> ServerDown:
    return ServerDown(f"server {shown(slot.id)} is down with its supervisor: {fault}")


def check_spec(spec: object) -> None:
    """Refuse what is no spec.

    Raises:
        TypeError: it says what came.
    """
    if not isinstance(spec, ChildSpec):
        message = f"a child is described by a ChildSpec, not by {type(spec).__name__}"
        raise TypeError(message)
