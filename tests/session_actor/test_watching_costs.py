"""What being watched costs a push when nobody watches: one attribute is looked at."""

from __future__ import annotations

import dis
import sys
import tracemalloc

import pytest

from session_actor import MemoryStore, SessionService, observing, telemetry
from session_actor.handle.changes import Changes
from session_actor.server.session import SessionServer


@pytest.fixture
async def session():
    async with SessionService.open(MemoryStore(), idle_timeout_s=None) as service:
        made = await service.session("user-42", create=True)
        await made.push("a", "b")
        yield made


async def called_by_a_push(session) -> set[tuple[str, str]]:
    """Every function of Python that runs during a push, by file and name."""
    called = set()

    def note(frame, event, _argument):
        if event == "call":
            called.add((frame.f_code.co_filename, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        await session.push("question", "answer")
    finally:
        sys.setprofile(None)
    return called


async def test_with_nobody_attached_a_push_calls_nothing_of_what_watches(session):
    called = await called_by_a_push(session)
    assert (SessionServer.lent.__code__.co_filename, "lent") in called
    watching = {telemetry.__file__, observing.__file__, sys.modules["session_actor.handle.feed"].__file__}
    assert {place for place in called if place[0] in watching} == set()


async def test_with_somebody_attached_it_does(session):
    detach = telemetry.attach(("session_actor", "operation"), lambda *_: None)
    called = await called_by_a_push(session)
    detach()
    assert (observing.__file__, "run") in called
    assert (telemetry.__file__, "emit") in called


async def test_with_nobody_attached_a_push_keeps_nothing_of_what_watches(session):
    watching = [
        tracemalloc.Filter(True, module.__file__)
        for module in (telemetry, observing, sys.modules["session_actor.handle.feed"])
    ]
    tracemalloc.start()
    try:
        for _ in range(20):
            await session.push("question", "answer")
        taken = tracemalloc.take_snapshot().filter_traces(watching)
    finally:
        tracemalloc.stop()
    assert sum(statistic.size for statistic in taken.statistics("filename")) == 0


def test_a_change_looks_at_one_attribute_of_telemetry():
    loads = [
        (first.argval, second.argval)
        for code in (Changes.push, SessionServer.lent)
        for first, second in zip(list(dis.get_instructions(code)), list(dis.get_instructions(code))[1:], strict=False)
        if first.opname.startswith("LOAD_GLOBAL") and second.opname.startswith("LOAD_ATTR")
    ]
    assert [attribute for name, attribute in loads if name == "telemetry"] == ["heard"]
