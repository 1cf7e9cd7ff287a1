"""Compactions that a service makes by itself: in the background from yellow on, and before a request that is at red.

A summariser that hangs, raises or answers nonsense costs time, and nothing else: at red a summary that needs no model
takes the place of its own, and where that has nothing to gain, too, the request is trimmed as ever.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

import anyio

from session_actor import telemetry
from session_actor.budget.report import RED, YELLOW
from session_actor.errors import CallTimeout, SessionActorError
from session_actor.given.plain import is_a, plain_str
from session_actor.handle.handle import Session
from session_actor.supervisors import ChildSpec, DynamicSupervisor, SupervisorError
from session_actor.supervisors.incarnation import runs
from session_actor.window.fitting import unfitted
from session_actor.window.request_options import ask

from .handle import EVENT
from .preparing import Wish, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from session_actor.commands import BuildRequest
    from session_actor.requests.request import Request
    from session_actor.server.cell import Cell
    from session_actor.state.state import State

    from .options import Summaries, Summarizer
    from .plan import Plan

ROUNDS: Final = 2
"""At most so many rounds without a new user turn or without gain."""

_STOP_S: Final = 0.5
"""How long a round may take to end when the service closes."""

Result: TypeAlias = Literal["compacted", "nothing", "failed"]


class _Tries:
    """The rounds of one branch, whether it is asked for by its name or is the one that the head is on."""

    __slots__ = ("count", "exchange", "gained", "told")

    def __init__(self, exchange: int | None) -> None:
        self.exchange = exchange
        self.count = 0
        self.gained = False
        self.told: str | None = None
        """Why there was nothing to gain, as it was told last."""


class _Round:
    """One round at work, with a task of its own."""

    __slots__ = ("branch", "done", "model")

    def __init__(self, branch: str | None, model: str | None, done: asyncio.Future[Result]) -> None:
        self.branch = branch
        self.model = model
        self.done = done


_inside: ContextVar[_Round | None] = ContextVar("session_actor_summarizing", default=None)
"""The round that this code runs inside, if any: what the summariser asks of sessions itself does not wait for rounds.

A task that it began has it for as long as it lives, and waits again as soon as that round has ended."""


def _is_inside() -> bool:
    """Whether this code runs inside a round that is at work."""
    round_ = _inside.get()
    return round_ is not None and not round_.done.done()


class Automatic:
    """The compactions that one service makes by itself; at most one at a time in each session."""

    def __init__(self, summaries: Summaries, summarizer: Summarizer) -> None:
        """`supervisor` takes its place in the service's tree."""
        self._summarizer = summarizer
        self._timeout_s = summaries.timeout_s
        self._rounds: dict[Cell, _Round] = {}
        self._tries: WeakKeyDictionary[Cell, dict[str | None, _Tries]] = WeakKeyDictionary()
        self._started = 0
        self.supervisor = DynamicSupervisor(name="compactions")

    # --- when ---

    async def before(self, cell: Cell, command: BuildRequest, wait_s: float | None = None) -> None:
        """Make room before a request that would be at red.

        `wait_s`: how long its caller waits for that [seconds]; None: as long as it takes. Raises CallTimeout when that
        is up first: a round that was begun goes on.
        """
        try:
            async with asyncio.timeout(wait_s):
                await self._make_room(cell, command)
        except TimeoutError:
            raise CallTimeout(
                f"no request of session {cell.id!r} in time: a summary that makes room for it is being written, and "
                "that goes on; ask again later, or give it more time"
            ) from None

    async def _make_room(self, cell: Cell, command: BuildRequest) -> None:
        state = cell.state
        if _is_inside() or (state is not None and command.key in state.keys.entries()):
            return
        now = asyncio.get_running_loop().time
        end_s = now() + self._timeout_s
        while (model := self._red_model(cell.state, command)) is not None:
            running = self._rounds.get(cell)
            if running is None:
                running = self._begin(cell, cell.state, command.on, model)
            if running is None:
                break
            await asyncio.wait({running.done}, timeout=max(0.0, end_s - now()))
            is_same = _branch(cell.state, running.branch) == _branch(cell.state, command.on)
            if not running.done.done():
                if is_same:
                    self._give_up(cell, running)
                break
            if is_same and running.model == model:  # else it made room for another: look again
                if running.done.result() != "failed":
                    return
                break
        else:
            return
        await self._extract(cell, command.on, command.model)

    def after(self, cell: Cell, request: Request) -> None:
        """Begin a round in the background when a request that was given out is at yellow."""
        state = cell.state
        event = None if state is None else state.requests.get(request.seq)
        if _is_inside() or state is None or event is None:
            return
        if event.quote.tokens >= YELLOW * event.allowance:
            if cell not in self._rounds:
                self._begin(cell, state, event.on, request.model)
            return
        tries = self._tries_of(cell, event.on)
        if tries is not None and tries.gained:
            tries.count, tries.gained = 0, False

    def _red_model(self, state: State | None, command: BuildRequest) -> str | None:
        """The model that is asked, where the request would be at red; None: it would not."""
        try:
            head = None if state is None else state.head_of(command.on)
            top = None if state is None or head is None else state.table.get(head)
            if state is None or top is None:
                return None
            asked = ask(
                state,
                top,
                command.dialect,
                command.model,
                command.max_output_tokens,
                command.extra,
                command.ephemeral,
            )
            fit = unfitted(state, asked)
        except SessionActorError:  # the command will say the same
            return None
        return asked.model if fit.quote.upper >= RED * fit.allowance else None

    def _begin(self, cell: Cell, state: State | None, branch: str | None, model: str | None) -> _Round | None:
        """Begin a round in a task; None: there were enough, or the service is closing."""
        if state is None or not self._may(cell, state, branch):
            return None
        self._started += 1
        round_ = _Round(branch, model, asyncio.get_running_loop().create_future())
        spec = ChildSpec(
            (cell.id, self._started),
            task=partial(self._run, cell, round_),
            restart="temporary",
            shutdown_s=_STOP_S,
        )
        try:
            self.supervisor.spawn(spec)
        except SupervisorError:
            return None
        self._rounds[cell] = round_
        cell.busy += 1
        return round_

    def _may(self, cell: Cell, state: State, branch: str | None) -> bool:
        """Whether another round may begin, and if so count it."""
        head = state.head_of(branch)
        top = None if head is None else state.table.slot(head)
        exchange = None if top is None else top.exchange
        branches, name = self._tries.setdefault(cell, {}), state.branch_of(branch)
        tries = branches.get(name)
        if tries is None or tries.exchange != exchange:
            tries = branches[name] = _Tries(exchange)
        if tries.count >= ROUNDS:
            return False
        tries.count += 1
        return True

    def _tries_of(self, cell: Cell, branch: str | None) -> _Tries | None:
        return self._tries.get(cell, {}).get(_branch(cell.state, branch))

    def _give_up(self, cell: Cell, round_: _Round) -> None:
        """Wait no longer: its task ends itself, or is killed when the service closes."""
        if self._rounds.get(cell) is round_:
            del self._rounds[cell]
            cell.busy -= 1

    # --- a round ---

    async def _run(self, cell: Cell, round_: _Round) -> None:
        _inside.set(round_)
        result: Result = "failed"
        try:
            async with asyncio.timeout(self._timeout_s):
                result = await self._round(cell, round_)
        except TimeoutError:
            _tell(cell, round_.branch, ("summarizer_late",))
        except Exception as error:  # noqa: BLE001 - the embedder's code may raise anything, and nobody waits for this task
            _tell(cell, round_.branch, ("failed", type(error).__name__))
        finally:
            self._give_up(cell, round_)
            if not round_.done.done():
                round_.done.set_result(result)

    async def _round(self, cell: Cell, round_: _Round) -> Result:
        session = Session(cell, round_.branch)
        plan = await session.prepare_compaction(model=round_.model, timeout_s=None)
        if plan is None:
            await self._nothing(cell, round_.branch, round_.model)
            return "nothing"
        text = await self._written(cell, round_.branch, plan)
        if text is None or self._rounds.get(cell) is not round_:  # it may have come when nobody waited any more
            return "failed"
        await session.commit_compaction(plan, text)
        self._gained(cell, round_.branch)
        return "compacted"

    def _gained(self, cell: Cell, branch: str | None) -> None:
        tries = self._tries_of(cell, branch)
        if tries is not None:
            tries.gained, tries.told = True, None

    async def _nothing(self, cell: Cell, branch: str | None, model: str | None) -> None:
        """Tell that there was nothing to gain, and why, unless that was told already of this exchange."""
        state, tries = cell.state, self._tries_of(cell, branch)
        if not telemetry.attached or state is None or tries is None:
            return
        why, head = "no_gain", state.head_of(branch)
        top = None if head is None else state.table.get(head)
        if top is not None and top.open_calls:
            options = cell.summaries
            wish = Wish(None, model, options.window, options.rule_words, past_calls=True)
            if await prepare(state, branch, wish) is not None:
                why = "open_call"
        if tries.told != why:
            tries.told = why
            metadata = {"session": cell.id, "branch": state.branch_of(branch), "why": why, "automatic": True}
            telemetry.emit((*EVENT, "nothing"), {}, metadata)

    async def _written(self, cell: Cell, branch: str | None, plan: Plan) -> str | None:
        """A summary by the embedder's model that the gate takes; None: there is none.

        It is asked for once more, with the reasons, when the gate refused the first.
        """
        ask = partial(self._ask, cell, branch, plan)
        parts = [await ask(prompt) for prompt in plan.prompts]
        several = len(parts) > 1
        if not parts or (several and not all(parts)):
            return None
        text = await ask(plan.merge_prompt(parts)) if several else parts[0]
        verdict = await anyio.to_thread.run_sync(plan.evaluate, text)
        if verdict.ok:
            return text
        _tell(cell, branch, verdict.codes)
        text = await ask(plan.retry_prompt(verdict, parts if several else ()))
        verdict = await anyio.to_thread.run_sync(plan.evaluate, text)
        if verdict.ok:
            return text
        _tell(cell, branch, verdict.codes)
        return None

    async def _ask(self, cell: Cell, branch: str | None, plan: Plan, prompt: str) -> str:
        """What the model answers; `""` when the summariser raised, of whatever kind, or gave no text."""
        task = asyncio.current_task()
        try:
            answer: object = await self._summarizer(prompt, max_tokens=plan.max_tokens, session_id=cell.id)
        except BaseException as error:
            if isinstance(error, SystemExit | KeyboardInterrupt) or _is_ended(task):
                raise
            answer = error  # the embedder's code may raise anything
        if _is_ended(task):  # it may have swallowed that
            raise asyncio.CancelledError
        if is_a(answer, str):
            return plain_str(answer)
        _tell(cell, branch, ("summarizer_failed", type(answer).__name__))
        return ""

    async def _extract(self, cell: Cell, branch: str | None, model: str | None) -> None:
        """A summary that needs no model; where there is nothing to gain, or it cannot be, the request is trimmed."""
        session = Session(cell, branch)
        try:
            plan = await session.prepare_compaction(model=model)
            if plan is None:
                await self._nothing(cell, branch, model)
            else:
                await session.commit_compaction(plan, await anyio.to_thread.run_sync(plan.extractive))
                self._gained(cell, branch)
        except Exception as error:  # noqa: BLE001 - whatever it is, the request comes
            _tell(cell, branch, ("extract_failed", type(error).__name__))


def _is_ended(task: asyncio.Task[Any] | None) -> bool:
    """Whether the task of a round is being ended: its time is up, the service closes, or the loop is gone."""
    return task is None or task.cancelling() > 0 or not runs(task)


def _branch(state: State | None, branch: str | None) -> str | None:
    """The branch's name, whichever way it was asked for; None: a detached head."""
    return branch if state is None else state.branch_of(branch)


def _tell(cell: Cell, branch: str | None, codes: Sequence[str]) -> None:
    if telemetry.attached:
        metadata = {
            "session": cell.id,
            "branch": _branch(cell.state, branch),
            "codes": tuple(codes),
            "automatic": True,
        }
        telemetry.emit((*EVENT, "rejected"), {}, metadata)
