"""A service with a summariser compacts by itself; whatever that does, no session stops working."""

from __future__ import annotations

import asyncio
import json
from functools import partial, wraps
from time import perf_counter
from typing import Any
from unittest.mock import AsyncMock

import pytest

from session_actor import (
    ContextOverflow,
    MemoryStore,
    ModelProfile,
    SessionService,
    ToolCall,
    telemetry,
    validate_request,
)
from session_actor.compaction.options import Summaries, checked_words
from session_actor.errors import InvalidArgument

from .compacted import DIALECTS, MODELS, RULE, converse, go_on
from .summarising import Scripted, good_summary, hang, opened, settled, swallow, to_red, to_yellow


async def test_from_yellow_it_compacts_in_the_background():
    summarizer = Scripted(good_summary())
    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        request = await to_yellow(session)
        assert request.generation == 0
        await settled(session)
        after = await session.build_request("anthropic")
        assert after.generation == 1
        assert after.input_tokens < request.input_tokens
        assert "did not object" in json.dumps(after)
        assert RULE in json.dumps(after)
        assert len(summarizer.prompts) == 1
        assert RULE in summarizer.prompts[0]


async def test_at_red_a_request_waits_for_the_summary():
    summarizer = Scripted(good_summary())
    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        for dialect in DIALECTS:
            request = await session.build_request(dialect)
            assert request.generation == 1
            assert validate_request(dialect, request) == []
        assert len(summarizer.prompts) == 1
        assert "trimmed" not in {note.what for note in request.omitted}


async def test_room_is_made_in_the_window_of_the_model_that_is_asked():
    scripted = Scripted(good_summary())
    async with opened(scripted) as service:
        session = await service.session("user-42", create=True)
        await session.add_user(f"Please fix src/app/main.py (OPS-441). {RULE}")
        await session.add_assistant("It is fixed.")
        await go_on(session, 20)
        request = await session.build_request("anthropic", model="small")
        assert request.generation == 1
    assert len(scripted.prompts) >= 1


async def test_a_summary_that_is_refused_is_asked_for_once_more_with_the_reasons():
    summarizer = Scripted("I cannot help with that.", good_summary())
    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        request = await session.build_request("anthropic")
        assert "did not object" in json.dumps(request)
        first, second = summarizer.prompts
        assert second.startswith(first[:100])
        assert len(second) > len(first) - 2_000


@pytest.mark.parametrize(
    "answers",
    [("",), ("nonsense",), (RuntimeError("down"),), (7,), (None,), ("I cannot.", "I still cannot.")],
    ids=["empty", "nonsense", "raises", "no text", "None", "fails twice"],
)
async def test_a_summariser_that_fails_gives_way_to_a_summary_without_a_model(answers):
    summarizer = Scripted(*answers)
    told = []
    detach = telemetry.attach(("session_actor", "compaction"), lambda name, _, metadata: told.append((name, metadata)))
    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        request = await session.build_request("anthropic")
    detach()
    assert request.generation == 1
    assert RULE in json.dumps(request)
    assert "trimmed" not in {note.what for note in request.omitted}
    assert len(summarizer.prompts) == 2
    assert "rejected" in {name[-1] for name, _ in told}
    assert "down" not in repr(told)


@pytest.mark.parametrize("answer", [hang, swallow])
async def test_a_summariser_that_hangs_is_waited_for_no_longer_than_said(answer):
    summarizer = Scripted(answer)
    async with opened(summarizer, compaction_timeout_s=0.2) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        begun_s = perf_counter()
        asking = asyncio.create_task(session.build_request("anthropic"))
        await asyncio.sleep(0.05)
        await session.push("meanwhile")
        request = await asking
        assert perf_counter() - begun_s < 30
        assert request.generation == 1
        assert "did not object" not in json.dumps(request)
        before = session.durable_seq["async"]
        await asyncio.sleep(1.1)
        assert session.durable_seq["async"] == before, "a summary that came late changed something"


async def test_closing_does_not_wait_for_a_summariser():
    begun = asyncio.Event()

    async def summarizer(prompt: str, *, max_tokens: int, session_id: str) -> str:
        begun.set()
        return await hang()

    async with opened(summarizer, compaction_timeout_s=3600) as service:
        session = await service.session("user-42", create=True)
        await to_yellow(session)
        await asyncio.wait_for(begun.wait(), 10)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_session_that_is_deleted_meanwhile_is_gone():
    summarizer = Scripted(hang)
    async with opened(summarizer, compaction_timeout_s=0.3) as service:
        session = await service.session("user-42", create=True)
        await to_yellow(session)
        await service.delete("user-42")
        await asyncio.sleep(0.5)
        again = await service.session("user-42", create=True)
        assert await again.head() is None


async def test_a_floor_over_the_limit_ends_after_two_tries():
    summarizer = Scripted("nonsense")
    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        await session.configure(system="rule " * 14_000, model="small")
        await session.add_user("Hi")
        for _ in range(4):
            with pytest.raises(ContextOverflow, match="system"):
                await session.build_request("anthropic")
        assert summarizer.prompts == []


async def test_two_rounds_without_gain_are_the_last_until_the_user_says_more():
    summarizer = Scripted("nonsense")
    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        await to_yellow(session)
        for _ in range(4):
            await settled(session)
            await session.build_request("anthropic")
        await settled(session)
        assert len(summarizer.prompts) == 2 * 2
        await session.add_assistant("So.")
        await session.add_user("And then?")
        await session.build_request("anthropic")
        await settled(session)
        assert len(summarizer.prompts) == 3 * 2


async def test_a_long_source_is_asked_for_in_parts_that_are_merged():
    summarizer = Scripted(good_summary())
    async with opened(summarizer, summarizer_window=6_000) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        request = await session.build_request("anthropic")
        assert request.generation == 1
        assert "did not object" in json.dumps(request)
        assert len(summarizer.prompts) >= 3
        assert good_summary()[:200] in summarizer.prompts[-1]


async def test_a_part_that_fails_gives_way_to_a_summary_without_a_model():
    summarizer = Scripted(good_summary(), RuntimeError("down"), good_summary())
    async with opened(summarizer, summarizer_window=6_000) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        request = await session.build_request("anthropic")
        assert request.generation == 1
        assert "did not object" not in json.dumps(request)


async def test_many_requests_at_once_share_one_round():
    summarizer = Scripted(good_summary())
    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        found = await asyncio.gather(*(session.build_request("anthropic") for _ in range(10)))
        assert {request.generation for request in found} == {1}
        assert len(summarizer.prompts) == 1


async def test_a_cancelled_request_leaves_the_round_at_work():
    release = asyncio.Event()

    async def summarizer(prompt: str, *, max_tokens: int, session_id: str) -> str:
        await release.wait()
        return good_summary()

    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        asking = asyncio.create_task(session.build_request("anthropic"))
        await asyncio.sleep(0.05)
        asking.cancel()
        release.set()
        await settled(session)
        assert (await session.build_request("anthropic")).generation == 1


async def test_each_branch_is_compacted_for_itself():
    summarizer = Scripted(good_summary())
    async with opened(summarizer) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        idea = await session.branch_off("idea", 3)
        await go_on(idea, 16)
        await idea.add_user("And here?")
        one, two = await asyncio.gather(session.build_request("anthropic"), idea.build_request("anthropic"))
        assert {one.generation, two.generation} == {1, 2}


def nothings(told: list[Any]) -> list[tuple[object, object]]:
    return [(metadata["branch"], metadata["why"]) for name, _, metadata in told if name[-1] == "nothing"]


@pytest.fixture
def told():
    found: list[Any] = []
    detach = telemetry.attach(("session_actor", "compaction"), lambda *event: found.append(event))
    yield found
    detach()


async def test_a_call_that_is_in_the_way_is_told_once(told):
    async with opened(Scripted(good_summary())) as service:
        session = await service.session("user-42", create=True)
        await session.configure(system="Be brief.", model="small")
        await session.add_user("List it.")
        await session.add_assistant("", tool_calls=[ToolCall("c1", "ls")])
        await session.hold_call("c1")
        await go_on(session, 16)
        for _ in range(3):
            await session.build_request("anthropic")
            await settled(session)
        assert nothings(told) == [("main", "open_call")]


async def test_nothing_to_gain_is_told_once_of_an_exchange(told):
    async with opened(Scripted(good_summary())) as service:
        session = await service.session("user-42", create=True)
        await session.configure(system="rule " * 11_500, model="small")
        for number in (1, 2):
            await session.add_user("Hi")
            for _ in range(3):
                await session.build_request("anthropic")
                await settled(session)
            assert nothings(told) == [("main", "no_gain")] * number


async def test_a_request_that_waited_for_a_round_of_another_model_has_its_own():
    begun, release, prompts = asyncio.Event(), asyncio.Event(), []

    async def summarizer(prompt: str, *, max_tokens: int, session_id: str) -> str:
        prompts.append(prompt)
        if len(prompts) == 1:
            begun.set()
            await release.wait()
        return good_summary()

    large = ModelProfile(name="large", window=60_000, max_output=2_000, family="o200k")
    async with SessionService.open(MemoryStore(), models={**MODELS, "large": large}, summarizer=summarizer) as service:
        session = await service.session("user-42", create=True)
        await converse(session, 70)
        await session.add_user("And now?")
        one = asyncio.create_task(session.build_request("anthropic", model="large"))
        await asyncio.wait_for(begun.wait(), 10)
        two = asyncio.create_task(session.build_request("anthropic", model="small"))
        await asyncio.sleep(0.05)
        release.set()
        assert (await one).generation == 1
        request = await two
        assert request.generation == 2
        assert len(prompts) == 2
        assert "trimmed" not in {note.what for note in request.omitted}


async def test_a_summariser_may_use_sessions_itself():
    found = []

    async def summarizer(prompt: str, *, max_tokens: int, session_id: str) -> str:
        found.append(await (await service.session(session_id)).build_request("anthropic"))
        return good_summary()

    async with opened(summarizer, compaction_timeout_s=30) as service:
        session = await service.session("user-42", create=True)
        await to_red(session)
        begun_s = perf_counter()
        assert (await session.build_request("anthropic")).generation == 1
        assert perf_counter() - begun_s < 25
        assert [request.generation for request in found] == [0]


@pytest.mark.parametrize(
    "options",
    [
        {"summarizer": "x"},
        {"compaction_timeout_s": 0},
        {"compaction_timeout_s": None},
        {"summarizer_window": 0},
        {"summarizer_window": 1.5},
        {"rule_words": "nur"},
        {"rule_words": [""]},
        {"rule_words": [7]},
    ],
    ids=str,
)
def test_options_that_can_never_be_right_are_refused(options):
    with pytest.raises(InvalidArgument):
        SessionService.open(MemoryStore(), **options)


def sync(prompt: str, *, max_tokens: int, session_id: str) -> str:
    return good_summary()


async def answer(prompt: str, *, max_tokens: int, session_id: str) -> str:
    return good_summary()


class SyncCall:
    def __call__(self, prompt: str, *, max_tokens: int, session_id: str) -> str:
        return good_summary()


@pytest.mark.parametrize("summarizer", [sync, partial(sync), partial(partial(sync), "x"), SyncCall(), lambda *_: ""])
def test_a_summariser_that_is_not_async_is_refused_at_once(summarizer):
    with pytest.raises(InvalidArgument, match="async def"):
        opened(summarizer)


@pytest.mark.parametrize(
    "summarizer",
    [
        answer,
        partial(answer),
        partial(partial(answer)),
        Scripted(""),
        partial(Scripted("")),
        Scripted("").__call__,
        wraps(answer)(lambda *_, **__: answer("", max_tokens=1, session_id="")),
        AsyncMock(),
    ],
)
def test_a_summariser_that_is_async_is_taken_however_it_is_wrapped(summarizer):
    assert opened(summarizer)._options.summaries.summarizer is summarizer


async def test_rules_in_other_languages_are_kept_by_the_words_that_are_given():
    async with SessionService.open(MemoryStore(), models=MODELS, rule_words=["niemals"]) as service:
        session = await service.session("user-42", create=True)
        await session.configure(model="small")
        await session.add_user("Bitte niemals nach main schieben.")
        await go_on(session, 12)
        plan = await session.prepare_compaction()
        assert [fact.text for fact in plan.facts.constraints] == ["Bitte niemals nach main schieben."]
    assert checked_words(("a",)) == ("a",)
    assert Summaries().summarizer is None
