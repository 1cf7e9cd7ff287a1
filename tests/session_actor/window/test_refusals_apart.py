"""A refusal concerns the model that refused; and a trim after a count far above the estimate keeps what fits."""

from __future__ import annotations

import pytest

from session_actor import MemoryStore, SessionService

REFUSED = "This model's maximum context length is {limit} tokens. However, your messages resulted in {real} tokens."


def reply(real):
    message = {"role": "assistant", "content": "four five six. " * 600}
    usage = {"prompt_tokens": real, "completion_tokens": 2_400, "total_tokens": real + 2_400}
    return {
        "object": "chat.completion",
        "id": "x",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": usage,
    }


def characters(request):
    return sum(len(message["content"]) for message in request["messages"])


async def filled(session, words, tokens):
    await session.configure(model="gpt-4o")
    while (await session.budget()).used < tokens:
        await session.push("q", words)
    await session.add_user("?")
    return await session.build_request("openai_chat")


@pytest.mark.parametrize("error", [REFUSED.format(limit=2_048, real=3_535), "context_length_exceeded"])
async def test_a_refusal_takes_no_history_from_another_model(session, error):
    await session.configure(model="gpt-5")
    for number in range(5):
        await session.push(f"question {number}", "answer " * 100)
    await session.add_user("word " * 3_000)
    request = await session.build_request("openai_responses")
    assert len(request["input"]) == 11
    assert await session.request_failed(request, error)
    shorter = await session.build_request("openai_responses")
    assert len(shorter["input"]) < 11
    assert [note.what for note in shorter.added] == ["trim_note"]
    for dialect, model in [("anthropic", "claude-sonnet-4-5"), ("openai_responses", "gpt-4o")]:
        other = await session.build_request(dialect, model=model)
        assert len(other["messages" if dialect == "anthropic" else "input"]) == 11
        assert not other.added
    assert len((await session.build_request("openai_responses"))["input"]) == len(shorter["input"])


async def test_a_trim_that_was_made_after_a_refusal_never_reaches_another_model(session):
    request = await filled(session, "one two three, " * 600, 60_000)
    assert await session.request_failed(request, "context_length_exceeded")
    for _ in range(9):
        await session.push("q", "one two three, " * 600)
        await session.add_user("?")
        await session.build_request("openai_chat")
    other = await session.build_request("openai_chat", model="gpt-4.1")
    assert len(other["messages"]) > len(request["messages"])
    assert [note.what for note in other.omitted] == []


async def test_a_refusal_far_above_the_estimate_keeps_what_fits(session):
    request = await filled(session, "one two three, " * 600, 69_000)
    real = int(request.input_tokens * 1.58)
    assert await session.request_failed(request, REFUSED.format(limit=100_000, real=real))
    shorter = await session.build_request("openai_chat")
    budget = await session.budget()
    assert budget.allowance == 100_000 - request.max_output_tokens
    assert 0.5 * budget.allowance < shorter.input_tokens <= 0.61 * budget.allowance
    assert shorter.input_tokens == pytest.approx(real * characters(shorter) / characters(request), rel=0.02)


async def test_of_five_large_exchanges_the_newest_stays(session):
    request = await filled(session, "one two three, " * 4_800, 69_000)
    real = int(request.input_tokens * 1.58)
    assert len(request["messages"]) == 11
    await session.request_failed(request, REFUSED.format(limit=100_000, real=real))
    assert len((await session.build_request("openai_chat"))["messages"]) == 3


async def test_a_first_count_far_above_the_estimate_says_what_a_trim_leaves(session):
    request = await filled(session, "one two three, " * 600, 62_000)
    real = int(request.input_tokens * 1.58)
    await session.add_response(reply(real), request=request)
    await session.add_user("one two three, " * 1_200)
    trimmed = await session.build_request("openai_chat")
    assert [note.what for note in trimmed.added] == ["trim_note"]
    assert trimmed.input_tokens == pytest.approx(real * characters(trimmed) / characters(request), rel=0.03)


@pytest.mark.parametrize(("early", "late"), [(2.2, 0.8), (0.8, 2.2)])
async def test_a_trim_takes_measured_exchanges_at_what_they_cost(session, early, late):
    await session.configure(model="gpt-4o")
    real = 0
    for number in range(60):
        await session.add_user("one two three, " * 600)
        request = await session.build_request("openai_chat")
        if request.added:
            break
        real += int(2_400 * (early if number < 8 else late)) * (2 if number else 1)
        await session.add_response(reply(real), request=request)
    budget = await session.budget()
    assert [note.what for note in request.added] == ["trim_note"]
    assert 0.5 * budget.allowance < request.input_tokens <= 0.61 * budget.allowance


async def test_what_a_snapshot_and_its_records_say_of_refusals_holds_after_a_restart():
    store = MemoryStore()
    async with SessionService.open(store) as service:
        session = await service.session("s", create=True)
        request = await filled(session, "one two three, " * 600, 30_000)
        assert await session.request_failed(request, "context_length_exceeded")
        shorter = await session.build_request("openai_chat")
        budget = await session.budget()
    async with SessionService.open(store) as service:
        again = await service.session("s")
        assert await again.budget() == budget
        shorter_again = await again.build_request("openai_chat")
        assert shorter_again["messages"] == shorter["messages"]
    async with SessionService.open(store) as service:
        again = await service.session("s")
        assert await again.request_failed(shorter_again, "context_length_exceeded")
        assert len((await again.build_request("openai_chat"))["messages"]) < len(shorter["messages"])
