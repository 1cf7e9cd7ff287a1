"""What the providers' own SDKs make of a request: it goes over the wire as it is."""

from __future__ import annotations

import json
import threading
from base64 import urlsafe_b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from session_actor.requests import dialect_of

from .entry_samples import PNG, everything
from .test_render_any import requested


class Server(ThreadingHTTPServer):
    """Keeps the body of the last request, and refuses it."""

    body: Any = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

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
    with Server() as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield listening
        listening.shutdown()
        thread.join()


def test_anthropic_sends_it_unchanged(server):
    import anthropic

    request = requested("anthropic", everything("anthropic"))
    with (
        anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as client,
        pytest.raises(anthropic.BadRequestError),
    ):
        client.messages.create(**request)
    assert server.body == request


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_openai_sends_it_unchanged(server, dialect):
    import openai

    request = requested(dialect, everything(dialect))
    with openai.OpenAI(api_key="none", base_url=server.url, max_retries=0) as client:
        create = client.chat.completions.create if dialect == "openai_chat" else client.responses.create
        with pytest.raises(openai.BadRequestError):
            create(**request)
    assert server.body == request


def test_gemini_sends_all_of_it(server):
    from google import genai
    from google.genai import errors, types

    request = requested("gemini", everything("gemini"))
    dialect_of("gemini").merge(request, {"config": {"temperature": 0.5}})
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=server.url))
    with pytest.raises(errors.ClientError):
        client.models.generate_content(**request)
    client.close()
    parts = [part for content in server.body["contents"] for part in content["parts"]]
    assert len(parts) == sum(len(content["parts"]) for content in request["contents"])
    assert urlsafe_b64decode(parts[1]["inlineData"]["data"]) == PNG
    signatures = [urlsafe_b64decode(part["thoughtSignature"]) for part in parts if "thoughtSignature" in part]
    assert signatures == [b"sig", b"sec", b"skip_thought_signature_validator"]
    assert [part["functionResponse"]["id"] for part in parts if "functionResponse" in part] == ["call_1", "call_2"]
    assert server.body["generationConfig"] == {"maxOutputTokens": 1_000, "temperature": 0.5}
    assert [tool["name"] for tool in server.body["tools"][0]["functionDeclarations"]] == ["look", "go"]
