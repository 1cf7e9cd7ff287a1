"""The server's half of a handover: what a session's server gives, and how the next one takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from session_actor.persistence import RecoveryReport
from session_actor.server import snapshots
from session_actor.server.loading import Recovered, recover
from session_actor.server.outputs import OutputGate
from session_actor.supervisors import GenServer

from . import values
from .errors import HandoverUnusable

if TYPE_CHECKING:
    from session_actor.persistence import Lease, Store
    from session_actor.server.cell import Cell
    from session_actor.state.state import State


class SwappingServer(GenServer):
    """The part of a session's server that is handed over: OTP's code_change, between two messages."""

    __slots__ = (
        "_cell",
        "_held",
        "_lease",
        "_position",
        "_save_at",
        "_saved_next_id",
        "_saved_seq",
        "_state",
        "_store",
    )

    version: ClassVar[int] = values.VERSION

    _cell: Cell
    _held: OutputGate | None
    _lease: Lease
    _position: int
    _save_at: int
    _saved_next_id: int
    _saved_seq: int
    _state: State
    _store: Store

    @property
    def _gate(self) -> OutputGate:
        """Made by the first reply that must wait: most sessions never have one."""
        gate = self._held
        if gate is None:
            gate = self._held = OutputGate(self._store, self.defer)
        return gate

    def swap_out(self) -> values.Value:
        """The session's state as a plain value."""
        return values.exported(self._state, self._lease, self._saved_seq, self._saved_next_id)

    async def code_change(self, old_version: int, state: Any) -> Any:
        """Run the chain, then what the embedder gave `SessionService.take`."""
        return values.changed(old_version, state, own=self._cell.code_change)

    async def arrive(self, lease: Lease) -> Recovered | None:
        """The state that another generation of the library handed over; None: only the records tell it."""
        cell = self._cell
        value, cell.arrival = cell.arrival, None
        try:
            state = None if value is None else values.arrived(value, lease, cell.shelf(lease))
        except HandoverUnusable:
            return None
        if value is None or state is None:
            return None
        if state.head is not None:
            await state.table.load((state.head,))
        return Recovered(state, RecoveryReport(lease.session, lease.birth, state.seq), value["saved_seq"])

    async def swap_in(self, value: values.Value) -> None:
        """Go on where the value ends. When it raises, nothing of the old server's has changed."""
        cell, store, former = self._cell, self._store, self._slot.server
        lease = cell.held_lease()
        state = values.arrived(value, lease, cell.shelf(lease))
        self._saved_seq, self._saved_next_id = value["saved_seq"], value["saved_next_id"]
        if state is None:
            state, _, self._saved_seq = await recover(store, lease, cell.shelf)
            self._saved_next_id = state.table.cold_below
        if isinstance(former, SwappingServer):  # else it is of other classes, and the frames are read again
            state.table = former._state.table  # noqa: SLF001 - of its own class
            self._gate.go_on_after(former._gate)  # noqa: SLF001 - of its own class
        elif state.head is not None:
            await state.table.load((state.head,))
        state.models = cell.models
        self._lease, self._state = lease, state
        self._save_at = max(self._saved_seq + snapshots.EVERY_RECORDS, state.seq + 1)
        self._position = store.health().appended_position
        cell.replace(state)
