"""Replacing the code of a running server: it is paused, its state comes out as a plain value, and new code takes that.

OTP does the same in three steps: sys:suspend, sys:change_code, sys:resume. What waits in the mailbox meanwhile stays
there, with its callers, and is answered by the new code. Whatever fails, the old server goes on as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from .checks import awaited, check_timeout
from .errors import Refusal, SupervisorError, shown
from .introspection import SystemCallFailed, ask, hold, let_go, put

if TYPE_CHECKING:
    from collections.abc import Callable

    from .clock import TimerHandle
    from .gen_server import GenServer
    from .ref import ServerRef
    from .slot import Slot

PAUSE_S: Final = 5.0
_DEPTH_MAX: Final = 100
_PLAIN: Final = (str, bytes, int, float, bool, type(None))


class NotPlain(SupervisorError, Refusal):
    """A server's state holds what another generation of the code could not read; the server goes on."""


class SwapOver(SupervisorError, Refusal):
    """The server is not paused any more: it went on, was taken over, or ended."""


def plain(value: object, where: str = "state") -> Any:
    """A copy of `value`, made of nothing but dict, list, tuple, str, bytes, int, float, bool and None.

    The copy shares nothing with the original that could be changed, so who takes it over may do with it as it likes.

    Raises:
        NotPlain: there is something else in it, it is nested too deeply, or it holds itself.
    """
    return _copied(value, where, [])


def _copied(value: object, where: str, above: list[int]) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind not in (list, tuple, dict):
        raise NotPlain(
            f"{where} is a {kind.__qualname__}, which other code could not read: override `swap_out` to give a value "
            "of dict, list, tuple, str, bytes, numbers and None, and `swap_in` to take it"
        )
    if id(value) in above or len(above) >= _DEPTH_MAX:
        raise NotPlain(f"{where} holds itself, or is nested more than {_DEPTH_MAX} deep")
    above.append(id(value))
    if kind is dict:
        pairs = cast("dict[object, object]", value).items()
        copied: Any = {_key(key, where): _copied(item, f"{where}[{key!r}]", above) for key, item in pairs}
    else:
        items = enumerate(cast("list[object]", value))
        copied = [_copied(item, f"{where}[{index}]", above) for index, item in items]
        copied = copied if kind is list else tuple(copied)
    above.pop()
    return copied


def _key(key: object, where: str) -> str | int:
    if type(key) is str or type(key) is int:
        return key
    raise NotPlain(f"{where} has a key of type {type(key).__qualname__}; keys are str or int")


class Swapped:
    """A server that is paused between two messages, and what it knows.

    It goes on by itself, with its old code, when nothing was done for `pause_s` seconds: nobody waits for ever.
    """

    def __init__(self, slot: Slot, server: GenServer, value: Any) -> None:
        """Made by `swap`."""
        self.id = slot.id
        self.version = server.version
        """The `version` of the class that the state came from."""
        self.value = value
        """The state, plain: see `plain`."""
        self._slot = slot
        self._server = server
        self._over = False
        self._timer: TimerHandle | None = None

    @property
    def paused(self) -> bool:
        """Whether the same server still waits for `take` or `resume`."""
        return not self._over and self._slot.server is self._server and self in self._slot.suspended

    def limit(self, pause_s: float) -> None:
        """Go on in so many seconds at the latest."""
        self._timer = self._slot.floor.clock.call_later(pause_s, self.resume)

    def resume(self) -> None:
        """Let the server go on, as it was; again, or afterwards: no effect."""
        self._over = True
        self._stop_timer()
        let_go(self._slot, self)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check_paused(self) -> None:
        if not self.paused:
            raise SwapOver(f"server {shown(self.id)} is not paused any more: swap it again")

    async def take(self, factory: Callable[[], GenServer], timeout_s: float | None = 5.0) -> None:
        """Let the server that `factory` makes go on: with the mailbox, its callers, the ref and the place in the tree.

        `new.swap_in(await new.code_change(version, value))` runs before the next message; `init` does not.
        Restarts still use the spec's own `start`. Cancelled, or timed out, before the new server takes the state, it
        does nothing: the old one goes on. Afterwards it is done.

        Args:
            factory: makes the new server.
            timeout_s: seconds until it must be done; None: no limit.

        Raises:
            SystemCallFailed: a step raised; the old server has gone on, unharmed.
            SwapOver: the server is not paused any more.
            And what `ServerRef.call` raises.
        """

        async def change(slot: Slot) -> None:
            self._check_paused()
            self._stop_timer()
            await replace(slot, factory(), self.version, self.value, self._check_paused)

        try:
            await ask(self._slot.ref, change, timeout_s)
        finally:
            self.resume()


async def swap(ref: ServerRef, timeout_s: float | None = 5.0, pause_s: float | None = PAUSE_S) -> Swapped:
    """Pause a server after its running message, and take its state out as a plain value.

    Messages wait from then on, with their callers, until `Swapped.take` or `Swapped.resume`; their timeouts run.
    Cancelled, the server goes on.

    Args:
        ref: the server.
        timeout_s: seconds until it must be paused; None: no limit.
        pause_s: seconds after which it goes on by itself; None: never.

    Raises:
        NotPlain: the state holds what other code could not read; the server goes on.
        SystemCallFailed: its `swap_out` raised, or it is no GenServer; the server goes on.
        ValueError, TypeError: no such pause. And what `ServerRef.call` raises.
    """
    check_timeout("pause_s", pause_s)
    held: list[Swapped] = []

    def pause(slot: Slot) -> Swapped:
        server = slot.server
        if server is None:
            raise SystemCallFailed(f"{shown(slot.id)} is not a GenServer: it has no state")
        swapped = Swapped(slot, server, plain(server.swap_out()))
        hold(slot, swapped)
        held.append(swapped)
        if pause_s is not None:
            swapped.limit(pause_s)
        return swapped

    try:
        return await ask(ref, pause, timeout_s)  # type: ignore[no-any-return]
    except BaseException:  # cancelled when it was paused already: nobody else could let it go on
        for swapped in held:
            swapped.resume()
        raise


async def replace(
    slot: Slot, new: GenServer, version: int, value: Any, check: Callable[[], None] = lambda: None
) -> None:
    """Put `new` into the place of a slot's server; called between two messages. When it raises, the old one is there.

    `version` and `value`: what `swap_out` of the old one gave. `check`: raises when it is not wanted any more; called
    before `new` takes the state.
    """
    new.attach(slot)
    changed = await awaited(new, "code_change", new.code_change(version, value))
    check()
    await awaited(new, "swap_in", new.swap_in(changed))
    put(slot, new)
