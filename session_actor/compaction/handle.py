"""The part of a session's handle that lets summaries stand for old frames, and takes assumptions back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import anyio

from session_actor import telemetry
from session_actor.commands import CommitCompaction, Pin, Retract, Uncompact
from session_actor.errors import InvalidArgument
from session_actor.given.given_numbers import check_seconds
from session_actor.service.deadline import no_longer_than
from session_actor.window.handle import Asks

from .errors import SummaryRejected
from .retracting import down, key, stated_in

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from typing import Any

    from session_actor.commands import Target
    from session_actor.frames import Frame, Usage
    from session_actor.persistence import Level

    from .judged import Judged
    from .overlays import Compaction
    from .plan import Plan

EVENT: Final = ("session_actor", "compaction")
"""What events of compactions are called; `start`, `stop` or `rejected` follows."""

_SEARCHED: Final = 512
"""So many frames are searched between two turns of the loop."""


class Compacts(Asks):
    """Compactions, pins and retractions.

    The last four arguments of the changes, what cancelling does and what all may raise are as in `Changes`.
    """

    __slots__ = ()

    async def prepare_compaction(
        self,
        instructions: str | None = None,
        *,
        model: str | None = None,
        summarizer_window: int | None = None,
        timeout_s: float | None = 30.0,
    ) -> Plan | None:
        """Plan what a summary could stand for: old exchanges, then old steps of the one that goes on.

        What was said last stays (20,000 tokens, or a quarter of the window), as do pinned frames and calls that wait
        for their result. Ask a model the plan's `prompts`, and give what it writes to `commit_compaction`. Nothing is
        changed, and the session goes on meanwhile; the event loop is never held for long.

        Args:
            instructions: what the summary should mind besides; None: nothing.
            model: whose window is to have room; None: that of the instructions, else of the newest request.
            summarizer_window: the window of the model that writes the summary [tokens]; None: what the service was
                opened with, else that of `model`.
            timeout_s: how long to wait, loading what is on the disk included [seconds]; None: no limit.

        Returns:
            The plan; None: there is nothing to gain. It is used once, and while it holds: see `commit_compaction`.

        Raises:
            InvalidArgument: no model is known, or an argument can never be right.
            FrameUnreadable: the disk did not give a frame. What every read raises.

        Cancelling gives up the plan and nothing else.
        """
        from .preparing import Wish, prepare

        _check_text("instructions", instructions)
        _check_text("model", model)
        if summarizer_window is not None and (type(summarizer_window) is not int or summarizer_window < 1):
            raise InvalidArgument("summarizer_window", "must be a whole number of tokens of at least 1, or None")
        check_seconds("timeout_s", timeout_s, optional=True)
        options = self._cell.summaries
        wish = Wish(instructions, model, summarizer_window or options.window, options.rule_words)
        state = await self._head_read(timeout_s)
        late = f"no compaction of session {self._cell.id!r} was planned within {timeout_s} s; give it more time"
        with no_longer_than(timeout_s, late):
            plan = await prepare(state, self._on, wish)
        if plan is not None:
            self._tell("start", {"tokens_before": plan.tokens_before}, plan.generation)
        return plan

    async def commit_compaction(
        self,
        plan: Plan,
        text: str,
        usage: Usage | None = None,
        stop_reason: str | None = "end",
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Compaction:
        """Let a summary stand for what a plan covers, from the next request on.

        It is judged as `plan.evaluate` does; what it lacks of the facts is added word for word. All frames stay; goto
        or pop to before the covered frame undoes it, and a branch from before never sees it.

        Args:
            plan: of `prepare_compaction`; it is used once.
            text: what the model wrote.
            usage: what the provider charged for it; it counts in `usage()`. None: not known.
            stop_reason: why the model stopped, in its provider's words; None: not known.
            durability: as for every change.
            timeout_s: as for every change; judging does not count.
            key: as for every change.
            expect_head: as for every change.

        Returns:
            What the compaction is, and what it saves.

        Raises:
            SummaryRejected: the gate refused it; its `verdict` has the reasons: `plan.retry_prompt(verdict)`.
            StalePlan: what the plan was made for has changed: prepare another. What is pushed meanwhile does no harm.
            PlanUsed: the plan was carried out before.
            InvalidArgument: an argument can never be right. What every change raises.

        Nothing was changed then. Cancelling while the summary is judged gives it up; afterwards it gives up the wait.
        """
        judged = await _judged(plan, text, stop_reason)
        await self._load_planned(plan, timeout_s)
        command = CommitCompaction(
            plan, text, usage, stop_reason, judged, on=self._on, durability=durability, key=key, expect_head=expect_head
        )
        return await self._carry_out(command, timeout_s)

    async def _carry_out(self, command: CommitCompaction, timeout_s: float | None) -> Compaction:
        """Send a command, and tell what came of it."""
        try:
            compaction = await self.send(command, timeout_s)
        except SummaryRejected as error:
            verdict = error.verdict
            self._tell("rejected", {"reasons": len(verdict.reasons)}, command.plan.generation, verdict.codes)
            raise
        saved = {"tokens_before": compaction.tokens_before, "tokens_after": compaction.tokens_after}
        self._tell("stop", saved, compaction.generation, () if command.judged is None else command.judged.codes)
        return compaction

    def uncompact(
        self,
        generation: int,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Coroutine[Any, Any, None]:
        """Take a compaction back, on all branches: what it stood for is shown again, or the compaction before it.

        `generation`: its number. Raises CompactionUnknown when there is none in force; what every change raises.
        """
        command = Uncompact(generation, on=self._on, durability=durability, key=key, expect_head=expect_head)
        return self.send(command, timeout_s)

    def pin(
        self,
        frame: Target,
        pinned: bool = True,  # noqa: FBT001, FBT002 - pin(7, False) reads as it is meant
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Coroutine[Any, Any, Frame]:
        """Keep a frame shown, whatever is left out of requests, with the rest of its step; return the frame.

        One that is not shown any more is shown again. `pinned` False: it need not stay any more, also one that was
        pushed with `pinned=True`. Raises FrameUnknown, NameUnknown, EmptyStack; what every change raises.
        """
        command = Pin(frame, pinned, on=self._on, durability=durability, key=key, expect_head=expect_head)
        return self.send(command, timeout_s)

    async def retract(
        self,
        assumption: str,
        note: str | None = None,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Frame:
        """Take back an assumption that turned out to be wrong, as a frame of this path; return that frame.

        The next request tells the model so, before what the user or a tool says next. What came after the frame that
        stated it is contaminated, on every branch: `contaminated()` lists it, with the last clean frame to go back to.
        No summary may use the assumption again.

        Args:
            assumption: as a frame of this path states it, but for white space and Unicode's composed forms.
            note: what is right instead, or why it is wrong; None: not said.
            durability: as for every change.
            timeout_s: as for every change.
            key: as for every change.
            expect_head: as for every change.

        Raises:
            AssumptionUnknown: no frame of the path states it, or it was retracted there already.
            InvalidArgument: it is empty or no str. What every change raises.

        Cancelling while a long path is searched changes nothing; afterwards it gives up the wait, never the record.
        """
        stated = await self._stated(assumption, timeout_s)
        command = Retract(
            assumption, note, stated, on=self._on, durability=durability, key=key, expect_head=expect_head
        )
        return await self.send(command, timeout_s)

    async def _stated(self, assumption: object, timeout_s: float | None) -> int | None:
        """The newest frame that states it; None: none does, or the command will tell what is wrong."""
        state = await self._head_read(timeout_s)
        head, table = state.head_of(self._on), state.table
        if head is None or type(assumption) is not str:
            return None
        if table.shelf is not None:
            await self._read(timeout_s, table.load_path, head)
        wanted = key(assumption)
        for place, frame in enumerate(down(table, head), 1):
            if stated_in(frame, wanted) is not None:
                return frame.id
            if not place % _SEARCHED:
                await asyncio.sleep(0)
        return None

    async def _load_planned(self, plan: Plan, timeout_s: float | None) -> None:
        """Read off the loop what the command compares."""
        state = self._cell.state
        if state is None or state.table.shelf is not None:
            state = await self._head_read(timeout_s)
            basis = getattr(plan, "basis", None)
            await self._read(timeout_s, state.table.load, [frame.id for frame in basis.frames] if basis else ())

    def _tell(self, what: str, measurements: Mapping[str, float], generation: int, codes: tuple[str, ...] = ()) -> None:
        if telemetry.attached:
            state = self._cell.state
            branch = self._on if state is None else state.branch_of(self._on)
            metadata = {"session": self._cell.id, "branch": branch, "generation": generation, "codes": codes}
            telemetry.emit((*EVENT, what), measurements, metadata)


async def _judged(plan: Plan, text: str, stop_reason: str | None) -> Judged | None:
    """What the gate says, found in a thread: it may take 30 ms. None: the command will tell what is wrong."""
    from .judged import Judged
    from .plan import Plan

    if type(plan) is not Plan or type(text) is not str or not (stop_reason is None or type(stop_reason) is str):
        return None
    return await anyio.to_thread.run_sync(Judged, plan, text, stop_reason)


def _check_text(what: str, value: object) -> None:
    if value is not None and type(value) is not str:
        raise InvalidArgument(what, f"must be a str or None, got {type(value).__name__}")
