"""Conversations to be compacted: one that is made, of a given size, and the real session."""

from __future__ import annotations

import asyncio
from itertools import cycle
from typing import Any

from bench.prose import passages
from bench.real_calls import SESSION
from session_actor.blocks import ToolCall
from session_actor.commands import AddAssistant, AddToolResult, AddUser, Command, Push
from session_actor.compaction.plan import Wanted
from session_actor.demo.transcript import Transcript
from session_actor.events import Created
from session_actor.frames import Turn
from session_actor.ledger.entries import Target
from session_actor.ledger.view import WHOLE
from session_actor.models import profile_of
from session_actor.requests import dialect_of
from session_actor.state.apply import apply
from session_actor.state.decide import decide
from session_actor.state.state import State
from session_actor.window.rendered import Rendered
from session_actor.window.units import units_of
from session_actor.window.window import shown_frames

MODEL = "claude-sonnet-4-5"
RESULT_BYTES = 6_000
RESULT_CAP_TOKENS = 25_000
RULES = (
    "Never push to the branch release-{} without asking me.",
    "You must not change config/limits-{}.yaml.",
    "Use at most {} retries for each call.",
    "Do not touch the tests of module {} unless they fail.",
)


class Talk:
    """A session's state, without a session around it."""

    def __init__(self) -> None:
        """Begin it."""
        self.state = State()
        apply(self.state, Created(session="bench"), 1, 0)

    def do(self, command: Command) -> Any:
        """Carry out a command and return its reply."""
        decision: Any = decide(self.state, command)
        event, _, found = decision
        return apply(self.state, event, self.state.seq + 1, 1_000_000, found)

    def wanted(self, window: int | None = None) -> Wanted:
        """What a plan for its head is made from. `window`: the model's; None: what it really has."""
        state, profile = self.state, profile_of(MODEL)
        target = Target("anthropic", MODEL, profile.family, RESULT_CAP_TOKENS)
        rendered = Rendered(target, WHOLE, profile, dialect_of("anthropic"))
        rendered.grow(shown_frames(state.table, state.head or 0, WHOLE))
        return Wanted(
            session=state.session,
            generation=1,
            frames=state.stack().frames(),
            units=units_of(rendered, rendered.piece(rendered.open_chunk()), state.table, 1.0),
            window=window or profile.window,
            family=profile.family,
        )


def made(size_bytes: int) -> Talk:
    """A conversation of about so many bytes: rules, decisions, and tools that answer at length."""
    talk, texts, rules = Talk(), passages(RESULT_BYTES), cycle(RULES)
    for number in range(size_bytes // (RESULT_BYTES + 600)):
        rule = f" {next(rules).format(number)}" if number % 4 == 0 else ""
        talk.do(AddUser(f"Look into src/part_{number}/main.py (OPS-{4000 + number}) and fix what is wrong.{rule}"))
        call = ToolCall(f"call-{number}", "read", f'{{"path":"src/part_{number}/main.py"}}')
        talk.do(AddAssistant("I read the file first.", tool_calls=[call]))
        talk.do(AddToolResult(call.id, next(texts)))
        decisions = [f"Part {number} keeps its interface, and gets a cache of {16 + number} entries."]
        talk.do(AddAssistant(next(texts)[:300], decisions=decisions))
    return talk


def real() -> Talk | None:
    """The real session; None: it is not there."""
    if not SESSION.exists():
        return None
    talk = Talk()
    for turn in asyncio.run(_turns()):
        talk.do(Push(turns=(turn,)))
    return talk


async def _turns() -> list[Turn]:
    return [entry.content async for entry in Transcript(SESSION) if isinstance(entry.content, Turn)]
