"""What a caller without a type checker gets wrong is told where it was written, and not when a child crashes."""

from contextlib import suppress
from typing import Any

import pytest
from structlog.testing import capture_logs

from session_actor.supervisors import (
    ChildNotFound,
    ChildSpec,
    Continue,
    DynamicSupervisor,
    GenServer,
    InitFailed,
    Supervisor,
    SystemCallFailed,
    UnknownMessage,
    change_code,
    handles,
    swap,
)

from .support import Add, idle


@pytest.mark.parametrize("name", ["mailbox", "intensity", "backoff"])
@pytest.mark.parametrize("value", [3, "three", {"max_restarts": 3}])
def test_an_option_of_a_child_that_is_of_another_class_is_refused_with_the_child_s_id(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"child 'it': {name} is of class \w+, not {type(value).__name__}"):
        ChildSpec("it", start=GenServer, **{name: value})


@pytest.mark.parametrize("kind", [Supervisor, DynamicSupervisor])
@pytest.mark.parametrize("name", ["intensity", "backoff"])
def test_an_option_of_a_supervisor_that_is_of_another_class_is_refused(kind: Any, name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} is of class \w+, not int"):
        kind(**{name: 3})


class Plain(GenServer):
    """All of its callbacks lack their `async`."""

    def init(self) -> None:  # type: ignore[override]
        """Be called."""


class PlainLater(GenServer):
    """As above, but for `init`."""

    async def init(self) -> Continue:
        return Continue(None)

    def handle_continue(self, argument: Any) -> None:  # type: ignore[override]
        """Be called."""


class Sum(GenServer):
    """A sound one, whose state is plain."""

    def __init__(self) -> None:
        self.total = 0

    @handles(Add)
    def add(self, message: Add) -> int:
        self.total += message.n
        return self.total


class PlainEnd(Sum):
    """As above, of the last one and of what takes over."""

    def terminate(self, reason: Any) -> None:  # type: ignore[override]
        """Be called."""

    def code_change(self, old_version: int, state: Any) -> Any:
        return state


class PlainTaking(Sum):
    """As above, of what takes a state over."""

    def swap_in(self, value: Any) -> None:  # type: ignore[override]
        """Be called."""


async def test_a_start_whose_init_is_a_plain_function_fails_and_names_it() -> None:
    async with DynamicSupervisor() as root:
        with pytest.raises(InitFailed, match="CallbackNotAsync in its init") as caught:
            await root.start_child(ChildSpec("it", start=Plain))
    assert str(caught.value.__cause__) == "Plain.init must be an `async def`: it is awaited"


async def test_a_later_callback_that_is_a_plain_function_is_a_crash_that_is_logged_by_that_name() -> None:
    for start in (PlainLater, PlainEnd):
        with capture_logs() as logs:
            async with DynamicSupervisor() as root:
                ref = await root.start_child(ChildSpec("it", start=start, restart="temporary"))
                with suppress(ChildNotFound):  # it has crashed already, over what its `init` asked for
                    await root.terminate_child("it")
        assert ["CallbackNotAsync" in str(line["error"]) for line in logs] == [True]
        assert not ref.alive


async def test_new_code_whose_callbacks_are_plain_functions_is_refused_and_the_old_goes_on() -> None:
    async with Supervisor([ChildSpec("it", start=Sum)]) as root:
        ref = await idle(root.child("it"))
        with pytest.raises(SystemCallFailed) as caught:
            await change_code(ref, PlainEnd)
        assert "CallbackNotAsync" in str(caught.value)
        for kind in (PlainEnd, PlainTaking):
            swapped = await swap(ref)
            with pytest.raises(SystemCallFailed) as caught:
                await swapped.take(kind)
            assert "CallbackNotAsync" in str(caught.value)
        assert await ref.call(Add(2)) == 2


async def test_a_message_without_a_handler_is_answered_with_what_the_class_lacks() -> None:
    async with Supervisor([ChildSpec("it", start=GenServer)]) as root:
        with pytest.raises(
            UnknownMessage, match=r"'it' has no handler for Add: mark a method of its class @handles\(Add\)"
        ):
            await root.child("it").call(Add())


async def test_a_message_to_a_supervisor_is_answered_with_what_to_call_instead() -> None:
    async with Supervisor([ChildSpec("it", start=DynamicSupervisor)]) as root:
        with pytest.raises(UnknownMessage, match=r"'it' is a supervisor, .* the object that its start= returned"):
            await root.child("it").call(Add())
