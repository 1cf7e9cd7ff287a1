"""The supervisor of many children that come and go, with quarantine for those that keep crashing."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from .child_spec import shutdown_of
from .errors import ChildExists, ChildNotFound, ServerError, ServerQuarantined, TooManyChildren, shown
from .events import emit
from .exits import PARENT, Ending, ExitReason
from .incarnation import KILL_GRACE_S, exit_within, launch, leak
from .tree import Tree, check_spec

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .child_spec import ChildSpec
    from .clock import Clock
    from .events import OnEvent
    from .ref import ServerRef
    from .restart import Backoff, Intensity
    from .slot import Slot

CLOSE_BATCH: Final = 256


class DynamicSupervisor(Tree):
    """Starts children on request, restarts each by itself, stops all of them at the same time.

    Args:
        on_exhausted: what a child that used its restarts leads to: "escalate" ends the supervisor, "quarantine" ends
            only that child: its calls fail at once until `release`.
        max_children: None: no limit.
        intensity, backoff, on_event, clock, name: as in `Supervisor`.

    Raises:
        ValueError: an unknown on_exhausted, or max_children below 0.
        TypeError: intensity or backoff is of another class.
    """

    def __init__(
        self,
        *,
        on_exhausted: Literal["escalate", "quarantine"] = "escalate",
        max_children: int | None = None,
        intensity: Intensity | None = None,
        backoff: Backoff | None = None,
        on_event: OnEvent | None = None,
        clock: Clock | None = None,
        name: Hashable = "root",
    ) -> None:
        """Prepare; nothing is started yet."""
        super().__init__(intensity=intensity, backoff=backoff, on_event=on_event, clock=clock, name=name)
        if on_exhausted not in ("escalate", "quarantine") or (max_children is not None and max_children < 0):
            message = (
                f"on_exhausted is escalate or quarantine, max_children at least 0; not {on_exhausted!r}, {max_children}"
            )
            raise ValueError(message)
        self._quarantines = on_exhausted == "quarantine"
        self._max_children = max_children

    def spawn(self, spec: ChildSpec) -> ServerRef:
        """Make a child, without suspending: its slot, mailbox and task exist on return, messages wait for its init.

        Should the first init fail, everything that waits gets InitFailed and the child is removed.

        Raises:
            ChildExists: the id is taken, a quarantined child's too.
            TooManyChildren: `max_children` are there.
            NotStarted: the supervisor does not run.
            WrongLoop: called from another thread or loop.
        """
        check_spec(spec)
        self._refuse_stopped()
        if spec.id in self._slots:
            message = f"supervisor {self._name!r} has a child {shown(spec.id)}"
            raise ChildExists(message)
        if self._max_children is not None and len(self._slots) >= self._max_children:
            message = f"supervisor {self._name!r} has its limit of {self._max_children} children"
            raise TooManyChildren(message)
        slot = self._new_slot(spec)
        launch(slot)
        return slot.ref

    async def start_child(self, spec: ChildSpec) -> ServerRef:
        """Make a child and wait for its init.

        Raises:
            InitFailed: its first init raised; `__cause__` is what it raised. And what `spawn` raises.
        """
        ref = self.spawn(spec)
        await ref.started()
        return ref

    def quarantined(self) -> tuple[Hashable, ...]:
        """Return the ids of the quarantined children."""
        return tuple(slot.id for slot in self._slots.values() if slot.phase == "quarantined")

    def release(self, child_id: Hashable) -> ServerRef:
        """Lift a quarantine: the child starts again with all its restarts, messages are accepted at once.

        Raises:
            ChildNotFound: no such child is quarantined.
            NotStarted: the supervisor does not run.
        """
        self._refuse_stopped()
        slot = self._slots.get(child_id)
        if slot is None or slot.phase != "quarantined":
            message = f"supervisor {self._name!r} has no quarantined child {shown(child_id)}"
            raise ChildNotFound(message)
        slot.attempt = 0
        launch(slot)
        emit(self, "released", slot)
        return slot.ref

    def adopt(self, ref: ServerRef, spec: ChildSpec) -> None:
        """Take over another supervisor's child as it is, with mailbox and callers; restarts follow `spec` from now on.

        One that waits for its restart starts at once. Its former supervisor is told nothing.

        Raises:
            ChildExists: the id is taken.
            NotStarted: the supervisor does not run.
        """
        check_spec(spec)
        self._refuse_stopped()
        if spec.id in self._slots:
            message = f"supervisor {self._name!r} has a child {shown(spec.id)}"
            raise ChildExists(message)
        slot = ref.slot
        if isinstance(slot.parent, DynamicSupervisor):
            slot.parent._slots.pop(slot.id, None)  # noqa: SLF001 - one of its own class
        slot.id, slot.spec, slot.parent = spec.id, spec, self
        slot.mailbox.spec, slot.mailbox.limit = spec.mailbox, spec.mailbox.limit
        self._slots[spec.id] = slot
        if slot.phase == "backoff":
            slot.stop_backoff()
            launch(slot)

    # -- as a behaviour -----------------------------------------------------------------------------------------------

    async def open(self, slot: Slot) -> None:
        """Begin without children."""
        self._take(slot)
        self._slots.clear()

    async def close(self, slot: Slot) -> None:
        """Stop all children at the same time; a cancellation meanwhile kills them."""
        del slot
        self._begin_closing()
        while self._slots:
            try:
                await self._stop_all()
            except asyncio.CancelledError:
                self.kill_children()

    async def _stop_all(self) -> None:
        """Ask all, give each its time, kill the late ones, then report those that do not even die."""
        for number, slot in enumerate(tuple(self._slots.values())):
            self._ask(slot)
            if number % CLOSE_BATCH == CLOSE_BATCH - 1:
                await asyncio.sleep(0)
        begun_s = self._now_s()
        for slot in sorted(self._slots.values(), key=_patience):
            allowed_s = shutdown_of(slot.spec, slot.kind)
            if isinstance(allowed_s, str) or slot.task is None or slot.killing:
                continue
            left_s = None if allowed_s is None else begun_s + allowed_s - self._now_s()
            if not await exit_within(slot, left_s):
                slot.kill()
        killed_s = self._now_s()
        for slot in tuple(self._slots.values()):
            if not await exit_within(slot, killed_s + KILL_GRACE_S - self._now_s()):
                leak(slot)

    def _ask(self, slot: Slot) -> None:
        if slot.task is None:
            self._finish(slot, PARENT)
        elif slot.spec.shutdown_s == "kill":
            slot.kill()
        else:
            slot.ask_end(Ending(PARENT, final=True, drain=slot.spec.drain))

    def _now_s(self) -> float:
        return self._own().floor.clock.monotonic()

    def _exhausted(self, slot: Slot, reason: ExitReason) -> None:
        if not self._quarantines:
            super()._exhausted(slot, reason)
            return
        slot.phase = "quarantined"
        slot.refuse = partial(_quarantined, slot)
        slot.fail_everything(slot.refuse)
        slot.resolve_start_waiters(slot.refuse)
        emit(self, "quarantined", slot, reason)

    def _let_go(self, slot: Slot, reason: ExitReason) -> None:
        del reason
        if self._slots.get(slot.id) is slot:
            del self._slots[slot.id]


def _quarantined(slot: Slot) -> ServerError:
    return ServerQuarantined(
        f"server {shown(slot.id)} is quarantined: it crashed after {slot.attempt} restarts in a row;"
        f" release({shown(slot.id)}) starts it again"
    )


def _patience(slot: Slot) -> float:
    allowed_s = shutdown_of(slot.spec, slot.kind)
    if allowed_s is None:
        return float("inf")
    return 0.0 if isinstance(allowed_s, str) else allowed_s
