"""The service: what an agent server opens once, and takes its sessions from."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from session_actor import telemetry
from session_actor.compaction.options import TIMEOUT_S, Summaries, checked_words
from session_actor.errors import InvalidArgument, SessionActorError, StoreError, UnusableId, translate
from session_actor.given import content
from session_actor.given.given_numbers import check_seconds
from session_actor.handle.handle import Session
from session_actor.handover.service import HandsOver
from session_actor.hooks.face import HooksFace
from session_actor.hooks.hook import by_phase
from session_actor.log import LOGGER
from session_actor.persistence import (
    FileStore,
    Level,
    PersistenceError,
    Store,
    check_session_id,
)
from session_actor.server.cell import Birth, Cell
from session_actor.service_errors import ServiceClosed, SessionDeleted, SessionExists
from session_actor.state.history import created

from .deadline import deadline_in, seconds_left
from .endings import Ends
from .forking import birth_from
from .health import ServiceHealth
from .lifetime import Lifetime
from .options import SessionOptions, check_path
from .reserved import is_reserved
from .starting import Starting

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from session_actor.commands import Target
    from session_actor.compaction.options import Summarizer
    from session_actor.hooks.hook import Hook
    from session_actor.models import ModelProfile
    from session_actor.persistence import Recovery, SessionInfo

    from .options import Retention
    from .population import Population


class SessionService(Ends, HandsOver):
    """All sessions of one store, in one process, on one event loop.

        async with SessionService.open("conversations/") as service:
            session = await service.session("user-42", create=True)

    Its supervision tree (one_for_one): the store's writer and cutter, the supervisor of sessions (dynamic), the sweeper
    that passivates idle sessions. Closing passivates every session; it ends none.
    """

    def __init__(self, store: Store, options: SessionOptions) -> None:
        """Use `open`."""
        self._store = store
        self._options = options
        self._lifetime = None
        self._starting: Starting | None = None
        self._given = False
        self._offered = None

    @classmethod
    def open(
        cls,
        store: str | os.PathLike[str] | Store,
        *,
        durability: Level = "async",
        lock_timeout_s: float | None = 0.0,
        idle_timeout_s: float | None = 900.0,
        max_live: int | None = None,
        mailbox_limit: int = 10_000,
        max_restarts: int = 5,
        restart_window_s: float = 30.0,
        close_timeout_s: float = 10.0,
        retention: Retention = "all",
        recovery: Recovery = "strict",
        models: Mapping[str, ModelProfile] | None = None,
        summarizer: Summarizer | None = None,
        compaction_timeout_s: float = TIMEOUT_S,
        summarizer_window: int | None = None,
        rule_words: Sequence[str] = (),
        hooks: Sequence[Hook] = (),
    ) -> Self:
        """Describe a service; `async with` (or `start` and `close`) runs it.

        Args:
            store: a directory (made if missing), or a Store of your own, such as MemoryStore(). The events of a
                FileStore without an `on_event` of its own go to `telemetry`.
            durability: the level at which changes are answered when a call does not say.
            lock_timeout_s: how long to wait for another process to let go of the directory [seconds]; None: no limit.
            idle_timeout_s: a session not changed for so long is unloaded [seconds]; reads do not count; None: never.
            max_live: above so many loaded sessions those not changed for longest are unloaded; None: no limit.
            mailbox_limit: how many messages may wait for one session; further callers wait in line.
            max_restarts: a session that crashes more often than this without having lived `restart_window_s` since is
                quarantined.
            restart_window_s: how long a restarted session must live for its crashes to be forgotten [seconds].
            close_timeout_s: how long closing may take before what hangs is killed [seconds].
            retention: "all" keeps every frame for ever, popped ones too; "prune" prunes a session (see `Session.prune`)
                when it is unloaded because it is idle.
            recovery: what is done with a session of a directory that is found damaged when it is loaded. "strict": it
                is refused (StoreCorrupt), others load. "prefix": its records up to the first one that is lost are kept.
                "readable": all that can be read is kept. What is lost and where the originals are is in
                `Session.recovery`. Damage below its snapshot is met later, by the call that reads a frame from there:
                StoreCorrupt, and `repair` mends it. A Store of your own has an option for that itself.
            models: what is known of models that the library does not know, or knows otherwise, by their names; they win
                over what is shipped. None: nothing.
            summarizer: an async function that asks a model of yours for a summary: `summarizer(prompt, *, max_tokens,
                session_id) -> str`. Sessions then compact by themselves: in the background when a request was at 75% of
                its budget, and before one that would be at 95%. None: they do not (`Session.prepare_compaction`).
            compaction_timeout_s: how long a request waits for that at most [seconds]; then a summary is made without a
                model.
            summarizer_window: the window of the summariser's model [tokens]; None: that of the conversation's.
            rule_words: words of other languages than English that make a user's sentence a rule which no summary may
                lose, such as "niemals".
            hooks: what to call when a session is made, loaded, unloaded, compacted or ended.

        Raises:
            InvalidArgument: an argument that can never be right.
        """
        options = SessionOptions(
            durability=durability,
            idle_timeout_s=idle_timeout_s,
            max_live=max_live,
            mailbox_limit=mailbox_limit,
            max_restarts=max_restarts,
            restart_window_s=restart_window_s,
            close_timeout_s=close_timeout_s,
            retention=retention,
            recovery=recovery,
            models=models,
            summaries=Summaries(
                summarizer=summarizer,
                timeout_s=compaction_timeout_s,
                window=summarizer_window,
                rule_words=checked_words(rule_words),
            ),
            hooks=by_phase(hooks),
        )
        return cls(_store_at(store, lock_timeout_s, options.recovery), options)

    # --- life ---

    async def start(self) -> None:
        """Open the store and start the tree. When it raises or is cancelled, nothing is left open.

        Raises StoreUnusable when the directory cannot be made, read or written; NotAStore when it holds what is not a
        store's; StoreLocked, StoreVersionTooNew, StoreCorrupt, NetworkFileSystem; LevelUnreachable for the default
        level; AsyncioOnly under anything but asyncio; InvalidArgument when the service is running or starts already;
        ServiceClosed when it was closed meanwhile. See also `take`.
        """
        if self._lifetime is not None or self._starting is not None:
            raise InvalidArgument("service", "is running; close it before you start it again")
        starting = self._starting = Starting()
        try:
            self._lifetime = await starting.run(self._begin())
        finally:
            self._starting = None

    async def _begin(self) -> Lifetime:
        if self._offered is None:
            return await Lifetime.start(self._store, self._options)
        handover, code_change = self._offered
        lifetime = await handover.taken(self._options, code_change)
        self._offered = None
        return lifetime

    async def close(self) -> None:
        """Refuse new calls, answer those that wait, flush to `synced`, unload every session, let go of the store.

        A start that is under way is broken off first. What hangs is killed after `close_timeout_s`. Closing again joins
        the first closing, or has no effect.
        Cancelling gives up the wait; the closing goes on. Raises WrongLoop; and when it is closed all the same:
        ServiceDown if the service had given up, CloseTimeout if the disk did not answer in time, NotDurable if
        something could not be written.
        """
        if self._starting is not None:
            await self._starting.break_off()
        lifetime = self._lifetime
        if lifetime is not None and not self._given:
            lifetime.check_loop()
            try:
                await lifetime.close()
            finally:
                if lifetime.closed and self._lifetime is lifetime:
                    self._lifetime = None

    async def __aenter__(self) -> Self:
        """Start; raises what `start` raises."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close; raises what `close` raises, unless the body has raised: then that goes on, and ours is logged."""
        try:
            await self.close()
        except SessionActorError as ours:
            if error is None:
                raise
            LOGGER.error("close_failed", error=str(ours))

    def _why_closed(self) -> SessionActorError | None:
        lifetime = self._lifetime
        return ServiceClosed() if lifetime is None else lifetime.population.why_closed()

    def _people(self) -> Population:
        lifetime = self._lifetime
        if lifetime is None:
            raise ServiceClosed
        closed = lifetime.population.why_closed()
        if closed is not None:
            raise closed
        lifetime.check_loop()
        return lifetime.newest.population

    # --- sessions ---

    async def session(
        self, session_id: str, *, create: bool = False, metadata: Any = None, timeout_s: float | None = 5.0
    ) -> Session:
        """The handle of a session, which is loaded when this returns.

        Cancelling gives up the wait: loading goes on, and what `create` makes is made.

        Args:
            session_id: any non-empty str of up to 512 characters.
            create: make it when there is none. One that is there is returned as it is, also when it has ended.
            metadata: JSON-like value kept with a session that is made by this call; it never changes afterwards, and is
                ignored when the session is there already.
            timeout_s: how long loading may take [seconds]; None: no limit.

        Raises:
            SessionNotFound: there is none, and `create` is False.
            UnusableId: the id is empty, too long or no str.
            InvalidArgument: `timeout_s` is no number of seconds.
            ValueNotStorable: the metadata would not come back as given.
            RecordTooLarge: the metadata is over 64 MB.
            SessionQuarantined, StoreCorrupt, BacklogFull, NotDurable, ServiceClosed, ServiceDown.
            CallTimeout: not loaded in time; loading goes on.
        """
        session_id = _checked(session_id)
        check_seconds("timeout_s", timeout_s, optional=True)
        if not create:
            return await self._loaded(session_id, None, timeout_s)
        first = created(session_id, metadata)
        return await self._loaded(session_id, Birth(lambda: (first,)), timeout_s)

    async def _loaded(self, session_id: str, birth: Birth | None, timeout_s: float | None) -> Session:
        while True:
            people = self._people()
            fresh = birth is not None and people.cell(session_id).state is None
            session = Session(await people.load(session_id, birth, timeout_s))
            if not fresh or self._options.durability == "async":
                return session
            with suppress(SessionDeleted):  # as in `load`: a session made now is another one
                await session.flush(self._options.durability, timeout_s=timeout_s)
                return session

    def _cell(self, session_id: str) -> Cell:
        return self._people().cell(_checked(session_id))

    async def fork(
        self, source: str, new_id: str, at: Target | None = None, *, metadata: Any = None, timeout_s: float | None = 5.0
    ) -> Session:
        """Make a new session with the history of `source`, and return its handle.

        The two share nothing: deleting either leaves the other whole. Keys are not copied. Cancelling gives up the
        wait: a copy that was begun is finished.

        Args:
            source: the id of the session to copy; it is loaded, and goes on meanwhile. It may have ended.
            new_id: the id of the new session, which must be free.
            at: a frame, branch or checkpoint of the source: only what lies on the path to it is copied, as branch
                `main`, and what of it was retracted above; 0: nothing, the new session is empty; None: all branches and
                checkpoints. The first frame's parent is None: to copy what lies before any frame, give `frame.parent or
                0`.
            metadata: of the new session, as for `session`; the source's is not copied.
            timeout_s: how long it may take: loading the source, reading its old frames from the disk, and making the
                copy [seconds]; None: no limit.

        Raises:
            SessionExists: there is a session `new_id`; it was not touched.
            SessionNotFound: there is no `source`.
            FrameUnknown, NameUnknown: the source has no such frame or name.
            ForkUnfinished: one of the two is a copy that a dying process cut short; delete it and fork again.
            FrameUnreadable: the disk did not give a frame of the source.
            CallTimeout: not in time. A copy that was begun is finished; frames that were read stay in memory while the
                source is loaded, so that trying again goes on from there.
            What else `session` raises.
        """
        source, new_id = _checked(source), _checked(new_id)
        deadline_s = deadline_in(timeout_s)
        within = timeout_s, deadline_s
        birth = await birth_from(self._people(), source, new_id, at, metadata=metadata, within=within)
        session = await self._loaded(new_id, birth, seconds_left(deadline_s))
        if not birth.happened:
            raise SessionExists(new_id)
        return session

    def release(self, session_id: str) -> None:
        """Lift the quarantine of a session: it is started again, and its next crashes count from zero.

        Raises SessionNotQuarantined.
        """
        self._people().release(self._cell(session_id))

    async def sessions(self, prefix: str = "") -> AsyncIterator[SessionInfo]:
        """Every session of the store whose id starts with `prefix`, by id, loaded or not; reads no bodies.

        Raises InvalidArgument for a prefix that is no str, ServiceClosed, ServiceDown, StoreCorrupt; StoreError when
        the disk refuses. Cancelling ends the listing and nothing else.
        """
        self._people()
        prefix = content.checked(content.text, prefix, "prefix")
        listing = self._store.sessions(prefix)
        while True:
            try:
                info = await anext(listing)
            except StopAsyncIteration:
                return
            except PersistenceError as error:
                raise translate(error) from None
            except OSError as error:
                raise StoreError.of("the sessions cannot be listed", error, "begin again") from error
            if not is_reserved(info.id):
                yield info

    @property
    def hooks(self) -> HooksFace:
        """The mandatory hooks that are still to run. Raises ServiceClosed, ServiceDown."""
        return HooksFace(self._people().hooks)

    def health(self) -> ServiceHealth:
        """How the service and its store are: what waits for the disk, what went wrong, ages. Cheap.

        Raises ServiceClosed, ServiceDown.
        """
        people = self._people()
        now_us, hooks = time.time_ns() // 1000, people.hooks.health()
        return ServiceHealth(people.live, people.quarantined(), self._store.health(), now_us, hooks)

    def __repr__(self) -> str:
        """Whether it is open."""
        return f"SessionService({'open' if self._why_closed() is None else 'closed'})"


def _store_at(given: object, lock_timeout_s: float | None, recovery: Recovery) -> Store:
    """The store that was given, or the one in the directory; its events go to `telemetry` unless they go elsewhere."""
    check_seconds("lock_timeout_s", lock_timeout_s, optional=True)
    store = given
    if not hasattr(store, "workers"):
        store = FileStore(check_path(given), lock_timeout_s=lock_timeout_s, recovery=recovery)
    if isinstance(store, FileStore) and store.on_event is None:
        store.on_event = telemetry.store_event
    return cast("Store", store)


def _checked(session_id: str) -> str:
    try:
        checked = check_session_id(session_id)
    except PersistenceError as error:
        raise translate(error) from None
    if is_reserved(checked):
        raise UnusableId(f"session ids that begin like {checked[:15]!r} are the library's own; choose another")
    return checked
