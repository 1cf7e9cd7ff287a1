"""The base class of servers: typed handlers and the callbacks of OTP's gen_server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from .checks import awaited
from .coroutines import is_async, watched
from .errors import NotStarted, Refusal, SupervisorError, shown
from .exits import Ending, ExitReason, asked_reason
from .messages import HANDLES_ATTRIBUTE, Continue, Ignore
from .monitor import Monitor, link, monitor_into_mailbox
from .reply import Deferred
from .serving import run_next
from .timers import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ref import ServerRef
    from .slot import Handler, Slot

Reply = TypeVar("Reply")


class GenServer:
    """A server: one message at a time, its state in its attributes, started and restarted by a supervisor.

    Subclasses mark methods with `@handles(MessageType)`. A handler returns the reply; raises `Refusal` to say no; any
    other exception crashes the server: the running call gets `ServerCrashed`, the supervisor decides about a restart.
    """

    __slots__ = ("_slot",)

    version: ClassVar[int] = 1
    trap_exit: ClassVar[bool] = False
    """True: the end of a linked server arrives as an `Exit` message instead of ending this one (OTP: trap_exit)."""
    leaf: ClassVar[bool] = False
    """True: the sync handlers promise to be quick, to send no messages, to run nobody else's code and to set no context
    variable. An inline call then needs no context of its own and no place in the chain of servers, and one in eight is
    timed for all: a third of what an inline call costs otherwise is saved."""

    _handlers: ClassVar[dict[type, Handler]] = {}
    _sync_handlers: ClassVar[dict[type, Handler]] = {}

    _slot: Slot

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Collect the class's handlers; a method that overrides a handler takes its messages over."""
        super().__init_subclass__(**kwargs)
        cls._handlers = {}
        for name, types in _marked(cls):
            method: Callable[..., Any] = getattr(cls, name)
            cls._handlers.update(dict.fromkeys(types, method))
        inline: dict[type, Handler] = {}
        for kind, method in cls._handlers.items():
            if not is_async(method):
                inline[kind] = watched(inline, kind, method)
        cls._sync_handlers = inline

    @classmethod
    def find_handler(cls, kind: type) -> Handler | None:
        """Return the handler for messages of `kind`: its own, or that of the nearest base class."""
        for base in kind.__mro__:
            handler = cls._handlers.get(base)
            if handler is not None:
                return handler
        return None

    @classmethod
    def sync_handlers(cls) -> dict[type, Handler]:
        """Return the handlers that may run inline, by exact type."""
        return cls._sync_handlers

    def attach(self, slot: Slot) -> None:
        """Give the server its place; called by the runtime before `init`.

        Raises:
            SupervisorError: this instance has a place already; the factory must make a new one each time.
        """
        if getattr(self, "_slot", None) is not None:
            message = f"the factory of child {shown(slot.id)} returned a server that was started before; make a new one"
            raise SupervisorError(message)
        self._slot = slot

    # -- callbacks ----------------------------------------------------------------------------------------------------

    async def init(self) -> Continue | Ignore | None:
        """Prepare the server before its first message; calls wait meanwhile. Raising fails the start (OTP: init).

        A `Refusal` raised at the first start fails it, too, but is neither logged nor counted as a crash.

        Returns:
            None; `Continue(argument)` to run `handle_continue(argument)` before any message; `IGNORE` not to run.
        """
        return None

    async def handle_continue(self, argument: Any) -> Continue | None:
        """Go on after `init` or `continue_with`. Raising is a crash (OTP: handle_continue)."""
        del argument
        return None

    async def handle_info(self, message: Any) -> None:
        """Take Down, Exit, timer messages and casts that have no handler of their own; the default logs their type."""
        from .log import logger

        logger().info(
            "message_without_handler", server=shown(self._slot.id, str), message_type=type(message).__qualname__
        )

    async def terminate(self, reason: ExitReason) -> None:
        """Clean up. Called exactly once for each incarnation whose `init` succeeded, whatever ended it.

        Runs in a task of its own, shielded from foreign cancellation, cancelled at the shutdown deadline.
        """
        del reason

    async def code_change(self, old_version: int, state: Any) -> Any:
        """Turn the state of `old_version` into this class's (OTP: code_change); raising keeps the old server."""
        del old_version
        return state

    def lent(self, content: Any) -> Any:
        """Do what the server is lent for, when its ref's `borrow(content)` was called; a leaf's promise holds for it.

        What it returns or raises, and `self.defer()` in it, count as in a handler. The default refuses.
        """
        del content
        raise Refusal(f"server {shown(self._slot.id)} is not lent: its class has no `lent` of its own")

    def get_state(self) -> Any:
        """Return the state for `get_state(ref)` and `change_code`: by default a dict of the attributes."""
        names = [*getattr(self, "__dict__", {}), *(slot for base in type(self).__mro__ for slot in _slots_of(base))]
        return {name: getattr(self, name) for name in names if name != "_slot" and hasattr(self, name)}

    def set_state(self, state: Any) -> None:
        """Take the state over in `change_code`: by default the attributes in a dict."""
        for name, value in state.items():
            setattr(self, name, value)

    def swap_out(self) -> Any:
        """Return the state for `swap`, as a plain value: by default `get_state`. See `swapping.plain`."""
        return self.get_state()

    async def swap_in(self, value: Any) -> None:
        """Take over what `code_change` made of a swapped value, instead of `init`; raising keeps the old server."""
        self.set_state(value)

    # -- for handlers -------------------------------------------------------------------------------------------------

    @property
    def ref(self) -> ServerRef:
        """This server's ref.

        Raises:
            NotStarted: no supervisor has started this instance.
        """
        slot: Slot | None = getattr(self, "_slot", None)
        if slot is None:
            message = f"{type(self).__qualname__} was not started by a supervisor"
            raise NotStarted(message)
        return slot.ref

    def defer(self) -> Deferred[Any]:
        """Take the right to answer the running call later; the handler then returns `NO_REPLY`.

        Raises:
            SupervisorError: no call is running (a cast has no caller).
        """
        pending = self._slot.defer()
        if pending is None:
            message = f"server {shown(self._slot.id)}: defer() belongs into the handler of a call"
            raise SupervisorError(message)
        return Deferred(pending)

    def send_after(self, delay_s: float, message: object) -> Timer:
        """Send `message` to this server in `delay_s` seconds, unless cancelled or this incarnation has ended.

        It is handled in no caller's context: one that a message sends on and on would be kept for ever.
        """
        return Timer(self._slot, delay_s, message)

    def continue_with(self, argument: Any) -> None:
        """Run `handle_continue(argument)` after this handler and before the next user message.

        Dropped when this incarnation ends first; a stop that drains the mailbox lets it run. When the server's code is
        changed before, the new code goes on.

        Raises:
            WrongLoop: called from another thread or loop.
        """
        slot = self._slot
        slot.floor.check(slot.id)
        posted_by = slot.server

        async def go_on() -> None:
            server = slot.server
            if server is not None and (server is self or posted_by is self):
                await run_continues(server, Continue(argument))

        if slot.task is not None:
            run_next(slot, go_on)

    def stop_self(self, reason: Literal["normal", "stopped"] = "normal") -> None:
        """End after this handler; the restart policy applies as for an exit in OTP, what waits stays for a restart.

        Raises:
            ValueError: another reason than "normal" or "stopped".
        """
        self._slot.ask_end(Ending(asked_reason(reason), final=False, by_itself=True))

    def monitor(self, ref: ServerRef) -> Monitor:
        """Get a `Down` message at each end of an incarnation of `ref`, until cancelled or this incarnation ends."""
        return monitor_into_mailbox(ref, self._slot)

    def link(self, ref: ServerRef) -> None:
        """Tie the two incarnations: an end other than normal of one ends the other too (OTP: link)."""
        link(self._slot, ref)


async def run_continues(server: GenServer, following: Continue | None) -> None:
    """Run `handle_continue` as long as it asks for another."""
    while following is not None:
        following = await awaited(server, "handle_continue", server.handle_continue(following.argument))


def _marked(cls: type) -> list[tuple[str, tuple[type, ...]]]:
    return [
        (name, types)
        for base in reversed(cls.__mro__)
        for name, method in vars(base).items()
        if (types := getattr(method, HANDLES_ATTRIBUTE, None)) is not None
    ]


def _slots_of(base: type) -> tuple[str, ...]:
    names: str | tuple[str, ...] = vars(base).get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)
