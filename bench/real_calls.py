"""The calls of a real session whose usage is known: what each request would have been quoted, and what it was.

The session (a file of the Pi agent) does not hold its system prompt and tools: they are what calibration has to find.
What its client did with turns that were broken off is not known either; their calls are left out, as the ledger does.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from session_actor.blocks import CallRef, ToolCall, ToolResult
from session_actor.budget.calibration import learn, price
from session_actor.budget.costs import cost_of
from session_actor.budget.readings import NOTHING, Key, Shown
from session_actor.demo.transcript import ModelChange, Transcript
from session_actor.ledger.entries import AssistantEntry, ResultsEntry, ShownResult, Target, UserEntry
from session_actor.models import profile_of

if TYPE_CHECKING:
    from session_actor.budget.readings import Learned
    from session_actor.frames import Turn
    from session_actor.ledger.entries import Entry

SESSION = Path(
    os.environ.get("REAL_SESSION", Path(__file__).parents[2] / "shared" / "transcripts" / "pi_large_session.jsonl")
)
"""The variable REAL_SESSION names another place."""

BROKEN_OFF = ("aborted", "error")
RESULT_CAP_TOKENS = 25_000


class RealCall(NamedTuple):
    """One request, its length by the provider's count, and as quoted with all, some and none of what was known."""

    real: int
    quoted: int
    upper: int
    repriced: int
    """Without an anchor, as after a trim: from the measured differences."""
    estimated: int


def read() -> list[RealCall] | None:
    """Every call of the session that has its usage, in order; None: the session is not there."""
    if not SESSION.exists():
        return None
    return _calls(asyncio.run(_turns()))


async def _turns() -> list[Turn]:
    return [entry.content async for entry in Transcript(SESSION) if not isinstance(entry.content, ModelChange)]


def _calls(turns: list[Turn]) -> list[RealCall]:
    found: list[RealCall] = []
    learned: Learned = NOTHING
    sums, names = [0], dict[str, str]()
    for turn in turns:
        if turn.role == "assistant" and turn.usage is not None and turn.model and turn.dialect:
            key, head = Key(turn.model, turn.dialect), len(sums) - 1
            quote, other = (
                price(Shown(key, view, head, 0, sums[head], 0, sums.__getitem__), learned, lambda _frame: True)
                for view in (0, 1)
            )
            real = turn.usage.input_tokens
            learned = learn(learned, quote, real, lambda _frame: True)
            if real:
                found.append(RealCall(real, quote.tokens, quote.upper, other.tokens, sums[head]))
        sums.append(sums[-1] + _cost(turn, names))
    return found


def _cost(turn: Turn, names: dict[str, str]) -> int:
    """The estimate of a turn for the model that most of the session is with."""
    profile = profile_of("claude-sonnet-4-5")
    target = Target("anthropic", profile.name, profile.family, RESULT_CAP_TOKENS)
    names.update({block.id: block.name for block in turn.blocks if isinstance(block, ToolCall)})
    return cost_of(_entries(turn, names), target, profile)


def _entries(turn: Turn, names: dict[str, str]) -> list[Entry]:
    broken = turn.stop_reason in BROKEN_OFF
    blocks = tuple(block for block in turn.blocks if not (broken and isinstance(block, ToolCall)))
    if not blocks:
        return []
    if turn.role == "tool":
        results = [block for block in blocks if isinstance(block, ToolResult)]
        return [ResultsEntry(tuple(_shown(result, names) for result in results))]
    return [AssistantEntry(blocks) if turn.role == "assistant" else UserEntry(blocks)]  # type: ignore[arg-type]


def _shown(result: ToolResult, names: dict[str, str]) -> ShownResult:
    name = names.get(result.call_id, "")
    return ShownResult(CallRef(1, 0), result.call_id, name, result.blocks, is_error=result.is_error)
