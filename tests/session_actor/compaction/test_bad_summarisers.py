"""Summarisers that raise what is no exception, or give what is hardly a text."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

import session_actor.compaction.planning  # noqa: F401 - the first round is not to be late for that
from session_actor import telemetry

from .summarising import Scripted, good_summary, hang, opened, settled, to_red, to_yellow


async def cancelled_within() -> str:
    """What it waits for was cancelled, and not the summariser."""
    task = asyncio.create_task(hang())
    await asyncio.sleep(0)
    task.cancel()
    return await task


@pytest.mark.parametrize("answer", [cancelled_within, BaseException("down"), GeneratorExit(), None])
async def test_whatever_a_summariser_raises_or_gives_is_told_and_it_is_asked_once_more(answer):
    told = []
    detach = telemetry.attach(
        ("session_actor", "compaction", "rejected"), lambda *event: told.append(event[2]["codes"])
    )
    async with opened(Scripted(answer, good_summary()), summarizer_window=100_000) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        request = await session.build_request("anthropic")
    detach()
    assert "did not object" in json.dumps(request)
    assert [codes[0] for codes in told] == ["summarizer_failed", "empty"]
    assert "down" not in repr(told)


async def test_a_summary_that_comes_too_late_in_the_background_changes_nothing_either():
    told, prompts = [], []

    async def swallow(prompt: str, **_: object) -> str:
        prompts.append(prompt)
        with contextlib.suppress(asyncio.CancelledError):
            await hang()
        return good_summary()

    detach = telemetry.attach(
        ("session_actor", "compaction", "rejected"), lambda *event: told.append(event[2]["codes"])
    )
    async with opened(swallow, summarizer_window=100_000, compaction_timeout_s=1.0) as service:
        session = await service.session("user-42", create=True)
        await to_yellow(session)
        await settled(session)
        assert len(prompts) == 1
        assert (await session.build_request("anthropic")).generation == 0
    detach()
    assert told[0] == ("summarizer_late",)


async def test_a_summary_of_a_class_derived_from_str_is_one():
    class Marked(str):
        __slots__ = ()

    async with opened(Scripted(Marked(good_summary()))) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        assert "did not object" in json.dumps(await session.build_request("anthropic"))
