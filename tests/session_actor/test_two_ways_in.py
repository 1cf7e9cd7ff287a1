"""A change by a handle's method, which borrows the session's server, is the same as its command sent by message."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_actor import MemoryStore, SessionService
from session_actor.blocks import Text, ToolCall
from session_actor.commands import AddAssistant, AddUser, Checkpoint, Command, Fork, Goto, Pop, Push
from session_actor.errors import SessionActorError
from session_actor.frames import Turn, Usage
from session_actor.persistence import encode_record_data
from session_actor.service_errors import SessionCrashed
from session_actor.state import times
from session_actor.supervisors import BUSY, resume, statistics, suspend

from ..unhurried import unhurried
from .live import picture

TEXTS = st.sampled_from(["", "a", "question", "é" * 40, 7, None])
NOTES = st.sampled_from([(), ("one",), ["two", "three"], ("ok", 3), "text", None])
TURNS = st.sampled_from([None, (), (Turn("user", (Text("hi"),)),), [Turn("assistant", (Text("yes"),))], "no"])
TARGETS = st.sampled_from([1, 2, 3, 5, 99, 0, -1, "main", "side", "c1", "b3", "nobody", "", True, 2.0, None])
NAMES = st.sampled_from(["side", "c1", "c2", "main", "", "x" * 600, 3])
FLAGS = st.sampled_from([False, True, 1])
PUSHED = {"user_input": TEXTS, "assistant_output": TEXTS, "assumptions": NOTES, "decisions": NOTES}
BRANCHES = st.sampled_from([None, None, None, "main", "side", "nobody"])
CALLS = st.sampled_from([(), (ToolCall("call", "tool"),), "no"])
LEVELS = st.sampled_from([None, None, "async", "written", "synced", "", "soon", 7])
USAGES = st.sampled_from([None, Usage(3, 4), "no"])


def operation(name: str, kind: type[Command], required: dict, optional: dict | None = None):
    fields = st.fixed_dictionaries(required, optional=(optional or {}) | {"durability": LEVELS})
    return st.tuples(st.just(name), st.just(kind), fields, BRANCHES)


OPERATIONS = st.one_of(
    operation("push", Push, {"user_input": TEXTS}),
    operation("push", Push, {}, PUSHED | {"turns": TURNS, "pinned": FLAGS}),
    operation("add_user", AddUser, {"content": st.sampled_from(["hi", "", ["a", Text("b")], 3])}),
    operation(
        "add_assistant", AddAssistant, {"content": TEXTS}, {"tool_calls": CALLS, "usage": USAGES, "model": TEXTS}
    ),
    operation(
        "pop", Pop, {}, {"n": st.sampled_from([1, 2, 40, 0, "1"]), "unit": st.sampled_from(["frame", "step", 3])}
    ),
    operation("goto", Goto, {"target": TARGETS}),
    operation("fork", Fork, {}, PUSHED | {"frame": TARGETS, "branch": NAMES, "turns": TURNS, "pinned": FLAGS}),
    operation("checkpoint", Checkpoint, {"name": NAMES}, {"frame": TARGETS}),
)


class Noting(MemoryStore):
    """A store that notes what is appended."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple] = []

    def append(self, lease, seq, at_us, kind, data, weight):
        self.noted.append((seq, at_us, kind, encode_record_data(data), weight))
        return super().append(lease, seq, at_us, kind, data, weight)


async def outcome(change) -> object:
    try:
        return await change
    except SessionActorError as error:
        return type(error), str(error)


async def lived(operations, *, by_message: bool, ended: bool) -> dict[str, object]:
    """What is seen of a session that lived through all that."""
    store = Noting()
    seen: dict[str, object] = {}
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        replies = []
        for name, kind, fields, on in operations:
            handle = session if on is None else session.on(on)
            command = kind(**fields, on=on)
            replies.append(await outcome(handle.send(command) if by_message else getattr(handle, name)(**fields)))
        if ended:
            await service.end("user-42")
            replies.append(await outcome(session.send(Push("late")) if by_message else session.push("late")))
        seen |= {"replies": replies, "records": list(store.noted), "handled": statistics(session.ref).handled}
        seen |= {"state": picture(session._cell.state), "stack": await session.stack()}
        async with session.changes(after_seq=0) as feed:
            seen["changes"] = [await anext(feed) for _ in range(session.durable_seq["async"])]
    return seen


@settings(max_examples=120, deadline=None)
@given(st.lists(OPERATIONS, max_size=14), st.booleans())
def test_a_session_lives_the_same_by_methods_and_by_messages(operations, ended):
    found = []
    for by_message in (False, True):
        numbers = count(1_700_000_000_000_000, 1_000)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(times, "time_ns", lambda numbers=numbers: next(numbers) * 1_000)
            found.append(asyncio.run(lived(operations, by_message=by_message, ended=ended)))
    by_methods, by_messages = found
    for what in by_messages:
        assert by_methods[what] == by_messages[what], what


def called(ref) -> list[object]:
    """What is asked of a session's server, from now on: the borrowing, and whether it took place."""
    asked = []
    borrow = type(ref).borrow

    class Noted(type(ref)):
        __slots__ = ()

        def borrow(self, content):
            reply = borrow(self, content)
            asked.append(reply is not BUSY)
            return reply

    ref.__class__ = Noted
    return asked


@pytest.mark.parametrize(("handle", "depth"), [("session", 6), ("branch", 7)])
async def test_a_plain_change_borrows_the_server_and_any_other_is_sent(session, handle, depth):
    await session.push("1", "")
    asked = called(session._cell.ref)
    used = session if handle == "session" else session.on("main")
    for change in (
        lambda: used.push("2", ""),
        lambda: used.add_user("3"),
        lambda: used.add_assistant("4"),
        lambda: used.checkpoint("here"),
        lambda: used.pop(1),
        lambda: used.fork(1, branch="side", user_input="5"),
        lambda: used.push("6", "", durability="async"),
    ):
        unhurried(session.ref)
        await change()
    assert asked == [True] * 7
    await used.push("7", "", key="k")
    await used.push("8", "", expect_head=await used.head())
    await used.push("9", "", timeout_s=4.0)
    assert asked == [True] * 7
    assert len(await used.stack()) == depth


async def test_what_cannot_be_borrowed_now_gets_a_message_that_is_run_in_its_turn(session):
    await session.push("1", "")
    asked = called(session._cell.ref)
    await suspend(session.ref)
    waiting = asyncio.ensure_future(session.push("2", ""))
    await asyncio.sleep(0)
    assert asked == [False]
    assert not waiting.done()
    await resume(session.ref)
    assert (await waiting).id == 2


async def test_a_plain_change_is_made_before_anything_can_suspend_or_cancel(session):
    await session.push("1", "")
    unhurried(session.ref)
    with pytest.raises(StopIteration) as done:
        session.push("2", "").send(None)
    assert done.value.value.id == 2


async def test_a_reply_that_must_wait_for_its_level_is_given_up_and_the_change_is_not(tmp_path):
    async with SessionService.open(tmp_path / "store", durability="synced") as service:
        session = await service.session("user-42", create=True)
        asked = called(session._cell.ref)
        unhurried(session.ref)
        pushing = asyncio.ensure_future(session.push("1", ""))
        await asyncio.sleep(0)
        pushing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pushing
        assert (await session.push("2", "")).id == 2
        assert True in asked
        assert session.durable_seq["synced"] == 3


async def test_a_crash_in_a_plain_change_is_told_and_the_session_comes_back(service, session, monkeypatch):
    other = await service.session("other", create=True)
    await session.push("1", "")
    with monkeypatch.context() as patch:

        def broken(*_arguments):
            raise RuntimeError("the user's secret")

        patch.setattr(type(service._store), "append", broken)
        with pytest.raises(SessionCrashed) as caught:
            await session.push("2", "")
    assert "secret" not in str(caught.value)
    assert [frame.user_input for frame in await session.stack()] == ["1"]
    assert (await session.push("3", "")).id == 2
    assert statistics(session.ref).restarts == 1
    assert (await other.push("1", "")).id == 1
    assert statistics(other.ref).restarts == 0
