"""The SDKs' plain calls take a request as it is built, without a word about its length."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from session_actor import estimate_tokens
from session_actor.commands import AddUser, NoteArtifact
from session_actor.requests.plain_calls import plain_call_output

from .asked import Asked, messages_of, shown
from .test_window_limits import grown


class Handler(BaseHTTPRequestHandler):
    """Refuses what it gets, and keeps it."""

    def do_POST(self) -> None:
        self.server.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield listening
        listening.shutdown()
        thread.join()


@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")
@pytest.mark.parametrize(
    "model",
    [
        "claude-sonnet-5",
        "claude-opus-4-5",
        "claude-opus-4-0",
        "claude-opus-4-20250514",
        "claude-opus-4-1-20250805",
        "claude-4-opus-20250514",
        "claude-opus-4-1@20250805",
        "claude-haiku-4-5",
        "some-other-model",
    ],
)
async def test_anthropic_s_plain_call_takes_it(server, model):
    import anthropic

    live = Asked(model)
    live.do(AddUser("Hello"))
    request = live.ask("anthropic")
    url = f"http://127.0.0.1:{server.server_port}"
    async with anthropic.AsyncAnthropic(api_key="none", base_url=url, max_retries=0) as client:
        with pytest.raises(anthropic.BadRequestError):
            await client.messages.create(**request)
    assert server.body == request


async def test_openai_s_plain_calls_take_it(server):
    import openai

    live = Asked("gpt-5")
    live.do(AddUser("Hello"))
    url = f"http://127.0.0.1:{server.server_port}"
    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(**live.ask("openai_chat"))
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(**live.ask("openai_responses"))


def test_what_is_asked_for_explicitly_is_asked_for():
    live = Asked("claude-sonnet-4-5")
    live.do(AddUser("Hello"))
    assert live.ask("anthropic").max_output_tokens == 21_333
    assert live.ask("anthropic", max_output_tokens=30_000).max_output_tokens == 30_000
    assert live.ask("openai_chat").max_output_tokens == 32_768


def test_only_the_oldest_opus_4_is_asked_for_less():
    assert plain_call_output("anthropic", "claude-opus-4-1") == 8_192
    assert plain_call_output("anthropic", "us.anthropic.claude-opus-4-1-20250805-v1:0") == 8_192
    assert plain_call_output("anthropic", "claude-opus-4-5-20251101") == 21_333
    assert plain_call_output("anthropic", "claude-sonnet-4-20250514") == 21_333
    assert plain_call_output("gemini", "claude-opus-4-1") is None


def test_a_request_shows_nothing_of_the_conversation_when_it_is_printed(live, dialect):
    live.do(AddUser("my secret"))
    request = live.ask(dialect)
    assert "secret" not in repr(request)
    assert "secret" not in f"{request} {[request]}"
    assert "'small'" in repr(request)
    assert repr(type(request)()) == "Request(keys=[])"


def test_no_more_artifacts_are_named_than_take_up_a_little_of_the_budget(live, dialect):
    live.do(AddUser("begin"))
    for number in range(300):
        live.do(NoteArtifact(f"src/some/folder/of/many/file_{number}.py"))
    requests = grown(live, dialect, 2)
    note = shown(messages_of(requests[-1])[:2])
    assert "file_299.py" in note
    assert "file_0.py" not in note
    mark = live.state.marks[-1]
    assert 0 < len(mark.artifacts) < 200
    assert mark.more == 300 - len(mark.artifacts)
    assert f"{mark.more} more" in note
    named = sum(estimate_tokens(artifact.path) for artifact in mark.artifacts)
    assert named <= 0.02 * mark.allowance
