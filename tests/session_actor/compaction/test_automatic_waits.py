"""How long a request waits for a summary, and whose rounds are whose."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

import pytest

from session_actor import CallTimeout, telemetry

from .summarising import Scripted, good_summary, hang, opened, settled, to_red, to_yellow


async def test_a_callers_timeout_covers_the_wait_for_a_summary_which_goes_on():
    begun, release = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        begun.set()
        await release.wait()
        return good_summary()

    async with opened(Scripted(slow)) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        before, begun_s = session.durable_seq["async"], perf_counter()
        with pytest.raises(CallTimeout, match="goes on"):
            await session.build_request("anthropic", timeout_s=0.3)
        assert perf_counter() - begun_s < 20
        await asyncio.wait_for(begun.wait(), 20)
        assert session.durable_seq["async"] == before
        release.set()
        await settled(session)
        request = await session.build_request("anthropic", timeout_s=20)
        assert request.generation == 1


@pytest.mark.parametrize("given", [{}, {"timeout_s": None}], ids=["not given", "no limit"])
async def test_a_caller_who_says_nothing_waits_as_long_as_the_service_does(given):
    async with opened(Scripted(hang), compaction_timeout_s=0.2) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        assert (await session.build_request("anthropic", **given)).generation == 1


async def test_a_timeout_that_is_long_enough_gets_the_summary_without_a_model():
    async with opened(Scripted(hang), compaction_timeout_s=0.2) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        assert (await session.build_request("anthropic", timeout_s=30)).generation == 1


async def test_a_branch_is_the_same_whether_it_is_named_or_not():
    """Two rounds are the last of an exchange, however the branch is asked for."""
    summarizer = Scripted("I cannot.")
    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        await to_yellow(session)
        await settled(session)
        for handle in (session.on("main"), session, session.on("main"), session):
            await handle.build_request("anthropic")
            await settled(session)
        assert len(summarizer.prompts) == 4, "two rounds, with two tries each"


async def test_a_request_of_a_named_branch_shares_the_round_of_the_head():
    summarizer = Scripted(good_summary())
    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        handles = (session, session.on("main"))
        made = await asyncio.gather(*(handle.build_request("anthropic") for handle in handles))
        assert {request.generation for request in made} == {1}
        assert len(summarizer.prompts) == 1


@pytest.mark.parametrize("answer", ["I cannot.", RuntimeError("down"), hang], ids=["refused", "raises", "hangs"])
async def test_what_fails_in_a_round_is_told_with_its_branch(answer):
    told: list[Any] = []
    detach = telemetry.attach(("session_actor", "compaction", "rejected"), lambda *event: told.append(event))
    async with opened(Scripted(answer), compaction_timeout_s=0.5) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        await session.on("main").build_request("anthropic")
    detach()
    assert told
    for _, _, metadata in told:
        assert (metadata["session"], metadata["branch"], metadata["automatic"]) == ("user-42", "main", True)


async def test_what_a_task_of_a_summariser_asks_when_the_round_is_over_waits_for_a_summary_like_any_other():
    asked: asyncio.Queue[Any] = asyncio.Queue()
    workers = []

    async def work() -> Any:
        return await (await asked.get()).build_request("anthropic")

    async def summarizer(_prompt: str, **_: object) -> str:
        if not workers:  # as a client does that is made when it is first needed
            workers.append(asyncio.create_task(work()))
        return good_summary()

    async with opened(summarizer) as service:
        for name in ("user-42", "user-43"):
            session = await service.session(name, create=True)
            await to_red(session)
            if not workers:
                assert (await session.build_request("anthropic")).generation == 1
        asked.put_nowait(session)
        assert (await workers[0]).generation == 1
