"""What comes into a session from outside: a provider's reply, text that is not trusted, notes on files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.commands import AddReference, AddResponse, NoteArtifact
from session_actor.errors import InvalidArgument
from session_actor.given import content
from session_actor.given.content import checked

from .branching import Branching

if TYPE_CHECKING:
    import os
    from collections.abc import Coroutine, Sequence
    from typing import Any

    from session_actor.commands import How
    from session_actor.dialects import Dialect
    from session_actor.frames import Frame
    from session_actor.persistence import Level
    from session_actor.requests.request import Request


class Ingests(Branching):
    """The changes that take in what others made.

    The last four arguments, what cancelling does and what all of them may raise are as in `Changes`.
    """

    __slots__ = ()

    async def add_response(
        self,
        reply: object,
        *,
        request: Request | int | None = None,
        dialect: Dialect | None = None,
        assumptions: Sequence[str] = (),
        decisions: Sequence[str] = (),
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Frame:
        """Add a provider's reply as one frame with an assistant turn, and return the frame.

        `reply`: an object of the provider's SDK, its dict, or what a stream has accumulated, also of one that was cut
        off (its `stop_reason` is then None); see `turn_of`. The frame keeps text, thinking with signatures, calls with
        the arguments as they are, any other block verbatim, and the usage.
        `request`: the request that it replies to, or its `seq`: the length of the next one is then known better.
        `dialect`: whose form the reply has; None: that of `request`, else as it looks.

        Raises InvalidArgument, which names the place, for what is no reply, for one of another dialect, and for a
        `request` that the session has no record of; ValueNotStorable for a block that JSON cannot hold exactly; else as
        `push` does. The reply is read before anything can suspend; so it may be changed afterwards.
        """
        from session_actor.replies import turn_of

        seq, asked = _asked(request)
        command = AddResponse(
            turn_of(reply, dialect or asked),
            seq,
            assumptions,
            decisions,
            on=self._on,
            durability=durability,
            key=key,
            expect_head=expect_head,
        )
        return await self.send(command, timeout_s)

    def add_reference(
        self,
        text: str,
        *,
        source: str | None = None,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Coroutine[Any, Any, Frame]:
        """Add text that is not trusted (a web page, a mail) as one frame with a user turn, and return the frame.

        A request shows it to the model as data whose instructions do not count. `source`: where it came from, as the
        model is told; None: not said. Raises InvalidArgument for an empty text; else as `push` does.
        """
        command = AddReference(text, source, on=self._on, durability=durability, key=key, expect_head=expect_head)
        return self.send(command, timeout_s)

    async def note_artifact(
        self,
        path: str | os.PathLike[str],
        how: How = "read",
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Frame:
        """Note that a file, or another thing, was read or modified, as a frame without turns; return the frame.

        The model is told of it when what it saw of the thing is not shown any more. `path`: what names it, any text of
        1 to 4,096 characters, or a path object, which is kept as its text. `how`: "read" or "modified". Raises
        InvalidArgument for others; else as `push` does.
        """
        named = checked(content.artifact_path, path, "path")
        command = NoteArtifact(named, how, on=self._on, durability=durability, key=key, expect_head=expect_head)
        return await self.send(command, timeout_s)


def _asked(request: object) -> tuple[int | None, Dialect | None]:
    """The number and the dialect of a request, as far as they are told."""
    from session_actor.requests.request import Request

    if request is None:
        return None, None
    if isinstance(request, Request):
        try:
            return request.seq, request.dialect
        except AttributeError:
            raise InvalidArgument(
                "request", "is a copy that does not know its number: give the request itself"
            ) from None
    if type(request) is int:
        return request, None
    raise InvalidArgument("request", f"must be a Request, its seq, or None, got {type(request).__name__}")
