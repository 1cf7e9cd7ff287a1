"""The rules of OpenAI's Chat Completions API, which many other servers speak as well.

Sources: API reference "Create chat completion"; docs "Function calling" (every tool call is answered by a tool message
right after it), "Images and vision"; and what the API answers: "An assistant message with 'tool_calls' must be followed
by tool messages responding to each 'tool_call_id'", ids "string too long. Expected a string with maximum length 40"
(github.com/vercel/ai/issues/5171), "[] is too short" for empty lists, "Invalid 'messages[0].name': string does not
match pattern", "Invalid 'messages[2].tool_calls': array too long. Expected an array with maximum length 128"
(github.com/openai/openai-dotnet/issues/317). That turns alternate is asked by the chat templates of most open models,
not by OpenAI itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from . import tools
from .chat_parts import parts
from .openai_answers import json_word, reasons, sampling
from .openai_choices import choice
from .problems import as_mapping, named
from .schemas import list_of, openai_schema
from .strict import response_format, strict_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CALL_ID: Final = re.compile(r"[!-~]{1,40}")
_LIMITS: Final = ("max_completion_tokens", "max_tokens")
_ONLY_WITH_TOOLS: Final = ("tool_choice", "parallel_tool_calls")
_MOST_STOPS: Final = 4
_MOST_TOOLS: Final = 128
_MOST_CALLS: Final = 128
_SPEAKER: Final = re.compile(r"[^\s<|\\/>]{1,64}")
_ASIDE: Final = ("system", "developer")
_ROLES: Final = (*_ASIDE, "user", "assistant", "tool")


def check(request: Mapping[str, Any], problems: Problems) -> None:
    """Note every problem of a request."""
    problems.required_text("", request, "model", blank=False)
    limits = [key for key in _LIMITS if request.get(key) is not None]
    for key in limits:
        problems.positive(key, request[key])
    if len(limits) > 1:
        problems.add(limits[0], "limit", "must not be given together with max_tokens")
    elif limits == ["max_tokens"] and reasons(request):
        problems.add("max_tokens", "conflict", "must be max_completion_tokens: this model always reasons")
    sampling(problems, request)
    _tools(request, problems)
    _functions(request, problems)
    _answer(request, problems)
    value = problems.required("", request, "messages")
    messages = () if value is None else problems.sequence("messages", value) or ()
    turns = _Turns(problems)
    for place, item in enumerate(messages):
        path = f"messages[{place}]"
        message = as_mapping(item)
        if message is None:
            problems.add(path, "type", f"must be an object, got {named(item)}")
            turns.side = "?"
        else:
            turns.message(path, message)
    if messages:
        turns.close()


def _tools(request: Mapping[str, Any], problems: Problems) -> None:
    names: set[str] = set()
    listed = tools.listed(problems, request)
    if request.get("tools") in ([], ()):
        problems.add("tools", "empty", "must not be an empty list: leave the key out")
    if len(listed) > _MOST_TOOLS:
        problems.add("tools", "limit", f"must hold at most {_MOST_TOOLS} tools")
    for path, tool in listed:
        kind = tool.get("type")
        if kind not in ("function", "custom"):
            problems.add(f"{path}.type", "unknown", f"is {named(kind)}; it must be 'function' or 'custom'")
            continue
        value = problems.required(path, tool, kind)
        inner = None if value is None else problems.mapping(f"{path}.{kind}", value)
        if inner is not None:
            _definition(problems, f"{path}.{kind}", inner, names)
    for key in _ONLY_WITH_TOOLS:
        if request.get(key) is not None and not listed:
            problems.add(key, "no-tools", "must not be given without tools")
    choice(problems, request.get("tool_choice"), names, nested=True)


def _definition(problems: Problems, path: str, inner: Mapping[str, Any], names: set[str]) -> None:
    tools.distinct(problems, path, tools.tool_name(problems, path, inner, TOOL_NAME), names)
    if inner.get("parameters") is not None:  # without them it takes none
        tools.object_schema(problems, f"{path}.parameters", inner["parameters"])
        openai_schema(problems, f"{path}.parameters", inner["parameters"])
    if inner.get("strict") is True:
        strict_schema(problems, f"{path}.parameters", inner.get("parameters"))


def _functions(request: Mapping[str, Any], problems: Problems) -> None:
    """Check what tools were before they were called so."""
    names: set[str] = set()
    for path, function in tools.listed(problems, request, "functions"):
        _definition(problems, path, function, names)
    called = request.get("function_call")
    if called is not None and not request.get("functions"):
        problems.add("function_call", "no-tools", "must not be given without functions")
    elif (one := as_mapping(called)) is not None:
        tools.chosen(problems, "function_call", one, names)


def _answer(request: Mapping[str, Any], problems: Problems) -> None:
    """Check what is asked of the answer."""
    wanted = as_mapping(request.get("response_format"))
    if wanted is not None and wanted.get("type") == "json_schema":
        value = problems.required("response_format", wanted, "json_schema")
        schema = None if value is None else problems.mapping("response_format.json_schema", value)
        if schema is not None:
            response_format(problems, "response_format.json_schema", schema)
    elif wanted is not None and wanted.get("type") == "json_object":
        json_word(problems, "messages", "response_format", (request.get("messages"),))
    speaks = "audio" in (list_of(request.get("modalities")) or ())
    if speaks and request.get("audio") is None:
        problems.add("audio", "missing", "must be given, since modalities has 'audio'")
    stop = request.get("stop")
    if isinstance(stop, list | tuple) and len(stop) > _MOST_STOPS:  # pyright: ignore[reportUnknownArgumentType] - of anything
        problems.add("stop", "limit", f"must hold at most {_MOST_STOPS} texts")
    if request.get("top_logprobs") is not None and request.get("logprobs") is not True:
        problems.add("logprobs", "missing", "must be true beside top_logprobs")


class _Turns:
    """The conversation up to a message."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self.side: str | None = None
        """Who spoke last, instructions left aside; None: nobody yet."""
        self._path = "messages"
        self._open: dict[str, str] = {}
        self._turn: set[str] = set()

    def message(self, path: str, message: Mapping[str, Any]) -> None:
        role = message.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            self._problems.add(f"{path}.role", "unknown", f"is {named(role)}; it must be one of {', '.join(_ROLES)}")
            self.side, self._path = "?", path
            return
        if role == "tool":
            self._result(path, message)
        else:
            self._unanswered()
        if role not in _ASIDE:
            self._alternate(path, role)
            self.side, self._path = role, path
        elif self.side == "user":
            self.side = "?"  # instructions stand between two messages of the user
        if role != "tool" and message.get("name") is not None:
            self._speaker(path, message["name"])
        if role == "assistant":
            self._assistant(path, message)
            return
        value = self._problems.required(path, message, "content")
        if value is not None and not (role == "tool" and value == ""):
            parts(self._problems, f"{path}.content", value, role)

    def close(self) -> None:
        """Nothing follows: the model can only go on after a user's message or a tool's."""
        if self.side == "assistant":
            self._problems.add(self._path, "last", "the last message must be a user's or a tool's")
        elif self.side is None:
            self._problems.add("messages", "last", "must hold a message of the user")
        self._unanswered()

    def _alternate(self, path: str, role: str) -> None:
        if self.side is None and role != "user":
            self._problems.add(
                path, "first", f"is of role '{role}'; the first message but instructions must be a user's"
            )
        elif role == self.side and role != "tool":
            self._problems.add(path, "alternate", f"is of role '{role}' like the turn before: merge the two")

    def _speaker(self, path: str, name: object) -> None:
        text = self._problems.text(f"{path}.name", name)
        if text is not None and not _SPEAKER.fullmatch(text):
            self._problems.add(f"{path}.name", "name", f"must match {_SPEAKER.pattern}")

    def _result(self, path: str, message: Mapping[str, Any]) -> None:
        call_id = self._problems.required_text(path, message, "tool_call_id")
        if call_id is None:
            return
        if self._open.pop(call_id, None) is not None:
            return
        if call_id in self._turn:
            self._problems.add(path, "answered-twice", f"a second tool message for {named(call_id)}")
        else:
            self._problems.add(path, "no-call", f"no tool call {named(call_id)} in the assistant's message before")

    def _unanswered(self) -> None:
        for call_id, path in self._open.items():
            self._problems.add(path, "unanswered", f"no tool message for {named(call_id)} right after its message")
        self._open.clear()
        self._turn.clear()

    def _assistant(self, path: str, message: Mapping[str, Any]) -> None:
        problems = self._problems
        content, calls = message.get("content"), message.get("tool_calls")
        if content == "" and calls:
            pass  # as many servers write it
        elif content is not None:
            parts(problems, f"{path}.content", content, "assistant")
        elif calls is None and all(message.get(key) is None for key in ("refusal", "audio", "function_call")):
            problems.add(path, "empty", "has neither a content nor tool_calls")
        if message.get("refusal") is not None:
            problems.text(f"{path}.refusal", message["refusal"])
        if calls is None:
            return
        listed = problems.sequence(f"{path}.tool_calls", calls) or ()
        if len(listed) > _MOST_CALLS:
            problems.add(f"{path}.tool_calls", "limit", f"must hold at most {_MOST_CALLS} calls")
        for place, item in enumerate(listed):
            where = f"{path}.tool_calls[{place}]"
            call = problems.mapping(where, item)
            if call is not None:
                self._call(where, call)

    def _call(self, path: str, call: Mapping[str, Any]) -> None:
        problems = self._problems
        call_id = problems.required_text(path, call, "id")
        if call_id is not None:
            if not CALL_ID.fullmatch(call_id):
                problems.add(f"{path}.id", "call-id", "must be 1 to 40 characters of ASCII without spaces")
            if call_id in self._turn:
                problems.add(f"{path}.id", "duplicate-id", f"another call of this turn has the id {named(call_id)}")
            self._turn.add(call_id)
            self._open[call_id] = path
        kind = call.get("type")
        if kind not in ("function", "custom"):
            problems.add(f"{path}.type", "unknown", f"is {named(kind)}; it must be 'function' or 'custom'")
            return
        value = problems.required(path, call, kind)
        place = f"{path}.{kind}"
        inner = None if value is None else problems.mapping(place, value)
        if inner is None:
            return
        tools.tool_name(problems, place, inner, TOOL_NAME)
        if kind == "function":
            tools.json_arguments(problems, place, inner)
        elif not isinstance(inner.get("input"), str):
            problems.add(f"{place}.input", "type", f"must be a str, got {named(inner.get('input'))}")
