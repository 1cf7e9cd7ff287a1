"""Conversations as lists of messages, of OpenAI's Chat Completions API or of Anthropic's Messages API.

One JSON value: a list of messages, or an object with `messages` (a request's body: with system, tools, model). Or JSON
Lines: such a list or object a line, each a conversation of its own; or one message a line. A message that only the
other API can have is read as the other's: some writers mix them.
"""

from __future__ import annotations

from contextlib import aclosing
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from .anthropic_parts import message_turns, system_text, tools_of
from .elements import are_many, elements_of
from .fields import UNREADABLE, fields, is_fields, is_list, listed, parsed, reason_of, time_of, word
from .forms import surely_of
from .lines import bare_line, document_of, lines_of, too_long
from .openai_parts import SYSTEM, chat_tools, chat_turns, system_of
from .pieces import Begun, Configured, Said

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Iterator

    from .notes import Notes
    from .pieces import AnyPiece


async def read_messages(path: str | os.PathLike[str], form: str, notes: Notes) -> AsyncGenerator[AnyPiece]:
    """The pieces of all conversations of a file. Raises `TranscriptUnreadable` for one JSON value that is too large."""
    talk = _Talk(form, notes)
    if await is_document(path):
        for piece in talk.values(await document_of(path)):
            yield piece
        return
    async with aclosing(lines_of(path)) as lines:
        async for offset, _, data in lines:
            if data is None:
                notes.add(offset, too_long())
                continue
            for piece in talk.line(data, offset):
                yield piece


async def is_document(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one JSON value, and not JSON Lines."""
    behind_list = False
    async with aclosing(lines_of(path)) as lines:
        async for _, _, data in lines:
            if data is None:
                return not behind_list
            start = bare_line(data)
            if not start:
                continue
            if behind_list:
                return not start.startswith((b"[", b"{")) or _goes_on(start)
            if start.startswith(b"[") and start.endswith(b"]"):
                behind_list = True  # the only line, or the first of several
                continue
            if not start.startswith(b"{"):
                return start.startswith(b"[")  # else a line that is broken: the others are read
            try:
                first = fields(parsed(start))
            except UNREADABLE:
                return _goes_on(start)
            return "messages" in first and PurePath(path).suffix.lower() == ".json"
    return behind_list


def _goes_on(line: bytes) -> bool:
    """Whether a line breaks off where people break values into lines."""
    return line.endswith((b",", b"[", b"{"))


class _Talk:
    """Reads messages one after the other; it knows whether the conversation has begun."""

    def __init__(self, form: str, notes: Notes) -> None:
        self._form = form
        self._notes = notes
        self._begun = self._spoke = False
        self._is_new_list = False
        """Whether the next message is the first of a list."""
        self._model: str | None = None
        self._system: list[str] = []
        """The instructions before anybody spoke."""

    def line(self, data: bytes, offset: int) -> Iterator[AnyPiece]:
        """The pieces of a line: of a message, of a conversation, or of a list of them."""
        line = bare_line(data)
        if line.startswith(b"["):
            yield from self.values(data, offset)
        elif line:
            try:
                yield from self.value(fields(parsed(line)), offset)
            except UNREADABLE as error:
                self._notes.add(offset, reason_of(error))

    def values(self, data: bytes, offset: int = 0) -> Iterator[AnyPiece]:
        """The pieces of all values of a text. A list of messages is a conversation; those beside it go on with it."""
        of_many, elements = are_many(elements_of(data, offset))
        inside = 0
        for element in elements:
            if element.list != inside:
                inside = element.list
                self._is_new_list = inside > 0
            if element.error is not None:
                self._notes.add(element.offset, reason_of(element.error))
            else:
                yield from self.value(element.value, element.offset, of_many=of_many)
        self._is_new_list = False

    def value(self, value: object, offset: int, *, of_many: bool = True) -> Iterator[AnyPiece]:
        """The pieces of a message, or of a conversation."""
        if is_fields(value) and "messages" in fields(value):
            return self._conversation(fields(value), offset, of_many=of_many)
        return self._message(value, offset)

    def _conversation(self, body: dict[str, Any], offset: int, *, of_many: bool) -> Iterator[AnyPiece]:
        self._begun, self._is_new_list = True, False
        self._model, self._spoke, self._system = word(body.get("model")), False, []
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
        if self._is_new_list and is_fields(message):
            self._model, self._spoke, self._system = None, False, []
        try:
            piece = self._said({"model": self._model, **fields(message)}, offset)
        except UNREADABLE as error:
            self._notes.add(offset, where + reason_of(error))
            return
        if self._is_new_list or not self._begun:
            begun = Begun(None, of_many=self._begun)
            self._begun, self._is_new_list = True, False
            yield begun
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
