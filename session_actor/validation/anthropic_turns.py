"""Whose turn it is in Anthropic's messages, and whether every call is answered.

Sources: docs "Handle tool calls" (results right after their calls, all in one message, first in it), "Parallel tool
use", "Errors" (common validation errors), "Mid-conversation system messages" (after a user's turn); and what the API
answers: "`tool_use` ids must be unique", "If an assistant message contains any thinking blocks, the first block must
be `thinking` or `redacted_thinking`" (github.com/anthropics/claude-code/issues/20705), "The final block in an assistant
message cannot be `thinking`" (github.com/tailcallhq/forgecode/issues/2107), "final assistant content cannot end with
trailing whitespace", "source tool `srvtoolu_…` not found for tool use block" (github.com/vercel/ai/issues/12504).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .anthropic_blocks import IN_ASSISTANT, IN_USER, SERVER_CALLS, SERVER_RESULTS, THINKING, content
from .problems import named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .anthropic_whole import Whole
    from .problems import Problems

_Blocks: TypeAlias = "list[tuple[str, str, Mapping[str, Any]]]"
_GOES_ON: Final = THINKING | SERVER_CALLS | SERVER_RESULTS | {"compaction", "fallback"}
"""What a turn has that the provider itself paused: sending it back is no answer begun."""


class Turns:
    """The conversation up to a message."""

    def __init__(self, problems: Problems) -> None:
        """Nothing was said yet."""
        self._problems = problems
        self._role: str | None = None
        self._open: dict[str, str] = {}  # the calls of the turn before: id -> path
        self._server: dict[str, str] = {}  # the server's own calls without a result
        self._programs: set[str] = set()  # all of the server's own calls so far
        self._seen: set[str] = set()
        self.tool_blocks = False
        self.prefill: str | None = None
        """The path of a last message that begins the answer; None: there is none. A paused turn is none."""

    def broken(self) -> None:
        """A message of no role at all stands here: the next one is compared with nothing."""
        self._role = "?"

    def message(self, path: str, message: Mapping[str, Any], whole: Whole, *, last: bool) -> None:
        """Check the next message."""
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            self._problems.add(f"{path}.role", "unknown", f"is {named(role)}; it must be 'user' or 'assistant'")
            self.broken()
            return
        self._turn(path, role)
        value = self._problems.required(path, message, "content")
        place = f"{path}.content"
        if role == "user":
            blocks = [] if value is None else content(self._problems, whole, place, value, IN_USER)
            self._results(blocks)
        elif role == "system":
            if value is not None:
                content(self._problems, whole, place, value, ("text",))
        else:
            blocks = [] if value is None else content(self._problems, whole, place, value, IN_ASSISTANT)
            self._order(blocks)
            self._calls(blocks)
            self._server_calls(blocks, last=last)
            if last:
                kinds = {kind for _, kind, _ in blocks}
                if kinds.isdisjoint(_GOES_ON):
                    self.prefill = path
                self._ends_well(place, value, blocks)

    def close(self) -> None:
        """No more messages follow."""
        self._unanswered()

    def _turn(self, path: str, role: str) -> None:
        """Check that it is this side's turn; a system message follows a user's and is followed by an assistant's."""
        before, self._role = self._role, role
        if before is None:
            if role != "user":
                self._problems.add(path, "first", f"is of role '{role}'; the first message must be the user's")
        elif role == "system":
            if before == "assistant":
                self._problems.add(path, "alternate", "a system message may only come right after a user's")
        elif role == before or (role == "user" and before == "system"):
            self._problems.add(path, "alternate", f"is of role '{role}' like the turn before: merge the two")
        if role == "assistant":
            self._unanswered()

    def _results(self, blocks: _Blocks) -> None:
        """Check that the results are those of the calls before, and stand first."""
        other = False
        answered: set[str] = set()
        for path, kind, block in blocks:
            if kind != "tool_result":
                other = True
                continue
            self.tool_blocks = True
            if other:
                self._problems.add(path, "order", "a tool_result must stand before all other blocks of its message")
            call_id = block.get("tool_use_id")
            if not isinstance(call_id, str):
                continue
            if call_id in answered:
                self._problems.add(path, "answered-twice", f"a second tool_result for {named(call_id)}")
            elif self._open.pop(call_id, None) is None:
                self._problems.add(path, "no-call", f"no tool_use {named(call_id)} in the assistant's message before")
            answered.add(call_id)
        self._unanswered()

    def _unanswered(self) -> None:
        for call_id, path in self._open.items():
            self._problems.add(
                path, "unanswered", f"no tool_result for {named(call_id)} in the user's message after it"
            )
        self._open.clear()

    def _order(self, blocks: _Blocks) -> None:
        """Check that thinking stands first, and nothing of the model's own after a call."""
        kinds = [kind for _, kind, _ in blocks]
        called = False
        for path, kind, _ in blocks:
            if called and (kind == "text" or kind in THINKING):
                self._problems.add(path, "order", f"a {kind} block must not come after a tool_use of its message")
            called = called or kind == "tool_use"
        if not THINKING.isdisjoint(kinds):
            if kinds[0] not in THINKING:
                self._problems.add(blocks[0][0], "order", "a message with thinking must begin with it")
            if kinds[-1] in THINKING:
                self._problems.add(blocks[-1][0], "order", "a message must not end with thinking")

    def _calls(self, blocks: _Blocks) -> None:
        for path, kind, block in blocks:
            call_id = block.get("id")
            if kind != "tool_use":
                continue
            self.tool_blocks = True
            if isinstance(call_id, str):
                self._new_id(path, call_id)
                self._open[call_id] = path

    def _new_id(self, path: str, call_id: str) -> None:
        if call_id in self._seen:
            self._problems.add(f"{path}.id", "duplicate-id", f"another call has the id {named(call_id)}")
        self._seen.add(call_id)

    def _server_calls(self, blocks: _Blocks, *, last: bool) -> None:
        """Check that the server's calls have their results: here, or after the calls that they make themselves."""
        for path, kind, block in blocks:
            call_id = block.get("id") if kind in SERVER_CALLS else block.get("tool_use_id")
            if not isinstance(call_id, str):
                continue
            if kind in SERVER_CALLS:
                self._new_id(path, call_id)
                self._server[call_id] = path
                self._programs.add(call_id)
            elif kind in SERVER_RESULTS and self._server.pop(call_id, None) is None:
                self._problems.add(path, "no-call", f"no call {named(call_id)} of the server's tools before it")
        self._callers(blocks)
        if last or self._open:  # a paused turn goes on; a program waits for our results
            return
        for call_id, path in self._server.items():
            self._problems.add(path, "unanswered", f"no result for {named(call_id)} in its message")
        self._server.clear()

    def _callers(self, blocks: _Blocks) -> None:
        """Check that calls are of programs that are there: "source tool `srvtoolu_…` not found for tool use block"."""
        for path, kind, block in blocks:
            caller = self._problems.mapping(f"{path}.caller", block["caller"]) if block.get("caller") else None
            made_by = None if caller is None or kind != "tool_use" else caller.get("tool_id")
            if isinstance(made_by, str) and made_by not in self._programs:
                self._problems.add(f"{path}.caller", "no-call", f"no program {named(made_by)} before it")

    def _ends_well(self, place: str, value: object, blocks: _Blocks) -> None:
        """Check what the model shall go on with."""
        if isinstance(value, str):
            text: object = value
        elif blocks and blocks[-1][1] == "text":
            place, text = f"{blocks[-1][0]}.text", blocks[-1][2].get("text")
        else:
            return
        if isinstance(text, str) and text[-1:].isspace() and not text.isspace():
            self._problems.add(place, "trailing-space", "the last message must not end with whitespace")
