"""The chat server of the examples, run for real: uvicorn on loopback, and a request task that is cancelled."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.requests import ClientDisconnect

import session_actor
from session_actor import SessionService

from .loading import load_example, serving

KEYED = {"Idempotency-Key": "7"}


http_answers, example = load_example("http_answers"), load_example("starlette_app")


class SlowModel:
    """Says one word, then thinks until it is told to go on."""

    def __init__(self):
        self.said_one = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.ended = asyncio.Event()

    async def __call__(self, stack) -> AsyncIterator[str]:
        try:
            yield "one "
            self.said_one.set()
            await self.may_go_on.wait()
            yield "two"
        finally:
            self.ended.set()


def served(directory: Path, model=example.parrot) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    """Serve the app for real, and give a client of it."""
    return serving(example.create_app(str(directory), model))


async def history_of(client: httpx.AsyncClient, user: str, turns: int) -> list[tuple[str, str, str | None]]:
    """Read the conversation once it has so many turns: what a cancelled request records comes a moment later."""
    while True:
        said = (await client.get(f"/chat/{user}")).json()
        if len(said) >= turns:
            return [(turn["role"], turn["text"], turn["stop"]) for turn in said]


async def test_a_question_is_answered_and_both_are_kept(tmp_path: Path):
    async with served(tmp_path / "store") as client:
        reply = await client.post("/chat/mira", content="Is the tide in?")
        assert (reply.status_code, reply.text) == (200, "Is the tide in? ")
    async with served(tmp_path / "store") as client:
        said = await history_of(client, "mira", 2)
    assert said == [("user", "Is the tide in?", None), ("assistant", "Is the tide in? ", "end_turn")]


async def test_a_request_that_is_sent_again_gets_the_first_answer_and_changes_nothing(tmp_path: Path):
    async with served(tmp_path / "store") as client:
        await client.post("/chat/mira", content="Now?", headers=KEYED)
        await client.post("/chat/mira", content="And then?")
        reply = await client.post("/chat/mira", content="Now?", headers=KEYED)
        assert (reply.status_code, reply.text) == (200, "Now? ")
        assert len(await history_of(client, "mira", 4)) == 4


async def start_and_kill_in_the_middle(directory: Path) -> None:
    """Run the app in a process of its own, ask it with a key, and kill it after the first word of its answer."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(Path(__file__).parent / "child_server.py"), str(directory), stdout=asyncio.subprocess.PIPE
    )
    try:
        port = int(await child.stdout.readline())
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            request = client.stream("POST", "/chat/mira", content="question A", headers=KEYED)
            async with request as reply:
                words = reply.aiter_text()
                assert await anext(words) == "one "
                os.kill(child.pid, signal.SIGKILL)
                with pytest.raises(httpx.RemoteProtocolError):
                    await anext(words)
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_a_question_that_a_kill_left_without_an_answer_is_answered_when_it_is_sent_again(tmp_path: Path):
    await start_and_kill_in_the_middle(tmp_path / "store")
    async with served(tmp_path / "store") as client:
        reply = await client.post("/chat/mira", content="question A", headers=KEYED)
        assert (reply.status_code, reply.text) == (200, "question A ")
        said = await history_of(client, "mira", 2)
    assert said == [("user", "question A", None), ("assistant", "question A ", "end_turn")]


async def test_a_question_that_the_conversation_has_left_behind_never_gets_anothers_answer(tmp_path: Path):
    await start_and_kill_in_the_middle(tmp_path / "store")
    async with served(tmp_path / "store") as client:
        assert (await client.post("/chat/mira", content="question B")).text == "question B "
        reply = await client.post("/chat/mira", content="question A", headers=KEYED)
        assert (reply.status_code, "went on without an answer" in reply.json()["error"]) == (409, True)
        assert len(await history_of(client, "mira", 3)) == 3


async def test_an_answer_that_was_broken_off_is_given_anew_and_whole(tmp_path: Path):
    model = SlowModel()
    async with served(tmp_path / "store", model) as client:
        async with client.stream("POST", "/chat/mira", content="Count.", headers=KEYED) as reply:
            assert await anext(reply.aiter_text()) == "one "
        await model.ended.wait()
        model.may_go_on.set()
        again = await client.post("/chat/mira", content="Count.", headers=KEYED)
        assert (again.status_code, again.text) == (200, "one two")
        said = await history_of(client, "mira", 2)
    assert said == [("user", "Count.", None), ("assistant", "one two", "end_turn")]


@asynccontextmanager
async def in_process(directory: Path, model=example.parrot) -> AsyncIterator[tuple[httpx.AsyncClient, SessionService]]:
    """Serve the app without a socket, and give a client of it and its service."""
    app = example.create_app(str(directory), model)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://app") as client,
    ):
        yield client, app.state.service


async def test_a_refused_question_has_a_status_that_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(example, "WAIT_S", 0.0)
    async with in_process(tmp_path / "store") as (client, service):

        async def status(user: str, content: bytes, **headers: str) -> int:
            reply = await client.post(f"/chat/{user}", content=content, headers=headers)
            assert "error" in reply.json()
            return reply.status_code

        await client.post("/chat/mira", content="one", headers=KEYED)
        assert await status("mira", b"another", **KEYED) == 422
        assert await status("mira", b"\xff") == 400
        assert await status("m" * 513, b"one") == 400
        session = await service.session("mira")
        async with session.exchange():
            assert await status("mira", b"two") == 409
        await service.end("mira")
        assert await status("mira", b"two") == 410
        await service.close()
        assert await status("mira", b"two") == 503


def test_the_statuses_are_those_of_the_reference():
    reference = Path(__file__).parents[2] / "docs" / "reference.md"
    rows = re.findall(r"^\| (`[A-Z].*?) \|.*\| (\d{3}) \|$", reference.read_text(encoding="utf-8"), re.MULTILINE)
    told = {getattr(session_actor, name): int(status) for row, status in rows for name in re.findall(r"\w+", row)}
    assert {kind: http_answers.status_of(kind) for kind in told} == told
    assert http_answers.STATUS.keys() <= told.keys()


@pytest.mark.parametrize(("sent", "kept"), [(0, []), (1, ["first "]), (2, ["first words "])])
async def test_an_answer_that_cannot_be_sent_is_kept_so_far_and_lets_the_next_question_in(
    tmp_path: Path, sent: int, kept: list[str]
):
    async with in_process(tmp_path / "store") as (client, _):
        with pytest.raises(ClientDisconnect):
            await ask_and_leave(client, sent)
        assert (await client.post("/chat/mira", content="next")).text == "next "
        said = await history_of(client, "mira", 3)
    assert [text for _, text, _ in said] == ["first words", *kept, "next", "next "]
    assert [stop for _, _, stop in said[1:-2]] == ["aborted" for _ in kept]


async def ask_and_leave(client: httpx.AsyncClient, sent: int) -> None:
    """Call the app as a server does whose client goes after so many messages; sending itself fails then (ASGI 2.4)."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/chat/mira",
        "query_string": b"",
        "headers": [],
    }
    messages = iter(range(sent))

    async def receive() -> dict:
        return {"type": "http.request", "body": b"first words", "more_body": False}

    async def send(_message: dict) -> None:
        if next(messages, None) is None:
            raise OSError("the client is gone")

    await client._transport.app(scope, receive, send)


async def test_a_client_that_leaves_in_the_middle_loses_neither_the_question_nor_what_was_said(tmp_path: Path):
    model = SlowModel()
    async with served(tmp_path / "store", model) as client:
        async with client.stream("POST", "/chat/mira", content="Count.") as reply:
            assert await anext(reply.aiter_text()) == "one "
            await model.said_one.wait()
        await model.ended.wait()
        said = await history_of(client, "mira", 2)
    assert said == [("user", "Count.", None), ("assistant", "one ", "aborted")]


async def test_a_request_whose_task_is_cancelled_loses_neither(tmp_path: Path):
    model = SlowModel()
    async with in_process(tmp_path / "store", model) as (client, _):
        request = asyncio.create_task(client.post("/chat/mira", content="Count."))
        await model.said_one.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        said = await history_of(client, "mira", 2)
    assert said == [("user", "Count.", None), ("assistant", "one ", "aborted")]


async def test_the_second_message_of_a_user_waits_for_the_answer_to_the_first(tmp_path: Path):
    model = SlowModel()
    async with served(tmp_path / "store", model) as client:
        first = asyncio.create_task(client.post("/chat/mira", content="first"))
        await model.said_one.wait()
        second = asyncio.create_task(client.post("/chat/mira", content="second"))
        await client.get("/chat/mira")
        model.may_go_on.set()
        await asyncio.gather(first, second)
        said = await history_of(client, "mira", 4)
    assert [text for _, text, _ in said] == ["first", "one two", "second", "one two"]


async def test_a_user_without_a_conversation_is_not_found(tmp_path: Path):
    async with served(tmp_path / "store") as client:
        reply = await client.get("/chat/nobody")
    assert (reply.status_code, "nobody" in reply.json()["error"]) == (404, True)
