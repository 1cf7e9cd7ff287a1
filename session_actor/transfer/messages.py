"""Conversations as lists of messages, of OpenAI's Chat Completions API or of Anthropic's Messages API.

One JSON value: a list of messages, or an object with `messages` (a request's body: with system, tools, model). Or JSON
Lines: such an object a line, each a conversation of its own; or one message a line.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from .anthropic_parts import message_turns, system_text, tools_of
from .fields import UNREADABLE, fields, is_fields, listed, parsed, reason_of, time_of, word
from .lines import document_of, lines_of, too_long
from .openai_parts import SYSTEM, chat_tools, chat_turns, system_of
from .pieces import Begun, Configured, Said

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Iterator

    from .pieces import AnyPiece, Unread


class _Item(NamedTuple):
    """A value of a file, and where it begins."""

    offset: int
    value: Any


async def read_messages(path: str | os.PathLike[str], form: str, unread: Unread) -> AsyncGenerator[AnyPiece]:
    """The pieces of all conversations of a file. Raises `TranscriptUnreadable` for one JSON value that is too large."""
    talk = _Talk(form, unread)
    if await is_document(path):
        for piece in _pieces_of_document(talk, await document_of(path), unread):
            yield piece
        return
    async with aclosing(lines_of(path)) as lines:
        async for offset, _, data in lines:
            if data is None:
                unread.add(offset, too_long())
                continue
            if not data.strip():
                continue
            try:
                value = fields(parsed(data))
            except UNREADABLE as error:
                unread.add(offset, reason_of(error))
                continue
            for piece in talk.conversation(value, offset) if "messages" in value else talk.message(value, offset):
                yield piece


async def is_document(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one JSON value, and not JSON Lines."""
    async with aclosing(lines_of(path)) as lines:
        async for _, _, data in lines:
            if data is None:
                return True
            start = data.lstrip(b"\xef\xbb\xbf \t\r")
            if not start:
                continue
            if not start.startswith(b"{"):
                return start.startswith(b"[")  # else a line that is broken: the others are read
            try:
                first = fields(parsed(data))
            except UNREADABLE:
                return start.rstrip() == b"{" or start.rstrip().endswith((b",", b"[", b"{"))
            return "messages" in first and PurePath(path).suffix.lower() == ".json"
    return False


def _pieces_of_document(talk: _Talk, data: bytes, unread: Unread) -> Iterator[AnyPiece]:
    try:
        items = list(_items(data))
    except UNREADABLE as error:
        unread.add(getattr(error, "pos", 0), reason_of(error))
        return
    many = len(items) > 1
    for offset, value in items:
        if is_fields(value) and "messages" in value:
            yield from talk.conversation(fields(value), offset, of_many=many)
        else:
            yield from talk.message(value, offset)


def _items(data: bytes) -> Iterator[_Item]:
    """The values of a JSON list with their offsets; or the one value."""
    written = data.decode("utf-8-sig", "surrogatepass")
    at_byte = len(data) - len(written.encode("utf-8", "surrogatepass"))
    at, decoder = _blank(written, 0), json.JSONDecoder()
    if written[at : at + 1] != "[":
        yield _Item(at_byte, json.loads(written))
        return
    done = 0
    at = _blank(written, at + 1)
    while written[at : at + 1] != "]":
        value, end = decoder.raw_decode(written, at)
        at_byte += len(written[done:at].encode("utf-8", "surrogatepass"))
        done = at
        yield _Item(at_byte, value)
        at = _blank(written, end)
        if written[at : at + 1] == ",":
            at = _blank(written, at + 1)
        elif written[at : at + 1] != "]":
            raise json.JSONDecodeError("a list that does not end", written, at)


def _blank(written: str, at: int) -> int:
    while written[at : at + 1] and written[at] in " \t\r\n":
        at += 1
    return at


class _Talk:
    """Reads messages one after the other; it knows whether the conversation has begun."""

    def __init__(self, form: str, unread: Unread) -> None:
        self._form = form
        self._unread = unread
        self._begun = self._spoke = False
        self._model: str | None = None

    def conversation(self, body: dict[str, Any], offset: int, *, of_many: bool = True) -> Iterator[AnyPiece]:
        """One conversation of its own."""
        self._begun, self._spoke = True, False
        self._model = word(body.get("model"))
        yield Begun(word(body.get("id")) or word(body.get("custom_id")), of_many)
        try:
            piece = self._instructions(body, offset)
            messages = listed(body["messages"])
        except UNREADABLE as error:
            self._unread.add(offset, reason_of(error))
            return
        if piece is not None:
            yield piece
        for place, message in enumerate(messages):
            yield from self.message(message, offset, f"messages[{place}]: ")

    def message(self, message: object, offset: int, where: str = "") -> Iterator[AnyPiece]:
        """The pieces of one message."""
        try:
            given = {"model": self._model, **fields(message)}
            if given.get("role") in SYSTEM and not self._spoke and self._form == "openai-chat":
                piece: AnyPiece = Configured(offset=offset, system=system_of(given))
            else:
                turns = chat_turns(given) if self._form == "openai-chat" else message_turns(given)
                piece = Said(offset=offset, turns=turns, at_us=time_of(given.get("timestamp")))
                self._spoke = True
        except UNREADABLE as error:
            self._unread.add(offset, where + reason_of(error))
            return
        if not self._begun:
            self._begun = True
            yield Begun(None)
        yield piece

    def _instructions(self, body: dict[str, Any], offset: int) -> Configured | None:
        """What a request's body says beside its messages; None: nothing."""
        system, model, given = body.get("system"), word(body.get("model")), body.get("tools") or body.get("functions")
        tools, native_tools = None, None
        if given and self._form == "anthropic":
            tools, native_tools = tools_of(given)
        elif given:
            tools = chat_tools(given)
        said = system_text(system) if system and self._form == "anthropic" else None
        if said is None and model is None and tools is None:
            return None
        return Configured(offset=offset, system=said, tools=tools, native_tools=native_tools, model=model)
