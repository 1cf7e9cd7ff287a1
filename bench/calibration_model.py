"""Conversations whose real lengths are known: what a provider would count, beside what is estimated.

The messages are texts with their true numbers of tokens. What surrounds them is drawn for each conversation: what the
provider puts around messages, calls and tools is not what is estimated, some of it is unseen. A conversation has forks,
parallel calls, aborted calls, cached tokens, ephemeral parts, other instructions, and one trim that drops most of it.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from session_actor.budget.calibration import learn, price
from session_actor.budget.readings import NOTHING, Key, Shown
from session_actor.frames import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from session_actor.budget.readings import Learned, Quote

TURNS = 40
HELD_SHARE = 0.15
"""What is left of the messages after the trim."""
OUR_MESSAGE, OUR_CALL, OUR_RESULT, OUR_TOOL, STUB = 4, 8, 8, 16, 25


class Count(NamedTuple):
    """How many tokens something has: as estimated, and really."""

    estimate: float
    real: float

    def __add__(self, other: object) -> Count:
        """Both added."""
        if not isinstance(other, Count):
            return NotImplemented
        return Count(self.estimate + other.estimate, self.real + other.real)


NONE = Count(0, 0)
TRIM, FORK, INSTRUCTIONS = "a trim", "a fork", "other instructions"


class Sent(NamedTuple):
    """One frame."""

    whole: Count
    stub: Count
    """With its result as a stub."""
    begins: bool
    """Whether it is an assistant's: a chunk begins."""
    instructions: Count | None
    """The system prompt and tools that it brought; None: it brought none."""


class Call(NamedTuple):
    """One request, answered."""

    turn: int
    """From 1."""
    quoted: int
    upper: int
    estimated: float
    """Without calibration."""
    real: int
    after: str
    """What was done since the request before: TRIM, FORK, INSTRUCTIONS or `""`."""

    @property
    def error(self) -> float:
        """Of the quote, in percent, signed."""
        return 100 * (self.quoted / self.real - 1)

    @property
    def raw_error(self) -> float:
        """Of the estimate."""
        return 100 * (self.estimated / self.real - 1)


class Provider(NamedTuple):
    """What a provider adds, that nobody can see."""

    message: int
    call: int
    result: int
    hidden: int
    tools: float

    @classmethod
    def drawn(cls, random: Random) -> Provider:
        """One of them."""
        return cls(
            random.randint(2, 9),
            random.randint(4, 20),
            random.randint(2, 12),
            random.randint(0, 500),
            random.uniform(0.85, 1.15),
        )


class Conversation:
    """One conversation, from its first request on."""

    def __init__(self, random: Random, texts: Sequence[Count]) -> None:
        """`texts`: what is said in it, in any order."""
        self.random = random
        self.texts = texts
        self.provider = Provider.drawn(random)
        self.frames: dict[int, Sent] = {}
        self.path: list[int] = []
        self.cut = self.stubs = self.view = 0
        self.learned: Learned = NOTHING
        self.calls: list[Call] = []

    def run(self) -> list[Call]:
        """Let it happen; the calls."""
        trim_at = self.random.randint(TURNS // 2, TURNS - 5)
        self.configure()
        self.add_user()
        for turn in range(1, TURNS + 1):
            after = self.change(turn, trim_at)
            self.ask(turn, after)
            self.answer()
        return self.calls

    def change(self, turn: int, trim_at: int) -> str:
        """Do something that makes the next request other than the last one and what came since; what it was."""
        chance = self.random.random()
        if turn == trim_at:
            self.trim(turn)
            return TRIM
        if turn > 1 and chance < 0.05:
            return FORK if self.fork() else ""
        if turn > 1 and chance < 0.06:
            self.configure()
            return INSTRUCTIONS
        return ""

    def configure(self) -> None:
        """Bring a system prompt and tools."""
        system, tools = self._texts(2), self._texts(4)
        real = system.real + tools.real * self.provider.tools + self.provider.hidden
        self._push(NONE, instructions=Count(system.estimate + tools.estimate + 4 * OUR_TOOL, real))

    def ask(self, turn: int, after: str) -> None:
        """Send a request and learn its real length, unless it is aborted."""
        tail = self._texts(1) if self.random.random() < 0.1 else NONE
        quote, total = self.quote(tail)
        self.calls.append(Call(turn, quote.tokens, quote.upper, total.estimate, round(total.real), after))
        fresh, cached = (round(total.real * share) for share in self.random.choice(((1, 0), (0.5, 0.5), (0.1, 0.9))))
        usage = Usage(fresh + cached, cache_read_tokens=cached)
        aborted = self.random.random() < 0.03
        self.learned = learn(self.learned, quote, 0 if aborted else usage.input_tokens, self.on_path)

    def quote(self, tail: Count) -> tuple[Quote, Count]:
        """The price of the request as it would be sent, and what it estimates to and is."""
        shown = [(frame, self._shown(frame)) for frame in self.path if frame >= self.cut]
        total = sum((count for _, count in shown), NONE)
        ends, sums = self._chunks(shown)

        def up_to(frame: int) -> int:
            place = bisect_right(ends, frame)
            return sums[place - 1] if place else 0

        configured, fixed = self._fixed()
        key = Key("model", "anthropic", configured)
        ours = [round(each.estimate) for each in (fixed, total, tail)]
        view = Shown(key, self.view, self.path[-1], ours[0], ours[1], ours[2], up_to)
        return price(view, self.learned, self.on_path), fixed + total + tail

    def _fixed(self) -> tuple[int, Count]:
        """The instructions in force: their frame, and what they cost."""
        for frame in reversed(self.path):
            if (found := self.frames[frame].instructions) is not None:
                return frame, found
        raise AssertionError("a conversation begins with its instructions")

    def _chunks(self, shown: list[tuple[int, Count]]) -> tuple[list[int], list[int]]:
        """The last frame of each chunk, and what is estimated up to it."""
        last = [
            place for place in range(len(shown)) if place + 1 == len(shown) or self.frames[shown[place + 1][0]].begins
        ]
        sums = list(accumulate(count.estimate for _, count in shown))
        return [shown[place][0] for place in last], [round(sums[place]) for place in last]

    def _shown(self, frame: int) -> Count:
        sent = self.frames[frame]
        return sent.stub if frame < self.stubs else sent.whole

    def on_path(self, frame: int) -> bool:
        """Whether the stack has this frame."""
        return frame in self.path

    def answer(self) -> None:
        """The model answers, with calls and their results, or the user goes on."""
        said = self._texts(1)
        if self.random.random() < 0.25:
            self._push(self._framed(said, self.provider.message), begins=True)
            self.add_user()
            return
        calls = self.random.choice((1, 1, 1, 2, 3))
        called = self._texts(1)
        around = Count(OUR_MESSAGE + calls * OUR_CALL, self.provider.message + calls * self.provider.call)
        self._push(called + around, begins=True)
        for _ in range(calls):
            around = Count(OUR_RESULT, self.provider.result)
            self._push(self._texts(self.random.choice((1, 1, 2))) + around, Count(STUB, STUB) + around)

    def add_user(self) -> None:
        """The user says something."""
        self._push(self._framed(self._texts(1), self.provider.message))

    def fork(self) -> bool:
        """Go back to an earlier request, and on from there with a new user turn; False: there is none that is shown."""
        keep = self.random.randint(2, 12)
        if keep >= len(self.path) or self.path[-keep] < self.cut:
            return False
        while keep and not self.frames[self.path[-keep]].begins:
            keep -= 1
        if keep:
            del self.path[-keep:]
        self.add_user()
        return True

    def trim(self, turn: int) -> None:
        """Leave out most of the messages, and make stubs of what is older than the newest steps."""
        left = HELD_SHARE * sum(self.frames[frame].whole.estimate for frame in self.path)
        for frame in reversed(self.path):
            left -= self.frames[frame].whole.estimate
            if left < 0 and self.frames[frame].begins:
                self.cut = frame
                break
        held = [frame for frame in self.path if frame >= self.cut]
        self.stubs = held[len(held) // 3]
        self.view = turn

    def _push(
        self, whole: Count, stub: Count | None = None, *, begins: bool = False, instructions: Count | None = None
    ) -> None:
        number = len(self.frames) + 1
        self.frames[number] = Sent(whole, stub or whole, begins, instructions)
        self.path.append(number)

    def _framed(self, said: Count, real: int) -> Count:
        return said + Count(OUR_MESSAGE, real)

    def _texts(self, count: int) -> Count:
        return sum((self.random.choice(self.texts) for _ in range(count)), NONE)
