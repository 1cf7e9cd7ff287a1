"""Events: who is told what, and what a handler's own faults lead to."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import partial

import pytest
import structlog

from session_actor import InvalidArgument, telemetry

NAME = ("session_actor", "store", "degraded")


@pytest.fixture
def told():
    """What a handler of all events was told, which is detached afterwards."""
    told = []
    detach = telemetry.attach((), lambda *event: told.append(event))
    yield told
    detach()


def raising(*_):
    raise KeyError("mine")


def test_a_handler_is_told_the_events_whose_name_begins_with_its_prefix():
    told = []
    detach = telemetry.attach(("session_actor", "store"), lambda *event: told.append(event))
    telemetry.emit(NAME, {"degraded_s": 1.0}, {"store": "here"})
    telemetry.emit(("session_actor", "session", "degraded"), {}, {})
    telemetry.emit(("session_actor",), {}, {})
    detach()
    telemetry.emit(NAME, {}, {})
    assert told == [(NAME, {"degraded_s": 1.0}, {"store": "here"})]


def test_nobody_is_attached_after_detaching_and_detaching_again_has_no_effect():
    first = telemetry.attach((), raising)
    second = telemetry.attach((), raising)
    first()
    first()
    assert len(telemetry.attached) == 1
    second()
    assert telemetry.attached == ()


def test_one_handler_attached_twice_is_detached_once_at_a_time():
    told = []
    detach = [telemetry.attach(NAME, lambda *_: told.append(1)) for _ in range(2)]
    detach[0]()
    telemetry.emit(NAME, {}, {})
    detach[1]()
    assert told == [1]


def test_a_handler_that_raises_is_detached_and_reported_and_the_others_are_told(told):
    telemetry.attach(NAME, raising)
    with structlog.testing.capture_logs() as logs:
        telemetry.emit(NAME, {}, {})
        telemetry.emit(NAME, {}, {})
    assert [name for name, *_ in told] == [NAME, telemetry.DETACHED, NAME]
    assert told[1][2] == {"prefix": NAME, "handler": "raising", "error": "KeyError"}
    assert [log["event"] for log in logs] == ["telemetry_handler_detached"]


def test_a_handler_that_raises_at_everything_ends_too():
    telemetry.attach((), raising)
    telemetry.attach((), raising)
    telemetry.emit(NAME, {}, {})
    assert telemetry.attached == ()


@pytest.mark.parametrize("prefix", ["session_actor", ("store", 1), [b"store"], 5, None])
def test_a_prefix_that_is_no_sequence_of_words_is_refused(prefix):
    with pytest.raises(InvalidArgument):
        telemetry.attach(prefix, raising)
    assert telemetry.attached == ()


async def awaited(*_):
    """Nobody awaits it."""


class AwaitedObject:
    async def __call__(self, *_):
        """Nor this."""


@pytest.mark.parametrize("handler", [None, awaited, partial(awaited, 1), AwaitedObject()])
def test_a_handler_that_cannot_be_called_or_wants_to_be_awaited_is_refused(handler):
    with pytest.raises(InvalidArgument):
        telemetry.attach((), handler)
    assert telemetry.attached == ()


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit])
async def test_what_a_handler_raises_is_no_crash_of_the_session_and_cancels_nobody(session, error):
    def raising_it(*_):
        raise error

    telemetry.attach((), raising_it)
    frame = await session.add_user("hello")
    assert telemetry.attached == ()
    assert (await session.get(frame.id)).id == frame.id


def test_what_a_handler_sets_in_its_context_is_not_seen_where_the_event_happened():
    who = ContextVar("who", default="nobody")
    detach = telemetry.attach(NAME, lambda *_: who.set("the handler"))
    telemetry.emit(NAME, {}, {})
    detach()
    assert who.get() == "nobody"


def test_an_event_that_a_handler_does_not_want_is_told_to_the_others_alone(told):
    few = []
    detach = telemetry.attach(NAME[:2], lambda name, *_: few.append(name), but=[NAME])
    for name in (NAME, NAME[:2], (*NAME, "again")):
        telemetry.emit(name, {}, {})
    detach()
    assert few == [NAME[:2], (*NAME, "again")]
    assert [name for name, *_ in told] == [NAME, NAME[:2], (*NAME, "again")]


@pytest.mark.parametrize("but", ["store", ["store"], [("store", 1)], [None], 5])
def test_names_that_are_no_names_are_refused(but):
    with pytest.raises(InvalidArgument):
        telemetry.attach(NAME, print, but=but)


def test_names_without_end_are_not_remembered_without_end(told):
    for number in range(3_000):
        telemetry.emit((*NAME, str(number)), {}, {})
    assert len(told) == 3_000
    assert len(telemetry._hearers) <= 1_000


def test_a_span_inside_of_another_has_its_number_as_parent(told):
    with telemetry.span(("outer",)):
        with telemetry.span(("inner",)), telemetry.span(("innermost",)):
            pass
        with pytest.raises(KeyError), telemetry.span(("failing",)):
            raise KeyError
    with telemetry.span(("after",)):
        pass
    numbers = {name[0]: metadata["span"] for name, _, metadata in told}
    parents = {name[0]: metadata.get("parent") for name, _, metadata in told if name[-1] == "start"}
    assert parents == {
        "outer": None,
        "inner": numbers["outer"],
        "innermost": numbers["inner"],
        "failing": numbers["outer"],
        "after": None,
    }


async def test_handlers_see_the_context_of_the_start_also_at_an_end_elsewhere():
    seen, whose = [], ContextVar("whose")
    detach = telemetry.attach(("here",), lambda *_: (seen.append(whose.get(None)), whose.set("handler")))
    whose.set("caller")
    span = telemetry.span(("here",)).start()
    await asyncio.create_task(asyncio.to_thread(lambda: None))
    whose.set("another")
    span.stop()
    detach()
    assert seen == ["caller", "caller"]
    assert whose.get() == "another"
