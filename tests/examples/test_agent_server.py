"""The agent of the examples, run for real: uvicorn on loopback, two providers' SDKs, kills, clients that leave."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import httpx
import pytest

from session_actor import estimate_tokens, validate_request

from .loading import listening, load_example

DIALECTS = ("anthropic", "openai_chat")
TOO_LONG = {
    "anthropic": "prompt is too long: 9000 tokens > 8000 maximum",
    "openai_chat": "This model's maximum context length is 8000 tokens, but your messages resulted in 9000 tokens.",
}
WINDOW = 8_000


scripted_provider = load_example("scripted_provider")


@cache
def agent_server() -> ModuleType:
    """The example, which imports both SDKs."""
    return load_example("agent_server")


class Event(NamedTuple):
    kind: str
    data: dict[str, Any]


class Model:
    """Thinks by the rules of the example, keeps what it was sent, and does some things on demand."""

    def __init__(self):
        self.bodies: list[dict[str, Any]] = []
        self.left = asyncio.Event()
        self.refusals: list[str] = []
        self.failures: list[str] = []  # what it says when it is asked for a summary, before it writes one

    async def __call__(self, body):
        self.bodies.append(body)
        if self.failures and asks_for_summary(body):
            yield self.failures.pop(0)
            return
        if self.refusals:
            raise scripted_provider.Refused(400, self.refusals.pop())
        said = scripted_provider.newest(body)[0]
        if said == "Break.":
            yield "one "
            yield scripted_provider.Call("read_gauge", {"place": "Mole"})
            raise RuntimeError("the connection is closed now")
        if said == "Count.":
            yield "one "
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        async for piece in scripted_provider.rules(body):
            yield piece

    def check(self) -> None:
        """Every request was one that its provider takes, and left room for the answer."""
        assert self.bodies
        for body in self.bodies:
            assert validate_request(dialect_of(body), body) == []
            shown = [body.get("system"), body.get("tools"), body["messages"]]
            room = body.get("max_tokens") or body["max_completion_tokens"]
            assert room > 0
            assert sum(estimate_tokens(text) for text in strings(shown)) + room <= WINDOW


def asks_for_summary(body: dict[str, Any]) -> bool:
    return "## Open question" in scripted_provider.newest(body)[0]


def dialect_of(body: dict[str, Any]) -> str:
    return "anthropic" if "max_tokens" in body else "openai_chat"


def strings(value: object) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def said(body: dict[str, Any]) -> str:
    """What a request shows, as one text."""
    return json.dumps(body["messages"])


@pytest.fixture
async def model(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Model]:
    """The model behind a provider to which both SDKs go; at the end all that it was sent is checked."""
    thinks = Model()
    async with listening(scripted_provider.create_app(thinks)) as address:
        for name, value in (("ANTHROPIC", address), ("OPENAI", f"{address}/v1")):
            monkeypatch.setenv(f"{name}_BASE_URL", value)
            monkeypatch.setenv(f"{name}_API_KEY", "none")
        yield thinks
    thinks.check()


@asynccontextmanager
async def agent(directory: Path, skills=None, summarizer=None) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the example, and give a client of it."""
    app = agent_server().create_app(str(directory), skills or agent_server().SKILLS, summarizer)
    async with listening(app) as address, httpx.AsyncClient(base_url=address, timeout=30.0) as client:
        yield client


@asynccontextmanager
async def agent_process(directory: Path) -> AsyncIterator[tuple[httpx.AsyncClient, asyncio.subprocess.Process]]:
    """Serve the example in a process of its own, and give a client of it."""
    arguments = [str(Path(__file__).parent / "child_agent.py"), str(directory / "store"), str(directory / "mark")]
    child = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        port = int(await child.stdout.readline())
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30.0) as client:
            yield client, child
    finally:
        if child.returncode is None:
            child.terminate()
        await child.wait()


async def ask(client: httpx.AsyncClient, question: str, dialect: str = "anthropic") -> list[Event]:
    """Ask, and return all that was told."""
    reply = await client.post("/chat/mira", params={"dialect": dialect}, content=question)
    return events_of(reply)


async def decide(client: httpx.AsyncClient, call: list[int], answer: str, dialect: str = "anthropic") -> list[Event]:
    """Decide on a call that waits, and return all that was told."""
    frame, index = call
    reply = await client.post(f"/calls/mira/{frame}/{index}", params={"dialect": dialect}, content=answer)
    return events_of(reply)


def events_of(reply: httpx.Response) -> list[Event]:
    assert (reply.status_code, reply.headers["content-type"][:17]) == (200, "text/event-stream")
    return [read(event) for event in reply.text.split("\n\n")[:-1]]


def read(event: str) -> Event:
    kind, data = event.split("\n")
    return Event(kind.removeprefix("event: "), json.loads(data.removeprefix("data: ")))


def told(events: list[Event], kind: str = "text") -> str:
    return "".join(event.data.get("text") or event.data.get("result", "") for event in events if event.kind == kind)


async def waiting(client: httpx.AsyncClient) -> list[list[int]]:
    return (await client.get("/chat/mira")).json()["waiting"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_answer_is_streamed_and_kept(tmp_path: Path, model: Model, dialect: str):
    async with agent(tmp_path / "store") as client:
        events = await ask(client, "Is the tide in?", dialect)
        history = (await client.get("/chat/mira")).json()
    assert [event.data.get("text") for event in events] == ["Is ", "the ", "tide ", "in? ", None]
    assert events[-1].kind == "done"
    assert [turn["text"] for turn in history["said"]] == ["Is the tide in?", "Is the tide in? "]
    assert [dialect_of(body) for body in model.bodies] == [dialect]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_tools_run_side_by_side_and_the_model_gets_what_all_of_them_gave(
    tmp_path: Path, model: Model, dialect: str
):
    gauge, both = agent_server().SKILLS[0], asyncio.Barrier(2)

    async def read_gauge(place: str) -> str:
        await asyncio.wait_for(both.wait(), 30)  # until the other one runs, too
        return await gauge.run(place)

    async with agent(tmp_path / "store", [replace(gauge, run=read_gauge)]) as client:
        events = await ask(client, "Compare the gauges.", dialect)
    assert told(events) == "I'll look at both. The tools say: Mole: 2.00 m Lock: 2.00 m "
    assert [event.kind for event in events].count("result") == 2
    assert len(model.bodies) == 2


async def test_what_a_tool_raises_is_told_to_the_model(tmp_path: Path, model: Model):
    async def broken(place: str) -> str:
        raise OSError(f"no gauge at {place}")

    async with agent(tmp_path / "store", [replace(agent_server().SKILLS[0], run=broken)]) as client:
        assert "OSError: no gauge at Mole" in told(await ask(client, "Compare the gauges."))
        await ask(client, "Close the lock.")
    results = [part for message in model.bodies[-1]["messages"] for part in message["content"] if "is_error" in part]
    assert ["no gauge at Mole" in str(part) for part in results] == [True, False, False]
    assert "There is no tool close_lock." in str(results[-1])


@pytest.mark.parametrize(
    ("dialect", "answer", "result"),
    [("anthropic", "no", "The user does not allow it."), ("openai_chat", "yes", "The north lock is closed.")],
)
async def test_a_call_that_needs_approval_waits_for_it(
    tmp_path: Path, model: Model, dialect: str, answer: str, result: str
):
    async with agent(tmp_path / "store") as client:
        events = await ask(client, "Close the lock.", dialect)
        assert [event.kind for event in events] == ["held", "done"]
        assert json.loads(events[0].data["arguments"]) == {"place": "north"}
        (call,) = await waiting(client)
        assert call == [events[0].data["frame"], events[0].data["index"]]
        assert len(model.bodies) == 1
        assert told(await decide(client, call, answer, dialect)).endswith(f"{result} ")
        assert await waiting(client) == []
        (again,) = await decide(client, call, answer, dialect)
        assert (again.kind, "no such call waits" in again.data["error"]) == ("error", True)


async def test_what_stands_at_the_top_of_the_example_works(tmp_path: Path, model: Model):
    (numbers,) = re.findall(r"/calls/mira/(\d+)/(\d+) ", agent_server().__doc__)
    async with agent(tmp_path / "store") as client:
        await ask(client, "Compare the gauges.")
        await ask(client, "Close the lock.", "openai_chat")
        assert await waiting(client) == [[int(number) for number in numbers]]
        assert (await client.get("/chat/nobody")).status_code == 404


async def test_what_was_cut_short_after_it_was_approved_is_not_run_again(tmp_path: Path, model: Model):
    runs: list[str] = []
    runs_now = asyncio.Event()

    async def close_lock(place: str) -> str:
        runs.append(place)
        runs_now.set()
        await asyncio.Event().wait()
        return "closed"

    async with agent(tmp_path / "store", [replace(agent_server().SKILLS[1], run=close_lock)]) as client:
        await ask(client, "Close the lock.")
        ((frame, index),) = await waiting(client)
        async with client.stream("POST", f"/calls/mira/{frame}/{index}", content="yes"):
            await runs_now.wait()
        assert "Find out how far it came" in told(await ask(client, ""))
    assert runs == ["north"]


async def test_what_was_approved_after_the_conversation_went_on_is_told_when_it_comes(tmp_path: Path, model: Model):
    async with agent(tmp_path / "store") as client:
        await ask(client, "Close the lock.", "openai_chat")
        assert told(await ask(client, "How are you?")) == "How are you? "
        (call,) = await waiting(client)
        await decide(client, call, "yes", "openai_chat")
    assert "Waiting for human approval" in said(model.bodies[-1])
    assert "The north lock is closed." in model.bodies[-1]["messages"][-1]["content"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_had_come_when_the_client_left_is_kept(tmp_path: Path, model: Model, dialect: str):
    async with agent(tmp_path / "store") as client:
        async with client.stream("POST", "/chat/mira", params={"dialect": dialect}, content="Count.") as reply:
            assert read((await anext(reply.aiter_text())).strip()) == ("text", {"text": "one "})
        await model.left.wait()
        assert told(await ask(client, "And now?", dialect)) == "And now? "
        history = (await client.get("/chat/mira")).json()["said"]
    assert [turn["text"] for turn in history] == ["Count.", "one ", "And now?", "And now? "]
    assert history[1]["stop"] is None
    assert "one" in said(model.bodies[-1])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_had_come_when_the_provider_broke_off_is_kept(tmp_path: Path, model: Model, dialect: str):
    async with agent(tmp_path / "store") as client:
        events = await ask(client, "Break.", dialect)
        assert [event.kind for event in events] == ["text", "error"]
        events = await ask(client, "And now?", dialect)
        first = "text" if dialect == "anthropic" else "result"  # there the call's arguments had come whole
        assert [event.kind for event in events[:1] + events[-1:]] == [first, "done"]
        history = (await client.get("/chat/mira")).json()["said"]
    assert [turn["text"] for turn in history[:2]] == ["Break.", "one "]
    assert ("one" in said(model.bodies[-1]), "And now?" in said(model.bodies[-1])) == (True, True)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_request_that_is_too_long_for_the_provider_is_followed_by_a_shorter_one(
    tmp_path: Path, model: Model, dialect: str
):
    async with agent(tmp_path / "store") as client:
        for number in range(3):
            await ask(client, f"{number} " + "wind and water " * 500, dialect)
        model.refusals.append(TOO_LONG[dialect])
        assert told(await ask(client, "Still there?", dialect)).endswith("Still there? ")
    refused, taken = model.bodies[-2:]
    assert len(said(taken)) < len(said(refused))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_refusal_is_told_and_the_question_is_kept(tmp_path: Path, model: Model, dialect: str):
    async with agent(tmp_path / "store") as client:
        model.refusals.append("no such account")
        (event,) = await ask(client, "Hello?", dialect)
        assert (event.kind, "no such account" in event.data["error"]) == ("error", True)
        assert told(await ask(client, "", dialect)) == "Hello? "


async def test_a_long_conversation_stays_within_a_small_window_whoever_answers(tmp_path: Path, model: Model):
    async with agent(tmp_path / "store") as client:
        for number in range(24):
            dialect = DIALECTS[number // 3 % 2]
            question = "Compare the gauges. " if number % 4 == 3 else f"Question {number}: "
            events = await ask(client, question + "wind and water " * 200, dialect)
            assert events[-1].kind == "done"
    lengths = [len(said(body)) for body in model.bodies]
    assert any(later < earlier / 1.3 for earlier, later in pairwise(lengths))
    assert "Question 0:" in said(model.bodies[0])
    assert "Question 0:" not in said(model.bodies[-1])
    assert {dialect_of(body) for body in model.bodies} == set(DIALECTS)


async def test_a_long_conversation_is_summed_up_by_a_provider_that_fails_twice(tmp_path: Path, model: Model):
    rule = "Never open gate OPS-441 at night."
    model.failures = ["I'm sorry, I can't help with that.", "## Goal\nNone\n"]
    asked = [f"Note {rule}"]
    async with agent(tmp_path / "store", summarizer=agent_server().summarize) as client:
        await ask(client, asked[0])
        for number in range(14):
            asked.append(f"Question {number}: " + "wind and water " * 200)
            events = await ask(client, asked[-1], DIALECTS[number % 2])
            assert events[-1].kind == "done"
        history = (await client.get("/chat/mira")).json()["said"]
    assert [turn["text"] for turn in history if turn["role"] == "user"] == asked
    assert len(history) == 2 * len(asked)
    summaries = [body for body in model.bodies if asks_for_summary(body)]
    assert (model.failures, len(summaries) > 2) == ([], True)
    requests = [body for body in model.bodies if not asks_for_summary(body)]
    assert len(requests) == len(asked)
    assert all(rule in said(body) for body in requests)
    newest = said(requests[-1])
    assert ("watches the water of the harbour" in newest, "Question 0:" in newest) == (True, False)
    async with agent(tmp_path / "store") as client:
        assert (await client.get("/chat/mira")).json()["said"] == history


async def test_a_server_that_is_killed_in_the_middle_of_a_tool_call_goes_on_where_it_was(tmp_path: Path, model: Model):
    async with agent_process(tmp_path) as (client, child):
        await ask(client, "Close the lock.")
        async with client.stream("POST", "/chat/mira", content="Compare the gauges.") as reply:
            lines = reply.aiter_lines()
            while "Lock: " not in await anext(lines):  # the other gauge has been asked, too, and does not answer
                pass
            assert (tmp_path / "mark").exists()
            os.kill(child.pid, signal.SIGKILL)
            with pytest.raises(httpx.RemoteProtocolError):
                [line async for line in lines]
    before = len(model.bodies)
    async with agent_process(tmp_path) as (client, child):
        (call,) = await waiting(client)
        assert told(await ask(client, "")) == "The tools say: Mole: 2.00 m Lock: 2.00 m "
        await decide(client, call, "yes", "openai_chat")
        assert await waiting(client) == []
    resumed, approved = model.bodies[before:]
    assert "Compare the gauges." in said(resumed)
    assert dialect_of(approved) == "openai_chat"
    assert "The north lock is closed." in approved["messages"][-1]["content"]
    assert "The tools say: Mole" in said(approved)
