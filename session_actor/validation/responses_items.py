"""The items of a Responses input, in their order: turns, calls and results, and reasoning with what follows it.

A turn of the model is a run of its items: reasoning, messages, calls. The results of its calls follow, all together.

Sources of the ids' forms are what the API answers: "Expected an ID that begins with 'fc'"
(github.com/continuedev/continue/issues/11494), "… with 'ctc'" (github.com/can1357/oh-my-pi/issues/977), "… with 'msg'"
(github.com/BerriAI/litellm/pull/27426), "… with 'rs'" (github.com/jlcodes99/cockpit-tools/issues/2090), "Expected an ID
that contains letters, numbers, underscores, or dashes" (github.com/langchain-ai/langchainjs/issues/11044).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from . import tools
from .problems import as_mapping, named
from .responses_parts import message, output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

CALL_ID: Final = re.compile(r"[!-~]{1,64}")
_CALLS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
_RESULTS: Final = {result: call for call, result in _CALLS.items()}
# Run by the server, with their results inside or beside them, or marks of the conversation: sent back as they came.
_OF_SERVER: Final = frozenset({
    "code_interpreter_call", "compaction", "file_search_call", "image_generation_call", "mcp_approval_request",
    "mcp_call", "mcp_list_tools", "program", "program_output", "tool_search_call", "tool_search_output",
    "web_search_call",
})  # fmt: skip
_OTHERS: Final = frozenset({
    "additional_tools", "compaction_trigger", "configuration_update", "item_reference", "mcp_approval_response",
})  # fmt: skip
_ITEM_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BEGINNINGS: Final = {"function_call": "fc", "custom_tool_call": "ctc", "message": "msg", "reasoning": "rs"}
"""What the ids of items begin with. Other types have beginnings of their own that no source tells."""
_NULLABLE: Final = frozenset({
    "approval_request_id", "code", "encrypted_content", "error", "output", "outputs", "result", "results",
})  # fmt: skip
"""Keys of the model's items that may be None; any other the API calls an unknown parameter then."""


class Items:
    """The input up to an item."""

    def __init__(self, problems: Problems, tool_name: re.Pattern[str], *, stored: bool, linked: bool) -> None:
        """Nothing yet. `stored`: the provider keeps items; `linked`: the input goes on from what it keeps."""
        self._problems = problems
        self._tool_name = tool_name
        self._stored = stored
        self._linked = linked
        self._open: dict[str, str] = {}  # the calls of the turn before: id -> path
        self._kinds: dict[str, str] = {}  # every call id -> type of its call
        self._answering = False
        self._answered: set[str] = set()
        self._reasoning: str | None = None  # the path of reasoning that still waits for what follows it
        self._ids: set[str] = set()
        self._can_go_on = False
        self._trigger: str | None = None  # the path of a compaction_trigger that nothing followed yet
        self._path = "input"

    def item(self, path: str, value: object) -> None:
        """Check the next item."""
        item = as_mapping(value)
        if self._trigger is not None:
            self._problems.add(self._trigger, "last", "must be the last item: it asks for a compaction")
            self._trigger = None
        self._path = path
        if item is None:
            self._problems.add(path, "type", f"must be an object, got {named(value)}")
            return
        kind = item.get("type")
        if kind is None and "role" in item:
            kind = "message"
        self._own_id(path, item, kind)
        if kind == "message":
            self._message(path, item)
        elif kind == "reasoning":
            self._of_model()
            self._reason(path, item)
        elif isinstance(kind, str) and kind in _CALLS:
            self._of_model()
            self._call(path, kind, item)
            self._reasoning = None
        elif isinstance(kind, str) and kind in _RESULTS:
            self._result(path, kind, item)
        elif isinstance(kind, str) and kind in _OF_SERVER:
            self._none_absent(path, item)
            self._of_model()
            self._reasoning = None
        elif isinstance(kind, str) and kind in _OTHERS:
            self._other(path, kind, item)
        else:
            self._problems.add(f"{path}.type", "unknown", f"is {named(kind)}, which is no type of an input item")

    def close(self) -> None:
        """Nothing follows: the model can only go on after a user's message or a result."""
        self._dangling()
        self._unanswered()
        if not self._can_go_on:
            self._problems.add(self._path, "last", "the last item must be a user's message or the result of a call")

    def _none_absent(self, path: str, item: Mapping[str, Any]) -> None:
        """Check that no key is given as None, in the item and in its action."""
        for key, value in item.items():
            if value is None and key not in _NULLABLE:
                self._problems.add(f"{path}.{named(key)[1:-1]}", "unknown", "must not be None: leave the key out")
        action = as_mapping(item.get("action"))
        if action is not None:
            self._none_absent(f"{path}.action", action)

    def _other(self, path: str, kind: str, item: Mapping[str, Any]) -> None:
        self._of_others(can_go_on=True)
        if kind == "item_reference":
            self._problems.required_text(path, item, "id")
            if not self._stored and not self._linked:
                self._problems.add(path, "conflict", "refers to a kept item, and store is false: nothing is kept")
        self._trigger = path if kind == "compaction_trigger" else None

    def _own_id(self, path: str, item: Mapping[str, Any], kind: object) -> None:
        value = item.get("id")
        if value is None or kind == "item_reference" or _id_key(item) == "id":
            return
        own = self._problems.text(f"{path}.id", value)
        if own is None:
            return
        if own in self._ids:
            self._problems.add(f"{path}.id", "duplicate-id", f"another item has the id {named(own)}")
        self._ids.add(own)
        beginning = _BEGINNINGS.get(kind, "") if isinstance(kind, str) else ""
        if not _ITEM_ID.fullmatch(own):
            self._problems.add(f"{path}.id", "item-id", f"must match {_ITEM_ID.pattern}")
        elif not own.startswith(beginning):
            self._problems.add(f"{path}.id", "item-id", f"{named(own)} must begin with '{beginning}': it is a {kind}")

    def _message(self, path: str, item: Mapping[str, Any]) -> None:
        role = message(self._problems, path, item)
        if role == "assistant":
            self._of_model()
            self._reasoning = None
        else:
            self._of_others(can_go_on=role in ("user", None))

    def _of_model(self) -> None:
        """An item of a turn of the model: it goes on with that turn, or begins one after the results of the last."""
        if self._answering:
            self._unanswered()
        self._can_go_on = False

    def _of_others(self, *, can_go_on: bool) -> None:
        self._dangling()
        self._unanswered()
        self._can_go_on = can_go_on

    def _dangling(self) -> None:
        if self._reasoning is not None:
            self._problems.add(self._reasoning, "reasoning", "must be followed by the message or the call it led to")
            self._reasoning = None

    def _unanswered(self) -> None:
        for call_id, path in self._open.items():
            self._problems.add(path, "unanswered", f"no output for {named(call_id)} right after its turn")
        self._open.clear()
        self._answering = False
        self._answered.clear()

    def _reason(self, path: str, item: Mapping[str, Any]) -> None:
        problems = self._problems
        self._reasoning = path
        self._none_absent(path, item)
        if item.get("status") is not None:
            problems.add(f"{path}.status", "unknown", "is only given out, and refused when it is sent back")
        if self._stored or item.get("id") is not None:
            problems.required_text(path, item, "id")
        summary = problems.required(path, item, "summary")
        if summary is not None:  # an empty list must be there too
            for place, part in enumerate(problems.sequence(f"{path}.summary", summary, filled=False) or ()):
                where = f"{path}.summary[{place}]"
                found = problems.mapping(where, part)
                if found is not None and found.get("type") != "summary_text":
                    problems.add(where, "unknown", "must be of type 'summary_text'")
        encrypted = item.get("encrypted_content")
        if encrypted is not None:
            problems.text(f"{path}.encrypted_content", encrypted)
        elif not self._stored:
            problems.add(path, "reasoning", "must have its encrypted_content, since store is false")

    def _call(self, path: str, kind: str, item: Mapping[str, Any]) -> None:
        problems = self._problems
        call_id = problems.required_text(path, item, "call_id")
        if call_id is not None:
            if not CALL_ID.fullmatch(call_id):
                problems.add(f"{path}.call_id", "call-id", "must be 1 to 64 characters of ASCII without spaces")
            if call_id in self._kinds:
                problems.add(f"{path}.call_id", "duplicate-id", f"another call has the id {named(call_id)}")
            self._kinds[call_id] = kind
            self._open[call_id] = path
        if kind in ("function_call", "custom_tool_call"):
            tools.tool_name(problems, path, item, self._tool_name)
        if kind == "function_call":
            tools.json_arguments(problems, path, item)

    def _result(self, path: str, kind: str, item: Mapping[str, Any]) -> None:
        problems = self._problems
        self._dangling()
        self._answering = self._can_go_on = True
        call_id = problems.required_text(path, item, _id_key(item))
        if call_id is not None:
            self._pair(path, kind, call_id)
        if kind in ("function_call_output", "custom_tool_call_output"):
            value = problems.required(path, item, "output")
            if value is not None and value != "":
                output(problems, f"{path}.output", value)

    def _pair(self, path: str, kind: str, call_id: str) -> None:
        """Find the call of a result among those of the turn before."""
        if self._open.pop(call_id, None) is None:
            if call_id in self._answered:
                self._problems.add(path, "answered-twice", f"a second output for {named(call_id)}")
            elif not self._linked:
                self._problems.add(path, "no-call", f"no call {named(call_id)} in the turn before")
        elif self._kinds[call_id] != _RESULTS[kind]:
            self._problems.add(path, "no-call", f"the call {named(call_id)} is a {self._kinds[call_id]}")
        self._answered.add(call_id)


def _id_key(item: Mapping[str, Any]) -> str:
    """Where a result names its call: the result of a local shell has that for its own id."""
    return "id" if item.get("type") == "local_shell_call_output" and "call_id" not in item else "call_id"
