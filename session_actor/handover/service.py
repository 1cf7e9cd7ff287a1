"""The service's half of a handover: `SessionService.handover` and `SessionService.take`."""

from __future__ import annotations

from asyncio import CancelledError
from inspect import iscoroutinefunction
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from session_actor.errors import InvalidArgument
from session_actor.service_errors import ServiceClosed

from .bridge import Bridge
from .errors import HandoverFailed
from .foreign import PROTOCOL, ForeignHandover
from .foreign_store import Foreign
from .telling import handing_over, ms_since

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from session_actor.persistence import Store
    from session_actor.service.lifetime import Lifetime
    from session_actor.service.options import SessionOptions

    from .foreign import Offered
    from .values import CodeChange

To: TypeAlias = Literal["generation", "process"]
"""To whom a service is handed over."""

_TO: Final[tuple[To, ...]] = ("generation", "process")


class Handover:
    """A service that is offered to the next generation of the code in this process; it goes on until that takes it."""

    def __init__(self, store: Store, former: Callable[[], Lifetime | None], give: Callable[[Lifetime], None]) -> None:
        """Made by `SessionService.handover`.

        `former`: what there is to be taken; None: nothing any more. `give`: lets the service serve its old callers by
        the generation that has taken over.
        """
        self._store = store
        self._former = former
        self._give = give
        self.protocol = PROTOCOL

    @property
    def store(self) -> Store:
        """The store, which stays open: its lock is kept."""
        store = self._store
        return cast("Store", store.inner) if isinstance(store, Foreign) else store

    def bridge(self) -> Bridge:
        """What another generation of the library takes over by. Raises HandoverFailed, once the service is given."""
        return Bridge(self._lifetime())

    def _lifetime(self) -> Lifetime:
        former = self._former()
        if former is None or former.closed:
            raise _gone()
        return former

    async def taken(self, options: SessionOptions, code_change: CodeChange | None) -> Lifetime:
        """Let the next generation have everything.

        Raises what `SessionService.take` raises when it is started.
        """
        former = self._lifetime()
        with handing_over("generation", {"sessions": former.population.live}):
            heir = await former.take(options, code_change)
            self._give(heir)
        return heir


class HandsOver:
    """Part of `SessionService`."""

    _store: Store
    _options: SessionOptions
    _lifetime: Lifetime | None
    _given: bool
    """The lifetime is that of the service which took over: it is not this one's to close."""
    _offered: tuple[Handover | ForeignHandover, CodeChange | None] | None
    """What this service takes over when it is started; None: nothing, it opens its store."""

    async def handover(self, to: To = "generation") -> Handover:
        """Hand the service over to the next generation of the code.

        `"generation"`: in this process, to a service made by `SessionService.take`. Nothing is stopped or paused by
        this call: the service goes on until it is taken.

        `"process"`: to another process on this machine, which opens the same directory with `lock_timeout_s`. What the
        disk needs is done first, while sessions are served; then calls are refused with HandedOver, those that wait are
        answered, all is synced, snapshots are saved, and the lock is let go. The service is closed when this returns.
        Cancelling while the disk is got ready changes nothing; afterwards it gives up the wait: the handover goes on.

        Raises HandoverFailed when another generation has taken over, and with `"process"` when the disk did not take in
        `close_timeout_s` seconds what only the memory has: then the service goes on as it was. ServiceClosed,
        ServiceDown, WrongLoop, InvalidArgument; with `"process"` also what `close` raises, and then it is closed.
        """
        lifetime = self._lifetime
        if to not in _TO:
            raise InvalidArgument("to", f"must be one of {', '.join(_TO)}")
        if lifetime is None:
            raise ServiceClosed
        if self._given:
            raise _gone()
        closed = lifetime.population.why_closed()
        if closed is not None:
            raise closed
        lifetime.check_loop()
        if to == "process":
            await _to_process(lifetime)
        return Handover(self._store, lambda: None if self._given else self._lifetime, self._give)

    def _give(self, heir: Lifetime) -> None:
        self._lifetime, self._given = heir, True

    @classmethod
    def take(cls, handover: Handover, *, code_change: CodeChange | None = None, **options: Any) -> Self:
        """Describe a service that takes over what another one hands on; `async with` (or `start`) does it.

            async with SessionService.take(await old.handover(), summarizer=reloaded.summarize) as service:

        The store stays open, with its lock. The sessions come one after the other: each is paused after its running
        message, its state is handed on as a plain, versioned value, and what waits in its mailbox is answered by the
        new generation. Handles of the old service go on working, and closing that has no effect from then on.

        Args:
            handover: what `SessionService.handover` of the other service returned.
            code_change: `code_change(old_version, value) -> value`, called with the value of each session after the
                library's own steps (OTP: code_change). It may refuse by raising; None: there is none. The records stay
                what they are, and after a crash they alone count: what it returns must say the same as they do.
            **options: those of `open`, but for `store`, `lock_timeout_s` and `recovery`, which the store has already.
                None is taken over from the other service: new code says what it wants.

        Starting it raises HandoverFailed when a session cannot be taken: then the old service goes on, with all its
        sessions, and no message is lost.

        Raises:
            InvalidArgument: an argument that can never be right.
        """
        offered = _offered(handover)
        if code_change is not None and (not callable(code_change) or iscoroutinefunction(code_change)):
            raise InvalidArgument("code_change", "must be a function, not an async one, of a version and a value")
        service = cast("Self", cast("Any", cls).open(offered.store, **options))  # SessionService has it
        service._offered = (offered, code_change)  # noqa: SLF001 - of this class
        return service


def _gone() -> HandoverFailed:
    return HandoverFailed("the service", "it is closed, or was taken over already")


def _offered(handover: object) -> Handover | ForeignHandover:
    if isinstance(handover, Handover):
        return handover
    if getattr(handover, "protocol", None) != PROTOCOL:
        raise InvalidArgument("handover", "must be what `handover()` of a running service returned")
    return ForeignHandover(cast("Offered", handover))


async def _to_process(lifetime: Lifetime) -> None:
    measured: dict[str, float] = {"sessions": lifetime.population.live}
    with handing_over("process", measured) as telling:
        await lifetime.prepare_closing()
        refusing_s = perf_counter()

        def closed(error: BaseException | None) -> None:
            measured["closed_ms"] = ms_since(refusing_s)
            telling.end(error)

        try:
            await lifetime.close(handing=True)
        except CancelledError:
            telling.goes_on = lifetime.when_closed(closed)
            raise
        if lifetime.heir is not None:
            raise _gone()
        measured["closed_ms"] = ms_since(refusing_s)
