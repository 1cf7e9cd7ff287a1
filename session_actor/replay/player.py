"""Replay: going through a session's past. It reads the journal and calls nothing."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from datetime import datetime
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final, Self

from session_actor.errors import CheckpointUnknown, FrameUnknown, InvalidArgument, UnusableId
from session_actor.events import Requested, decode_event
from session_actor.given.plain import is_a, shown
from session_actor.persistence import FileStore
from session_actor.service.reserved import is_reserved
from session_actor.state.losses import unknown
from session_actor.state.times import as_us
from session_actor.window.errors import NothingToSend, RequestForgotten
from session_actor.window.requesting import fit_of

from .again import made_again
from .asking import cause, next_fit
from .difference import difference
from .errors import MomentUnknown
from .moment import Moment, gone
from .playing import Player
from .reading import Reader, translated
from .reasons import SHOWN, Cause, Why, sentence

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType

    from session_actor.models import ModelProfile
    from session_actor.persistence import Record
    from session_actor.persistence.reading.session_lines import Damage
    from session_actor.state.state import State

    from .again import Rendered
    from .difference import Diff

_MOMENTS_KEPT: Final = 2


class Replay:
    """The past of one session, from the journal alone.

    Opening goes through all records once; going to any of them then plays a few hundred at most. Memory holds some
    numbers a record, and no frame that nobody asked for. All methods but `open` block on the disk for some
    milliseconds: async code calls them by `asyncio.to_thread`, one at a time. Close it, or use it as a context manager.
    """

    def __init__(
        self, reader: Reader, session_id: str, models: Mapping[str, ModelProfile] | None, *, own: bool
    ) -> None:
        """`own`: the reader is closed with it. See `of` and `open`."""
        if is_a(session_id, str) and is_reserved(session_id):
            raise UnusableId("what the library keeps for itself is no session, and has no moments")
        self._reader = reader
        self._own = own
        self._player = Player(reader.lines(session_id), models)
        self._player.extend()
        timeline = self._player.timeline
        if not len(timeline):
            damage = self._player.damage
            raise MomentUnknown(f"session {session_id!r}", str(damage) if damage else "it has no record")
        self._seq = timeline.last_seq
        self._lately: dict[int, Moment] = {}

    @classmethod
    def of(cls, reader: Reader, session_id: str, models: Mapping[str, ModelProfile] | None = None) -> Replay:
        """The past of a session in a store that is being read. `models`, and what is raised: see `open`. Blocks."""
        return cls(reader, session_id, models, own=False)

    @classmethod
    async def open(
        cls,
        store: str | os.PathLike[str] | FileStore,
        session_id: str,
        models: Mapping[str, ModelProfile] | None = None,
    ) -> Replay:
        """Go through the records of a session, in a thread.

        Args:
            store: the directory of a store: one in use, one that is closed, a copy, a damaged one; or the store on it.
                Its lock is not taken, nothing in it is changed. What a store in use has not written yet is not seen.
            session_id: which session.
            models: the profiles of models that the service was given (`SessionService.open(models=…)`), which no record
                has: without them requests to such models are not the same when they are made again.

        Raises:
            SessionNotFound, SessionDeleted, UnusableId: there is no such session.
            MomentUnknown: not one of its records can be read.
            NotAStore, StoreVersionTooNew, StoreCorrupt: the store as a whole cannot be read, or all that is left of the
                session is behind what was pruned.
            InvalidArgument: a store in memory has no files.
            OSError: the disk refuses.

        Cancelling gives up the wait.
        """
        path = store.root if isinstance(store, FileStore) else store
        if not is_a(path, (str, PathLike)):
            raise InvalidArgument("store", f"must be a directory, or the store on one, got {type(path).__name__}")
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(None, partial(cls._opened, path, session_id, models))
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            job.add_done_callback(_close_unwanted)
            raise

    @classmethod
    def _opened(
        cls, path: str | os.PathLike[str], session_id: str, models: Mapping[str, ModelProfile] | None
    ) -> Replay:
        reader = Reader(path)
        try:
            return cls(reader, session_id, models, own=True)
        except BaseException:
            reader.close()
            raise

    def close(self) -> None:
        """Let go of the store; again: no effect. Frames that were not read yet cannot be read any more."""
        if self._own:
            self._reader.close()

    def __enter__(self) -> Self:
        """The replay itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    # --- what there is ------------------------------------------------------------------------------------------------

    @property
    def session(self) -> str:
        """The session's id."""
        return self._player.timeline.lines.session

    @property
    def damage(self) -> Damage | None:
        """Where the journal is damaged: nothing behind it is known. None: it is not."""
        return self._player.damage

    def seqs(self) -> range:
        """The records that can be gone to. It begins behind 1 in a session that was pruned."""
        seqs = self._player.timeline.seqs
        return range(seqs[self._player.first], seqs[-1] + 1)

    def requests(self) -> list[int]:
        """The records by which a request was given out."""
        return [seq for seq in self._player.requests if seq > self.seqs().start]

    def record(self, seq: int) -> Record:
        """A record itself, as it is in the journal. Raises MomentUnknown, StoreCorrupt."""
        position = self._player.timeline.position(_number(seq, "seq"))
        if position is None:
            raise MomentUnknown(f"record {seq}", self._known())
        return self._player.timeline.read([position])[0]

    def refresh(self) -> int:
        """Look at the store again; returns how many records are new. Where the replay stands does not change.

        Raises what `open` raises.
        """
        with translated():
            self._player.lines.look_again()
        return self._player.extend()

    # --- going --------------------------------------------------------------------------------------------------------

    @property
    def moment(self) -> Moment:
        """Where the replay stands: at first, at the newest record."""
        return self._made(self._position(self._seq))

    def _go(self, position: int) -> Moment:
        self._seq = self._player.timeline.seqs[position]
        return self.moment

    def at(
        self,
        *,
        seq: int | None = None,
        time: datetime | None = None,
        frame: int | None = None,
        checkpoint: str | None = None,
    ) -> Moment:
        """Go to a moment; say one of the four.

        Args:
            seq: after this record; after the one before it, when it is lost.
            time: after the newest record that was made at this time, or before it; aware.
            frame: after the record that pushed this frame; 0: after the first record, when the stack was empty.
            checkpoint: after the record that set this checkpoint last, also when it was deleted since.

        Raises MomentUnknown, FrameUnknown, CheckpointUnknown, InvalidArgument, StoreCorrupt; SessionDeleted when it was
        deleted meanwhile.
        """
        given = [one for one in (seq, time, frame, checkpoint) if one is not None]
        if len(given) != 1:
            raise InvalidArgument("at()", "takes one of seq, time, frame and checkpoint")
        if seq is not None:
            return self._go(self._position(seq))
        if time is not None:
            return self._go(self._position_of_time(time))
        if frame is not None:
            return self._go(self._position_of_frame(_number(frame, "frame")))
        named = self._player.named.get(checkpoint) if isinstance(checkpoint, str) else None
        if named is None:
            raise CheckpointUnknown(str(checkpoint))
        return self._go(self._position(named))

    def step(self, n: int = 1) -> Moment:
        """Go `n` records forward, or back when it is negative; no further than there are records."""
        if type(n) is not int:
            raise InvalidArgument("n", f"must be an int, got {type(n).__name__}")
        timeline = self._player.timeline
        here = bisect_right(timeline.seqs, self._seq) - 1
        return self._go(min(max(here + n, self._player.first), len(timeline) - 1))

    def _made(self, position: int) -> Moment:
        """The moment after a record; the newest few are kept: who asks about one asks again."""
        timeline, lately = self._player.timeline, self._lately
        seq = timeline.seqs[position]
        found = lately.pop(seq, None)
        if found is None:
            state = self._player.state_at(position)
            found = Moment(seq, timeline.times[position], timeline.read([position])[0].kind, state)
        lately[seq] = found
        while len(lately) > _MOMENTS_KEPT:
            del lately[next(iter(lately))]
        return found

    def _position(self, seq: int) -> int:
        seqs = self.seqs()
        if _number(seq, "seq") not in seqs:
            raise MomentUnknown(f"record {shown(seq)}", self._known())
        return bisect_right(self._player.timeline.seqs, seq) - 1

    def _position_of_time(self, time: datetime) -> int:
        if not is_a(time, datetime) or time.tzinfo is None:
            raise InvalidArgument("time", "must be a datetime with a time zone")
        position = self._player.timeline.before(as_us(time))
        if position is None or position < self._player.first:
            raise MomentUnknown(f"the time {time.isoformat()}", self._known())
        return position

    def _position_of_frame(self, frame: int) -> int:
        position = self._player.adding(frame) if frame else 0
        if position is None:
            raise FrameUnknown(frame)
        if position < self._player.first or (not frame and self.seqs().start > 1):
            raise MomentUnknown(f"the record of frame {frame}", self._known())
        return position

    def _known(self) -> str:
        seqs = self.seqs()
        told = f"records {seqs.start} to {seqs.stop - 1} of session {self.session!r} can be gone to"
        if seqs.start > 1:
            told += "; what was before is pruned"
        return told if self.damage is None else f"{told}; {self.damage}"

    # --- asking -------------------------------------------------------------------------------------------------------

    def diff(self, a: int | Moment, b: int | Moment) -> Diff:
        """What is different at `b` from what was at `a`: records, or moments of this replay.

        Raises MomentUnknown, StoreCorrupt; FrameUnknown when a frame that is needed was pruned since.
        """
        return difference(self._moment_of(a), self._moment_of(b))

    def _moment_of(self, which: int | Moment) -> Moment:
        return which if isinstance(which, Moment) else self._made(self._position(which))

    def request(self, seq: int) -> Rendered:
        """Make the request of a record again, and say whether it is the same. Raises MomentUnknown, StoreCorrupt.

        InvalidArgument: the record is no request; `requests` lists those that are.
        """
        event, before = self._requested(seq)
        return made_again(before.state, event, seq)

    def why(
        self,
        frame: int,
        *,
        seq: int | None = None,
        request: int | None = None,
        on: str | None = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> Why:
        """Why a frame is in a request, or is not.

        Args:
            frame: its id.
            seq: in the next request after this record; None: after the newest.
            request: in the request that this record gave out; nothing else is to be said then.
            on: the branch whose next request is meant; None: the session's own head.
            dialect: of the next request; None: that of the newest one, or what the model's profile says.
            model: of the next request; None: that of the instructions, or of the newest request.

        Raises FrameUnknown for one that this session never had, BranchUnknown, InvalidArgument, MomentUnknown,
        StoreCorrupt.
        """
        _number(frame, "frame")
        if request is not None:
            if any(one is not None for one in (seq, on, dialect, model)):
                raise InvalidArgument("request", "says it all: give neither seq, on, dialect nor model beside it")
            event, before = self._requested(request)
            return self._why(frame, before, event.quote.head, request, event)
        moment = self._made(len(self._player.timeline) - 1 if seq is None else self._position(seq))
        head = moment.state.head_of(on)
        return self._why(frame, moment, head, None, None, dialect, model)

    def _why(  # noqa: PLR0917 - one request, in the two ways to name one
        self,
        frame: int,
        moment: Moment,
        head: int | None,
        request: int | None,
        event: Requested | None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> Why:
        state = moment.state
        found = self._not_there(frame, state)
        try:
            if found is None:
                fit = next_fit(state, head, dialect, model) if event is None else fit_of(state, event, moment.seq + 1)
                found = cause(state, frame, head, fit)
        except (RequestForgotten, NothingToSend) as error:
            found = cause(state, frame, head, None, sendable=isinstance(error, RequestForgotten))
        except LookupError as error:
            raise gone(error) from None
        told = found.reason in SHOWN, found.reason, sentence(frame, found)
        return Why(frame, *told, moment.seq, request, head, found.by, found.notes)

    def _not_there(self, frame: int, state: State) -> Cause | None:
        """Of a frame that was not there yet; None: it was. Raises FrameUnknown for one that never was."""
        if 0 < frame < state.next_id and state.table.has(frame):
            return None
        position = self._player.adding(frame)
        seq = None if position is None else self._player.timeline.seqs[position]
        if seq is not None and seq > state.seq:
            return Cause("later", f"by record {seq}", seq)
        if seq is None and not (self._player.is_pruned and 0 < frame < state.next_id):
            raise unknown(state, frame)
        return Cause("pruned")

    def _requested(self, seq: int) -> tuple[Requested, Moment]:
        """The record of a request, and the moment before it."""
        position = self._position(seq)
        record = self._player.timeline.read([position])[0]
        event = decode_event(record.kind, record.data)
        if type(event) is not Requested or record.seq != seq:
            raise InvalidArgument(
                "request",
                f"{shown(seq)} is the record of no request; requests(), or --requests, lists them",
            )
        if position <= self._player.first:
            raise MomentUnknown(f"the moment before record {seq}", self._known())
        return event, self._made(position - 1)


def _close_unwanted(job: asyncio.Future[Replay]) -> None:
    """Whoever opened it waits no more."""
    if not job.cancelled() and job.exception() is None:
        job.result().close()


def _number(value: object, what: str) -> int:
    if type(value) is not int:
        raise InvalidArgument(what, f"must be an int, got {type(value).__name__}")
    return value
