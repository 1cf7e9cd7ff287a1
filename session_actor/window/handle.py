"""The part of a session's handle that asks: for the next request, and how full the window is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from session_actor.budget.refusals import TooLong, too_long
from session_actor.commands import BuildRequest, RequestFailed
from session_actor.errors import InvalidArgument
from session_actor.given.given_numbers import check_seconds
from session_actor.handle.ingest import Ingests
from session_actor.handle.reads import Reads
from session_actor.service.deadline import Unsaid, deadline_in, no_longer_than, seconds_left

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session_actor.budget.report import Budget
    from session_actor.commands import Content
    from session_actor.dialects import Dialect
    from session_actor.persistence import Level
    from session_actor.requests.request import Request

_BUILD_S: Final = Unsaid(5.0)
"""How long building a request may take where nobody says [seconds]."""


class Asks(Ingests, Reads):
    """Requests and the budget; the last four arguments of the changes, and what all may raise, are as in `Changes`."""

    __slots__ = ()

    async def build_request(
        self,
        dialect: Dialect,
        *,
        model: str | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        ephemeral: Content | None = None,
        durability: Level | None = None,
        timeout_s: float | None = _BUILD_S,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Request:
        """Build the request for the next reply: keyword arguments for one call of the SDK of `dialect`.

        It shows what is at the head, as much as fits: when the conversation outgrows the model's window, old tool
        results are shown as one line, then the oldest exchanges and steps are left out; the history keeps all. What was
        left out stays so until the next such trim, so that a provider's cache stays of use. That a request was given
        out is recorded, so that a recovered session asks byte for byte the same.

        Args:
            dialect: `openai_chat`, `openai_responses`, `anthropic` or `gemini`.
            model: the model to ask; None: that of the instructions (`configure`).
            max_output_tokens: the longest answer; None: what is reserved for it, but of `anthropic` no more than its
                SDK waits for without streaming (21,333). A larger wish than the model can write is lowered, and one
                smaller than the API takes is raised.
            extra: further arguments of the SDK's call, merged last; it may not set what the session makes itself.
            ephemeral: a text, or blocks, that this request alone shows after the newest user or tool turn: counted,
                never recorded.
            durability: what is shown has reached this level when the request is given out; None: the service's default.
            timeout_s: how long to wait in all [seconds]: for what is on the disk, and for a summary that makes room at
                red, which goes on without you. Not given: 5 seconds, and besides the service's `compaction_timeout_s`
                for that summary. None: no limit but that one.
            key: a retry with the same arguments, `ephemeral` included, gets the same request, even when the
                conversation has gone on, as long as it is among the newest 32 of the session; None: no key.
            expect_head: as for every change.

        Returns:
            A dict, every level of it your own; see `Request` for what else it tells. Pass it to `add_response`.

        Raises:
            NothingToSend: no message of the path can be shown.
            ContextOverflow: what must be shown does not fit; it names the part. Nothing was changed.
            InvalidArgument: no model is known, or an argument can never be right.
            RequestForgotten: the request of this key is not known any more.
            FrameUnreadable: the disk did not give a frame. What every change raises.

        Cancelling gives up the wait; that the request was given out may be recorded, which does no harm.
        """
        command = BuildRequest(
            dialect,
            model,
            max_output_tokens,
            extra,
            ephemeral,
            on=self._on,
            durability=durability,
            key=key,
            expect_head=expect_head,
        )
        return await self._given_out(command, timeout_s)

    async def request_failed(
        self,
        request: Request | int,
        error: object,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> bool:
        """Say that a provider refused a request. One that was too long makes the next ones for that model shorter.

        Args:
            request: what was refused, or its `seq`.
            error: the exception that the SDK raised, its text, or the provider's answer as a dict. Only whether it
                speaks of the length, and the figures it names, are kept.
            durability: as for every change.
            timeout_s: as for every change.
            key: as for every change.
            expect_head: as for every change.

        Returns:
            Whether it was refused for its length and less can be shown: then build another, which is shorter. Else the
            cause is elsewhere, and sending it again may help; or nothing shorter can be given.

        Raises:
            InvalidArgument: the request is none of the newest 32 of this session.
            FrameUnreadable: the disk did not give a frame. What every change raises.

        Cancelling gives up the wait, never the record.
        """
        seq, found = _seq_of(request), too_long(error)
        if found is not None:
            asked = ("", None) if isinstance(request, int) else (request.dialect, request.model)
            await self._load_shown(BuildRequest(*asked, on=self._on), timeout_s)
        said = found or TooLong()
        command = RequestFailed(
            seq,
            found is not None,
            said.tokens,
            said.limit,
            said.with_output,
            on=self._on,
            durability=durability,
            key=key,
            expect_head=expect_head,
        )
        return await self.send(command, timeout_s)

    async def budget(self, model: str | None = None, *, timeout_s: float | None = 5.0) -> Budget:
        """How full a model's window would be with the next request.

        Costs what came since it, or a request, was last asked for. That is taken to be as the newest one for the model
        was: the same dialect, the same `extra`, the same wish for the output.

        Args:
            model: as a request has it; None: that of the instructions, else of the newest request.
            timeout_s: how long to wait, loading what is on the disk included [seconds]; None: no limit.

        Returns:
            The parts and the pressure, in tokens.

        Raises:
            InvalidArgument: no model is known.
            FrameUnreadable: the disk did not give a frame. What every read raises.

        Cancelling gives up the wait and nothing else.
        """
        from .pressure import budget_of

        await self._head_read(timeout_s)
        await self._load_shown(BuildRequest("", model, on=self._on), timeout_s)
        return budget_of(await self._head_read(timeout_s), self._on, model)

    async def _given_out(self, command: BuildRequest, timeout_s: float | None) -> Request:
        """The request of a command; where it is time for a summary, after that."""
        deadline_s = deadline_in(timeout_s)
        await self._load_shown(command, timeout_s)
        automatic = self._cell.automatic
        if automatic is None:
            return await self.send(command, timeout_s)
        if timeout_s is None or type(timeout_s) is Unsaid:
            await automatic.before(self._cell, command)
        else:
            await automatic.before(self._cell, command, seconds_left(deadline_s))
            timeout_s = seconds_left(deadline_s)
        request = await self.send(command, timeout_s)
        automatic.after(self._cell, request)
        return request

    async def _load_shown(self, command: BuildRequest, timeout_s: float | None) -> None:
        """Read off the loop what a request shows. What cannot be asked for is left to the command to refuse."""
        check_seconds("timeout_s", timeout_s, optional=True)
        known = self._cell.state
        if known is not None and known.table.shelf is None:
            return
        from .warming import load_shown

        state = await self._state(timeout_s)
        late = f"the store did not give the frames of session {self._cell.id!r} within {timeout_s} s; try again"
        with no_longer_than(timeout_s, late), suppress(InvalidArgument):
            await load_shown(state, command)


def _seq_of(request: object) -> int:
    """The number of a request, which may be given itself. Raises `InvalidArgument`."""
    seq = request if type(request) is int else getattr(request, "seq", None)
    if type(seq) is not int:
        raise InvalidArgument("request", f"must be a Request or its seq, got {type(request).__name__}")
    return seq
