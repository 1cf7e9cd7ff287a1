"""A server that writes down what reaches it, and answers some questions only later."""

from typing import Any

import msgspec

from session_actor.supervisors import NO_REPLY, Call, Cast, Continue, Deferred, GenServer, handles


class Tell(msgspec.Struct, Cast, frozen=True):
    word: str


class Ask(msgspec.Struct, Call[str], frozen=True):
    """Answered later, by whoever holds the Deferred."""


class Words(msgspec.Struct, Call[list[str]], frozen=True):
    pass


class ContinueWith(msgspec.Struct, Call[str], frozen=True):
    argument: str


class TellLater(msgspec.Struct, Cast, frozen=True):
    delay_s: float


class Unheard(msgspec.Struct, Call[None], frozen=True):
    pass


class UnheardCast(msgspec.Struct, Cast, frozen=True):
    pass


class Listener(GenServer):
    """Writes down what reaches it, in order."""

    def __init__(self, first: Continue | None = None) -> None:
        self.first = first
        self.words: list[str] = []
        self.waiting: list[Deferred[str]] = []

    async def init(self) -> Continue | None:
        return self.first

    async def handle_continue(self, argument: Any) -> Continue | None:
        self.words.append(f"continue {argument}")
        if argument == "stop":
            self.stop_self("normal")
        return Continue("after") if argument == "again" else None

    async def handle_info(self, message: object) -> None:
        self.words.append(f"info {type(message).__name__}")

    @handles(Tell)
    def tell(self, message: Tell) -> None:
        self.words.append(message.word)

    @handles(TellLater)
    def tell_later(self, message: TellLater) -> None:
        self.send_after(message.delay_s, Tell("late"))

    @handles(Ask)
    def ask(self, _: Ask) -> Any:
        self.waiting.append(self.defer())
        return NO_REPLY

    @handles(Words)
    def all_words(self, _: Words) -> list[str]:
        return list(self.words)

    @handles(ContinueWith)
    def continue_now(self, message: ContinueWith) -> str:
        self.continue_with(message.argument)
        return "replied"
