"""A budget of thinking in `extra`: the answer is asked for longer than it, or the request is refused."""

from __future__ import annotations

import pytest

from session_actor import Tool, validate_request
from session_actor.errors import InvalidArgument

MODEL = "claude-sonnet-4-5"  # writes 64,000 tokens at most


def thinks(budget: int) -> dict:
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


async def asked(session, budget: int, **fields):
    request = await session.build_request("anthropic", model=MODEL, extra=thinks(budget), **fields)
    assert validate_request("anthropic", request) == []
    assert request["thinking"]["budget_tokens"] == budget < request["max_tokens"] == request.max_output_tokens
    return request


@pytest.mark.parametrize(
    ("budget", "output"), [(1_024, 21_333), (17_237, 21_333), (17_238, 21_334), (32_000, 36_096), (63_000, 64_000)]
)
async def test_the_answer_is_asked_for_longer_than_the_thinking_within_what_the_model_writes(session, budget, output):
    await session.add_user("hi")
    assert (await asked(session, budget))["max_tokens"] == output


async def test_a_request_with_such_a_budget_is_the_same_again_and_counts_what_it_keeps_free(session):
    await session.add_user("hi")
    first = await asked(session, 40_000, key="k")
    assert await asked(session, 40_000, key="k") == first
    plain = await session.budget()
    assert plain.output_reserve == 44_096


@pytest.mark.parametrize("fields", [{"max_output_tokens": 8_000}, {"max_output_tokens": 10_000}])
async def test_a_length_that_was_asked_for_is_left_alone_and_refused_when_it_is_too_short(session, fields):
    await session.add_user("hi")
    before = session.durable_seq["async"]
    with pytest.raises(InvalidArgument, match=r"budget_tokens.* must be less than the longest answer, which is"):
        await asked(session, 10_000, **fields)
    assert session.durable_seq["async"] == before
    assert (await asked(session, 10_000, max_output_tokens=10_001))["max_tokens"] == 10_001


@pytest.mark.parametrize("extra", [thinks(64_000), {"extra_body": thinks(64_000)}])
async def test_a_budget_beyond_what_the_model_writes_is_refused_and_nothing_changes(session, extra):
    await session.add_user("hi")
    before = session.durable_seq["async"]
    with pytest.raises(InvalidArgument, match="writes 64000 at most"):
        await session.build_request("anthropic", model=MODEL, extra=extra)
    assert session.durable_seq["async"] == before


async def test_thinking_between_calls_may_go_over_it(session):
    await session.configure(tools=[Tool("ls", "List.", {})])
    await session.add_user("hi")
    extra = thinks(100_000) | {"extra_headers": {"anthropic-beta": "interleaved-thinking-2025-05-14"}}
    request = await session.build_request("anthropic", model=MODEL, extra=extra)
    assert validate_request("anthropic", request) == []
    assert request["max_tokens"] == 21_333
