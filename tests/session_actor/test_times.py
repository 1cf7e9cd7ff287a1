"""A system clock that shows a time no record can have: changes are refused, and nothing is lost or half done."""

from __future__ import annotations

import pytest

from session_actor import MemoryStore, SessionService
from session_actor.errors import Refused
from session_actor.state import times


@pytest.mark.parametrize("at_us", [times.FIRST_US - 1, times.LAST_US + 1])
async def test_a_change_at_a_time_that_cannot_be_stored_is_refused_before_it_is_made(tmp_path, monkeypatch, at_us):
    async with SessionService.open(tmp_path / "conversations") as service:
        session = await service.session("user-42", create=True)
        await session.push("before", "ok", durability="synced")
        with monkeypatch.context() as patch:
            patch.setattr(times, "time_ns", lambda: at_us * 1_000)
            with pytest.raises(Refused, match="clock"):
                await session.push("meanwhile", "ok")
            with pytest.raises(Refused, match="clock"):
                await service.session("another", create=True)
            assert len(await session.stack()) == 1
        await session.push("after", "ok", durability="synced")
        await service.session("another", create=True)
    async with SessionService.open(tmp_path / "conversations") as service:
        stack = await (await service.session("user-42")).stack()
        assert [frame.user_input for frame in stack] == ["before", "after"]


@pytest.mark.parametrize("at_us", [times.FIRST_US, times.LAST_US])
async def test_the_first_and_the_last_time_that_can_be_stored_are_kept(monkeypatch, at_us):
    monkeypatch.setattr(times, "time_ns", lambda: at_us * 1_000)
    async with SessionService.open(MemoryStore()) as service:
        session = await service.session("user-42", create=True)
        assert (await session.push("now", "ok")).at_us == at_us
