"""Replies as the SDKs' own clients give them out: of a server on this machine that streams, and may break off."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

if TYPE_CHECKING:
    import anthropic

ASKED: Any = [{"role": "user", "content": "x"}]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = self.server.body
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body) + self.server.missing))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    body = b""
    missing = 0
    """How many bytes of what was announced do not come."""


class Streams(ExitStack):
    """Streams of both SDKs; each method gives what the client has accumulated when the stream ends or breaks off."""

    def __init__(self) -> None:
        import anthropic
        import openai

        super().__init__()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self.callback(self._server.server_close)
        thread = Thread(target=self._server.serve_forever)
        thread.start()
        self.callback(thread.join)
        self.callback(self._server.shutdown)
        self.enter_context(patch.dict(os.environ, {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}))
        url = f"http://127.0.0.1:{self._server.server_port}"
        self._anthropic = self.enter_context(anthropic.Anthropic(api_key="k", base_url=url, max_retries=0))
        self._openai = self.enter_context(openai.OpenAI(api_key="k", base_url=url, max_retries=0))

    def anthropic(self, events: Iterable[dict[str, Any]], *, breaks: bool = False) -> anthropic.types.Message:
        """A message."""
        self._serve((f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events), breaks=breaks)
        with self._anthropic.messages.stream(model="m", max_tokens=9, messages=ASKED) as stream:
            self._read(stream, breaks=breaks)
            return stream.current_message_snapshot

    def chat(self, chunks: Iterable[dict[str, Any]], *, breaks: bool = False) -> Any:
        """A chat completion."""
        self._serve(
            [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "" if breaks else "data: [DONE]\n\n"],
            breaks=breaks,
        )
        with self._openai.chat.completions.stream(model="m", messages=ASKED) as stream:
            self._read(stream, breaks=breaks)
            return stream.current_completion_snapshot

    def response(self, events: Iterable[dict[str, Any]]) -> Any:
        """A response."""
        self._serve((f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events), breaks=False)
        with self._openai.responses.stream(model="m", input="x") as stream:
            return stream.get_final_response()

    def _serve(self, lines: Iterable[str], *, breaks: bool) -> None:
        self._server.body = "".join(lines).encode()
        self._server.missing = 100 if breaks else 0

    @staticmethod
    def _read(stream: Any, *, breaks: bool) -> None:
        if not breaks:
            stream.until_done()
            return
        with pytest.raises(Exception, match=r"incomplete|peer closed|Connection error"):  # as each SDK says
            stream.until_done()
