"""A session without a server that asks for requests, and checks each of them."""

from __future__ import annotations

import json
from typing import Any

from session_actor import ModelProfile, validate_request
from session_actor.commands import BuildRequest, Configure
from session_actor.events import Requested
from session_actor.frames import Tool
from session_actor.requests.canonical import START, canonical, chained, sealed
from session_actor.state.decide import decide
from session_actor.state.keys import Repeat
from session_actor.state.state import State
from session_actor.window.pressure import budget_of

from ..live import Live
from .sdk_shapes import shape_problems

DIALECTS = ("anthropic", "openai_chat", "openai_responses", "gemini")
MESSAGES = {"anthropic": "messages", "openai_chat": "messages", "openai_responses": "input", "gemini": "contents"}
LIMIT = {"anthropic": "max_tokens", "openai_chat": "max_completion_tokens", "openai_responses": "max_output_tokens"}

SMALL = ModelProfile(name="small", window=32_000, max_output=8_000, family="o200k", sees_images=True)
TINY = ModelProfile(name="tiny", window=4_000, max_output=1_000, family="o200k")
HALF = ModelProfile(name="half", window=16_000, max_output=8_000, family="o200k", sees_images=True)
MODELS = {"small": SMALL, "half": HALF, "tiny": TINY}

TOOLS = [Tool("ls", "List a folder.", {"type": "object", "properties": {"path": {"type": "string"}}})]


def same(request: object, other: object) -> bool:
    """Whether two requests are so byte for byte."""
    return canonical(request) == canonical(other)


def messages_of(request: Any) -> list[Any]:
    """The messages of a request."""
    return request[MESSAGES[request.dialect]]


def hash_of(request: Any) -> str:
    """The hash of a request by its definition, from what was given out alone."""
    key = MESSAGES[request.dialect]
    messages = request[key]
    lead = int(request.dialect == "openai_chat" and bool(messages) and messages[0]["role"] == "system")
    return sealed(chained(START, messages[lead:]), {**request, key: messages[:lead]})


def newest(request: Any, count: int = 20) -> dict[str, Any]:
    """The same request with its newest messages only, so many at least, behind a short one of the user."""
    messages = messages_of(request)
    start = next((at for at in range(len(messages) - count, 0, -1) if begins(messages[at - 1], messages[at])), 0)
    words = {"parts": [{"text": "Go on."}]} if request.dialect == "gemini" else {"content": "Go on."}
    shorter = [{"role": "user", **words}, *messages[start:]] if start else messages
    return {**request, MESSAGES[request.dialect]: shorter}


def begins(before: dict[str, Any], message: dict[str, Any]) -> bool:
    """Whether the model speaks first in a message, and the user or a result in the one before it."""
    is_models = [
        one.get("role") in {"assistant", "model"} or one.get("type") in {"function_call", "reasoning"}
        for one in (before, message)
    ]
    return is_models == [False, True]


def output_of(request: Any) -> int:
    """The most that a request asks for."""
    if request.dialect == "gemini":
        return request["config"]["max_output_tokens"]
    return request[LIMIT[request.dialect]]


def shown(request: Any) -> str:
    """Everything in a request as one text, to look for what it shows."""
    return json.dumps(request, default=lambda value: value.hex(), ensure_ascii=False)


def settled(state: State) -> State:
    """A state as the service makes it known: with the profiles of these tests."""
    state.models = MODELS
    return state


class Asked(Live):
    """As `Live`; `ask` builds a request and checks what must hold of every one of them."""

    SHAPES_EVERY = 10
    """How often the SDK's types are asked, too: they are slow."""

    WHOLE_EVERY = 1
    """How often all messages are looked at; else the newest only, unless a trim has just changed the older ones."""

    def __init__(self, model: str | None = "small", session: str = "user-42") -> None:
        super().__init__(session)
        settled(self.state)
        if model is not None:
            self.do(Configure(system="Be brief.", tools=TOOLS, model=model))

    def do(self, command: Any) -> Any:
        """Decide, apply and record, without looking whether `decide` changed anything: for long conversations."""
        decision = decide(self.state, command)
        if isinstance(decision, Repeat):
            return decision.reply
        return self.record(decision[0], decision[2])

    def ask(self, dialect: str = "anthropic", **options: Any) -> Any:
        """The next request, checked."""
        request = self.do(BuildRequest(dialect, **options))
        self.check(request)
        if options.get("ephemeral") is None:
            self.check_recorded(request)
        return request

    @property
    def asked(self) -> Requested:
        """The record of the newest request."""
        return self.state.requests[self.state.seq]

    def check(self, request: Any) -> None:
        """A provider takes it, and it fits."""
        whole = request.seq % self.WHOLE_EVERY == 0 or self.asked.made is not None
        assert validate_request(request.dialect, request if whole else newest(request)) == []
        if request.seq % self.SHAPES_EVERY == 0:
            assert shape_problems(request.dialect, request) == []
        profile = MODELS.get(request.model)
        if profile is not None:
            assert 0 < output_of(request) <= profile.max_output
            assert request.input_tokens <= self.asked.allowance
            assert request.input_tokens + output_of(request) <= profile.window

    def check_recorded(self, request: Any) -> None:
        """What is given out is what was hashed and counted: nothing is left out of it, or put into it, behind that."""
        if request.seq % self.WHOLE_EVERY == 0 or self.asked.made is not None:
            assert self.asked.hash == hash_of(request)
        assert budget_of(self.state, self.asked.on, request.model, quietly=True).used == request.input_tokens

    def again(self, dialect: str = "anthropic", state: State | None = None, **options: Any) -> Any:
        """The same request from a state that was recovered (None: from the records), without recording it."""
        state = settled(self.replayed() if state is None else state)
        decision = decide(state, BuildRequest(dialect, **options))
        return decision[2]
