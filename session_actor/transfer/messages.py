"""Conversations as lists of messages, of OpenAI's Chat Completions API or of Anthropic's Messages API.

One JSON value: a list of messages, or an object with `messages` (a request's body: with system, tools, model). Or JSON
Lines: such an object a line, each a conversation of its own; or one message a line. A message that only the other API
can have is read as the other's: some writers mix them.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from .anthropic_parts import message_turns, system_text, tools_of
from .fields import DECODER, UNREADABLE, fields, is_fields, is_list, listed, parsed, reason_of, time_of, word
from .forms import surely_of
from .lines import bare_line, document_of, lines_of
from .openai_parts import SYSTEM, chat_tools, chat_turns, system_of
from .pieces import Begun, Configured, Said
from .reading import said_in

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Iterator

    from .notes import Notes
    from .pieces import AnyPiece


class _Item(NamedTuple):
    """A value of a file, and where it begins."""

    offset: int
    value: Any


async def read_messages(path: str | os.PathLike[str], form: str, notes: Notes) -> AsyncGenerator[AnyPiece]:
    """The pieces of all conversations of a file. Raises `TranscriptUnreadable` for one JSON value that is too large."""
    talk = _Talk(form, notes)
    if await is_document(path):
        for piece in _pieces_of_document(talk, await document_of(path), notes):
            yield piece
        return
    async with aclosing(lines_of(path)) as lines, aclosing(said_in(lines, notes, talk.line)) as pieces:
        async for piece in pieces:
            yield piece


async def is_document(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one JSON value, and not JSON Lines."""
    async with aclosing(lines_of(path)) as lines:
        async for _, _, data in lines:
            if data is None:
                return True
            start = bare_line(data)
            if not start:
                continue
            if not start.startswith(b"{"):
                return start.startswith(b"[")  # else a line that is broken: the others are read
            try:
                first = fields(parsed(start))
            except UNREADABLE:
                return start == b"{" or start.endswith((b",", b"[", b"{"))
            return "messages" in first and PurePath(path).suffix.lower() == ".json"
    return False


def _pieces_of_document(talk: _Talk, data: bytes, notes: Notes) -> Iterator[AnyPiece]:
    try:
        items = list(_items(data))
    except UNREADABLE as error:
        notes.add(getattr(error, "pos", 0), reason_of(error))
        return
    many = len(items) > 1
    for offset, value in items:
        yield from talk.value(value, offset, of_many=many)


def _items(data: bytes) -> Iterator[_Item]:
    """The values of a JSON list with their offsets; or the one value."""
    written = data.decode("utf-8-sig", "surrogatepass")
    at_byte = len(data) - len(written.encode("utf-8", "surrogatepass"))
    at = _blank(written, 0)
    if written[at : at + 1] != "[":
        yield _Item(at_byte, DECODER.decode(written))
        return
    done = 0
    at = _blank(written, at + 1)
    while written[at : at + 1] != "]":
        value, end = DECODER.raw_decode(written, at)
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

    def __init__(self, form: str, notes: Notes) -> None:
        self._form = form
        self._notes = notes
        self._begun = self._spoke = False
        self._model: str | None = None
        self._system: list[str] = []
        """The instructions before anybody spoke."""

    def line(self, data: bytes, offset: int) -> Iterator[AnyPiece]:
        """The pieces of a line."""
        return self.value(fields(parsed(data)), offset)

    def value(self, value: object, offset: int, *, of_many: bool = True) -> Iterator[AnyPiece]:
        """The pieces of a message, or of a conversation."""
        if is_fields(value) and "messages" in fields(value):
            return self._conversation(fields(value), offset, of_many=of_many)
        return self._message(value, offset)

    def _conversation(self, body: dict[str, Any], offset: int, *, of_many: bool) -> Iterator[AnyPiece]:
        self._begun, self._spoke, self._system = True, False, []
        self._model = word(body.get("model"))
        yield Begun(word(body.get("id")) or word(body.get("custom_id")), of_many)
        instructions = self._instructions(body, offset)
        if instructions is not None:
            yield instructions
        messages = body["messages"]
        if not is_list(messages):
            self._notes.add(offset, "messages: " + reason_of(TypeError()))
            return
        for place, message in enumerate(listed(messages)):
            yield from self._message(message, offset, f"messages[{place}]: ")

    def _message(self, message: object, offset: int, where: str = "") -> Iterator[AnyPiece]:
        try:
            piece = self._said({"model": self._model, **fields(message)}, offset)
        except UNREADABLE as error:
            self._notes.add(offset, where + reason_of(error))
            return
        if not self._begun:
            self._begun = True
            yield Begun(None)
        yield piece

    def _said(self, message: dict[str, Any], offset: int) -> AnyPiece:
        form = surely_of(message) or self._form
        if message.get("role") in SYSTEM and not self._spoke and form == "openai-chat":
            said = system_of(message)
            self._system.append(said)
            return Configured(offset=offset, system="\n\n".join(self._system))
        read = chat_turns if form == "openai-chat" else message_turns
        turns = read(message, self._notes.left_out)
        self._spoke = True
        return Said(offset=offset, turns=turns, at_us=time_of(message.get("timestamp")))

    def _instructions(self, body: dict[str, Any], offset: int) -> Configured | None:
        """What a request's body says beside its messages; None: nothing. What cannot be read is noted."""
        found: dict[str, Any] = {} if self._model is None else {"model": self._model}
        for part in (_system_in, _tools_in):
            try:
                found |= part(body, self._form)
            except UNREADABLE as error:
                self._notes.add(offset, reason_of(error))
        return Configured(offset=offset, **found) if found else None


def _system_in(body: dict[str, Any], form: str) -> dict[str, Any]:
    system = body.get("system")
    return {"system": system_text(system)} if system and form == "anthropic" else {}


def _tools_in(body: dict[str, Any], form: str) -> dict[str, Any]:
    given = body.get("tools") or body.get("functions")
    if not given:
        return {}
    if form == "openai-chat":
        return {"tools": chat_tools(given)}
    tools, native_tools = tools_of(given)
    return {"tools": tools, "native_tools": native_tools}
