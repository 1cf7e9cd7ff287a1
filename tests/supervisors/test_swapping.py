"""A server's code is replaced while its callers wait: by a module that was reloaded, a class with another state."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from session_actor.supervisors import (
    Call,
    CallTimeout,
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    ManualClock,
    NotPlain,
    Supervisor,
    SwapOver,
    SystemCallFailed,
    handles,
    monitor,
    plain,
    swap,
)

FIRST = """
from session_actor.supervisors import GenServer, handles

class Counter(GenServer):
    version = 1

    def __init__(self):
        super().__init__()
        self.total = 0
        self.names = ["a"]

    @handles(Add)
    def add(self, message):
        self.total += message.amount
        return "first", self.total
"""

THIRD = """
from session_actor.supervisors import GenServer, handles

def renamed(state):
    return {"count": state["total"], "names": state["names"]}

def counted(state):
    state["names"].append("b")
    return {**state, "changes": 1}

STEPS = {1: renamed, 2: counted}

class Counter(GenServer):
    version = 3

    @handles(Add)
    def add(self, message):
        self.count += message.amount
        return "third", self.count, self.changes, self.names

    async def code_change(self, old_version, state):
        for number in range(old_version, self.version):
            state = STEPS[number](state)
        return state
"""


@dataclass
class Add(Call[object]):
    amount: int


class Module:
    """A module of an embedder's, on disk: written anew and reloaded, as a developer's tools do it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text(FIRST)
        spec = importlib.util.spec_from_file_location("counting", path)
        self.module = importlib.util.module_from_spec(spec)
        self.module.Add = Add
        sys.modules["counting"] = self.module
        spec.loader.exec_module(self.module)

    def reload(self, text: str) -> None:
        self.path.write_text(text)
        importlib.invalidate_caches()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys, "path", [str(self.path.parent), *sys.path])
            self.module = importlib.reload(self.module)


@pytest.fixture
def counting(tmp_path: Path):
    yield Module(tmp_path / "counting.py")
    del sys.modules["counting"]


@pytest.fixture
async def counter(counting: Module, clock: ManualClock):
    async with Supervisor([ChildSpec("counter", start=counting.module.Counter)], clock=clock) as root:
        yield root.child("counter")


async def waiting(ref, *amounts: int) -> list[asyncio.Task]:
    """Callers whose messages are in the mailbox."""
    tasks = [asyncio.create_task(ref.call(Add(amount))) for amount in amounts]
    await asyncio.sleep(0)
    return tasks


async def test_a_reloaded_class_with_a_renamed_field_goes_on_where_the_old_one_was(counting, counter):
    assert await counter.call(Add(2)) == ("first", 2)

    swapped = await swap(counter)
    callers = await waiting(counter, 3, 4)
    assert (swapped.version, swapped.value, counter.phase) == (1, {"total": 2, "names": ["a"]}, "suspended")
    assert json.loads(json.dumps(swapped.value)) == swapped.value
    counting.reload(THIRD)
    assert not any(caller.done() for caller in callers)
    await swapped.take(counting.module.Counter)

    assert await asyncio.gather(*callers) == [("third", 5, 1, ["a", "b"]), ("third", 9, 1, ["a", "b"])]
    assert await counter.call(Add(1)) == ("third", 10, 1, ["a", "b"])
    assert counter.phase == "running"
    assert not swapped.paused


async def test_a_code_change_that_raises_leaves_the_old_server_unharmed_and_every_caller_is_answered(counting, counter):
    await counter.call(Add(2))
    swapped = await swap(counter)
    callers = await waiting(counter, 3, 4)
    counting.reload(THIRD.replace('{**state, "changes": 1}', "1 / 0"))

    with pytest.raises(SystemCallFailed, match="ZeroDivisionError"):
        await swapped.take(counting.module.Counter)

    assert await asyncio.gather(*callers) == [("first", 5), ("first", 9)]
    swapped = await swap(counter)
    assert swapped.value == {"total": 9, "names": ["a"]}, "the step that raised had changed its own copy"
    swapped.resume()
    swapped.resume()


async def test_a_pause_that_is_forgotten_ends_by_itself(counter, clock):
    swapped = await swap(counter, pause_s=60)
    callers = [asyncio.create_task(counter.call(Add(1), None))]
    await asyncio.sleep(0)
    clock.advance(59)
    assert swapped.paused
    clock.advance(2)

    assert await asyncio.gather(*callers) == [("first", 1)]

    with pytest.raises(SwapOver):
        await swapped.take(lambda: None)
    assert await counter.call(Add(1)) == ("first", 2)


async def test_messages_time_out_in_a_pause_as_they_do_elsewhere(counter, clock):
    swapped = await swap(counter)
    callers = await waiting(counter, 1)
    clock.advance(6)
    with pytest.raises(CallTimeout, match="it was not run"):
        await callers[0]
    swapped.resume()

    assert await counter.call(Add(1)) == ("first", 1)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [1, object()]}, r"state\['a'\]\[1\] is a object"),
        ({"a": {1, 2}}, "is a set"),
        ({("a",): 1}, "key of type tuple"),
        (True and type("Odd", (str,), {})("x"), "is a Odd"),
    ],
)
def test_what_other_code_could_not_read_is_refused_with_its_place(value, where):
    with pytest.raises(NotPlain, match=where):
        plain(value)


def test_a_value_that_holds_itself_is_refused():
    ring: list = []
    ring += [ring, ring]
    with pytest.raises(NotPlain, match="holds itself"):
        plain(ring)


def test_a_plain_copy_shares_nothing_that_could_be_changed():
    value = {"a": [1, (2, [3])], 4: None, "b": b"\0", "c": 1.5, "d": True}
    copy = plain(value)

    copy["a"][1][1].append(5)

    assert value == {"a": [1, (2, [3])], 4: None, "b": b"\0", "c": 1.5, "d": True}


class Holder(GenServer):
    def __init__(self):
        super().__init__()
        self.held = object()

    @handles(Add)
    def add(self, message: Add) -> int:
        return message.amount


async def test_a_server_whose_state_is_not_plain_goes_on():
    async with Supervisor([ChildSpec("holder", start=Holder)]) as root:
        with pytest.raises(NotPlain, match="held"):
            await swap(root.child("holder"))

        assert await root.child("holder").call(Add(1)) == 1


class Waiter(GenServer):
    def __init__(self):
        super().__init__()
        self.seen = 0

    @handles(Add)
    def add(self, message: Add) -> int:
        self.seen += message.amount
        return self.seen


async def test_a_child_changes_its_supervisor_with_its_mailbox_and_restarts_there():
    async with DynamicSupervisor(name="old") as old, DynamicSupervisor(name="new") as new:
        ref = await old.start_child(ChildSpec(1, start=Waiter))
        callers = await waiting(ref, 1, 2)

        new.adopt(ref, ChildSpec(2, start=Waiter))

        assert await asyncio.gather(*callers) == [1, 3]
        assert ([child.id for child in old.which_children()], [child.id for child in new.which_children()]) == ([], [2])
        ended = monitor(ref)
        ref.kill()
        assert (await ended).restarting
        await ref.started()
        ended.cancel()
        assert await ref.call(Add(1)) == 1
    assert ref.phase == "ended"
