"""The chat server of the examples, run for real: uvicorn on loopback, and a request task that is cancelled."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

PATH = Path(__file__).parents[2] / "examples" / "starlette_app.py"


def load_example():
    spec = importlib.util.spec_from_file_location("starlette_app", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load_example()


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


@asynccontextmanager
async def served(directory: Path, model=example.parrot) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the app by uvicorn on a free port of the loopback, and give a client of it."""
    config = uvicorn.Config(example.create_app(str(directory), model), port=0, log_level="critical", ws="none")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        assert not task.done(), task
        await asyncio.sleep(0)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            yield client
    finally:
        server.should_exit = True
        await task


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
        for _ in range(2):
            reply = await client.post("/chat/mira", content="Now?", headers={"Idempotency-Key": "7"})
            assert reply.text == "Now? "
        assert len(await history_of(client, "mira", 2)) == 2


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
    app = example.create_app(str(tmp_path / "store"), model)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://app") as client,
    ):
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
