"""Telling what is done to sessions: each operation as a span, and how far the disk is behind."""

from __future__ import annotations

import re
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, cast

from session_actor.persistence import NotDurable, PersistenceError
from session_actor.supervisors import NO_REPLY, CrashSummary, Refusal

from . import telemetry
from .change import change_of
from .commands import CommitCompaction
from .events import Ended, Pushed, RequestRefused
from .frames import Frame
from .handle.feed import reached
from .requests.request import Request
from .window.pressure import watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence import Level
    from session_actor.supervisors import Event

    from .commands import Command
    from .events import AnyEvent
    from .frames import Turn
    from .server.cell import Cell
    from .server.outputs import OutputGate
    from .state.state import State

SESSION: Final = ("session_actor", "session")
OPERATION: Final = ("session_actor", "operation")
LAG: Final = (*telemetry.STORE, "lag")
_LEVELS: Final[tuple[Level, ...]] = ("written", "synced")
_COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def tell(what: str, session: str, measurements: dict[str, float] | None = None, **metadata: object) -> None:
    """Tell an event of a session's life, if anybody is attached."""
    if telemetry.attached:
        telemetry.emit((*SESSION, what), measurements or {}, {"session": session, **metadata})


_OF_SESSIONS: Final = frozenset({"crashed", "restarting", "quarantined", "released", "leaked", "mailbox_full"})
"""What is told of a session by what its supervisor tells."""
_OF_WORKERS: Final = frozenset({"crashed", "restarting", "gave_up", "leaked"})
WORKER: Final = ("session_actor", "worker")


def told_of_session(event: Event, session: str) -> None:
    """Tell what a supervisor tells of a session."""
    if event.kind in _OF_SESSIONS:
        measured, metadata = _told_of(event)
        tell(event.kind, session, measured, **metadata)


def _told_of(event: Event) -> tuple[dict[str, float], dict[str, object]]:
    """Measurements and metadata of what a supervisor tells."""
    measured: dict[str, float] = {"restarts": event.restarts}
    if event.kind == "restarting":
        measured["delay_s"] = event.delay_s
    if event.kind == "mailbox_full":
        measured["waiting"] = event.waiting
    error = None if event.reason is None else event.reason.error
    if event.kind in ("released", "mailbox_full") or error is None:
        return measured, {}
    if isinstance(error, CrashSummary):
        return measured, {"error": str(error).partition(" ")[0]}
    return measured, {"error": type(error).__name__}


def worker_event(event: Event) -> None:
    """Tell of what keeps a service running: of its store's workers, its sweeper, its hooks and compactions."""
    if event.kind in _OF_WORKERS and telemetry.attached:
        measured, metadata = _told_of(event)
        child: object = event.id
        name = cast("tuple[object, ...]", child)[0] if isinstance(child, tuple) else child
        telemetry.emit((*WORKER, event.kind), measured, {"worker": str(name), **metadata})


def operation(session: str, name: str, **metadata: object) -> telemetry.Span:
    """The span of an operation: `with` it, or start it."""
    return telemetry.Span(OPERATION, {"session": session, "operation": name, **metadata})


def called(kind: type) -> str:
    """What a command is called as a method: `AddUser` is `add_user`."""
    name = _names.get(kind)
    if name is None:
        name = _names[kind] = re.sub(r"(?<=.)([A-Z])", r"_\1", kind.__name__).lower()
    return name


_names: Final[dict[type, str]] = {}


class Watch:
    """One change of a session that somebody watches: what it changed, until its reply leaves."""

    __slots__ = ("_cell", "_gate", "_level", "_noted")

    def __init__(self, cell: Cell, gate: OutputGate, level: Level) -> None:
        """`level`: at which its reply leaves."""
        self._cell = cell
        self._gate = gate
        self._level: Level = level
        self._noted: tuple[AnyEvent, int, int, int] | None = None

    def note(self, event: AnyEvent, seq: int, at_us: int, position: int) -> None:
        """It added this record."""
        self._noted = event, seq, at_us, position

    def run(self, command: Command, change: Callable[[], Any], state: State) -> Any:
        """Carry it out by `change`, and tell of it."""
        if not telemetry.attached:
            try:
                return change()
            finally:
                self.show()
        name = called(type(command))
        what: dict[str, object] = {"session": self._cell.id, "operation": name}
        span = telemetry.Span(OPERATION, {**what, "branch": command.on, "durability": self._level}).start()
        try:
            reply = change()
        except BaseException as error:
            span.metadata["refused"] = isinstance(error, Refusal)
            span.fail(error)
            raise
        finally:
            self.show()
        noted = self._noted
        if noted is not None and state.window is not None:
            watch(state, command.on)
        self._finish(span, command, reply)
        if noted is not None:
            probe(self._cell, noted[3])
        return reply

    def _finish(self, span: telemetry.Span, command: Command, reply: object) -> None:
        span.metadata["repeated"] = self._noted is None
        if self._noted is not None:
            event, seq, _, position = self._noted
            span.metadata["seq"] = seq
            _describe(span, event, command, self._cell)
            if reply is NO_REPLY:
                self._gate.after(partial(self._left, span, position, _content(self._gate.newest)))
                return
            if type(event) is Ended:
                tell("ended", self._cell.id)
        span.stop(_content(reply))

    def _left(self, span: telemetry.Span, position: int, content: object) -> None:
        """The reply has left, or its error."""
        if reached(self._cell, self._level, position):
            noted = self._noted
            if noted is not None and type(noted[0]) is Ended:
                tell("ended", self._cell.id)
            span.stop(content)
        else:
            span.metadata["refused"] = False
            span.fail(NotDurable(0, self._level, ""))

    def show(self) -> None:
        """Let readers of the session's changes see it when its reply leaves."""
        feed = self._cell.feed
        if feed is not None and self._noted is not None:
            event, seq, at_us, position = self._noted
            feed.add(change_of(event, seq, at_us), self._level, position, self._gate.after)


def _describe(span: telemetry.Span, event: AnyEvent, command: Command, cell: Cell) -> None:
    told, state = span.metadata, cell.state
    told["kind"] = "pushed" if event.kind == "added" else event.kind
    if isinstance(event, Pushed):
        told["frame"] = event.id
        turn: Turn | None = event.turns[-1] if event.turns else None
        if turn is not None and turn.role == "assistant":
            told |= {"model": turn.model, "dialect": turn.dialect, "stop_reason": turn.stop_reason}
            told["request"] = event.answers
            if turn.usage is not None:
                span.measured |= {name: getattr(turn.usage, name) for name in _COUNTS}
    elif isinstance(event, RequestRefused):
        told["request"] = event.request
    elif isinstance(command, CommitCompaction):
        told["generation"] = getattr(event, "generation", None)
    elif state is not None and event.kind == "requested":
        asked = state.requests.get(state.seq)
        if asked is not None:
            key = asked.quote.key
            told |= {"model": key.model, "dialect": key.dialect, "request": state.seq, "head": asked.quote.head}
            span.measured |= {"input_tokens": asked.quote.tokens, "max_output_tokens": asked.max_output_tokens}


def _content(reply: object) -> object:
    """What was said, for those who asked for it."""
    if isinstance(reply, Frame | Request):
        return reply
    return reply if isinstance(reply, list) and reply else None  # pyright: ignore[reportUnknownVariableType]


def probe(cell: Cell, position: int) -> None:
    """Measure how long a record takes to reach each level: one at a time, whatever is written meanwhile."""
    store, probing = cell.store, cell.home.probing
    for level in _LEVELS:
        if level in probing:
            continue
        probing.add(level)
        arrived = partial(_arrived, cell, level, perf_counter_ns())
        try:
            if level == "written":
                store.when(level, position, arrived)
            else:
                getattr(store, "note_synced")(position, arrived)  # noqa: B009 - not every store has it
        except (PersistenceError, AttributeError):
            continue  # the store has no such level: it stays among the probed, and is left alone


def _arrived(cell: Cell, level: Level, begun_ns: int, error: BaseException | None) -> None:
    cell.home.probing.discard(level)
    if error is None and telemetry.attached:
        telemetry.emit(LAG, {"lag_ns": perf_counter_ns() - begun_ns}, {"level": level})
