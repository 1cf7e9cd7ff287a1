"""Replies in a session: one frame each, the same after a restart, safe to send again."""

from __future__ import annotations

import asyncio
import copy

import pytest

from session_actor import AddResponse, Native, Request, SessionService, Text, ToolCall, turn_of, validate_request
from session_actor.errors import HeadMoved, InvalidArgument, KeyConflict, Refused
from session_actor.persistence import encode_record_data

from ..conftest import reopened
from .openai_replies import CHAT, RESPONSE
from .test_replies_anthropic import REPLY as ANTHROPIC
from .test_replies_anthropic import as_sdk as as_message
from .test_replies_gemini import CHUNKS, as_sdk
from .test_replies_gemini import REPLY as GEMINI

REPLIES = {"anthropic": ANTHROPIC, "openai_chat": CHAT, "openai_responses": RESPONSE, "gemini": GEMINI}

each_dialect = pytest.mark.parametrize("dialect", REPLIES)


@each_dialect
async def test_a_reply_is_one_frame_that_comes_back_byte_for_byte(folder, dialect):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        await session.add_user("hi")
        frame = await session.add_response(REPLIES[dialect], assumptions=["a"], decisions=("d",))

        assert frame.turns == (turn_of(REPLIES[dialect]),)
        assert (frame.assumptions, frame.decisions) == (("a",), ("d",))
        calls = await session.pending_calls()
        assert [(call.id, call.arguments) for call in calls] == [
            (block.id, block.arguments) for block in frame.turns[0].blocks if type(block) is ToolCall
        ]
    async with reopened(folder) as session:
        again = await session.get(frame.id)
        assert again == frame
        assert encode_record_data(again) == encode_record_data(frame)
        assert await session.pending_calls() == calls


@each_dialect
async def test_after_a_reply_the_next_request_is_one_that_the_provider_takes(session, dialect):
    await session.configure(system="be kind", model="gpt-5.1")
    await session.add_user("hi")
    await session.add_response(REPLIES[dialect])
    for call in await session.pending_calls():
        await session.add_tool_result(call.ref, "done")
    for target in REPLIES:
        request = await session.build_request(target)
        assert validate_request(target, request) == []


async def test_a_reply_to_a_request_is_bound_to_it(session):
    await session.configure(model="claude-sonnet-4-5")
    await session.add_user("hi")
    request = await session.build_request("anthropic")
    before = (await session.budget()).used
    await session.add_response(ANTHROPIC, request=request)

    assert (await session.budget()).used != before


@pytest.mark.parametrize("request_of", [lambda request: request, lambda request: request.seq], ids=["itself", "number"])
async def test_a_request_is_named_by_itself_or_by_its_number(session, request_of):
    await session.configure(model="gpt-5.1")
    await session.add_user("hi")
    request = await session.build_request("openai_chat")
    frame = await session.add_response(CHAT, request=request_of(request))

    assert (await session.stack()).top == frame


async def test_a_reply_of_another_dialect_than_its_request_is_refused(session):
    await session.configure(model="gpt-5.1")
    await session.add_user("hi")
    request = await session.build_request("openai_chat")
    with pytest.raises(InvalidArgument, match="not of the dialect openai_chat"):
        await session.add_response(ANTHROPIC, request=request)

    assert len(await session.stack()) == 2


@pytest.mark.parametrize("request_", [0, -1, 99, 2**70, "1", True, 1.0, Request(), {}], ids=repr)
async def test_a_request_that_is_none_of_the_session_is_refused(session, request_):
    await session.add_user("hi")
    with pytest.raises(InvalidArgument, match=r"^request "):
        await session.add_response(CHAT, request=request_)

    assert len(await session.stack()) == 1


@pytest.mark.parametrize("make", [copy.deepcopy, as_message], ids=["equal dict", "object of the SDK"])
async def test_a_reply_with_a_key_is_added_once(session, make):
    first = await session.add_response(make(ANTHROPIC), key="reply-1")
    again = await session.add_response(make(ANTHROPIC), key="reply-1")

    assert again == first
    assert len(await session.stack()) == 1
    with pytest.raises(KeyConflict):
        await session.add_response({**ANTHROPIC, "stop_reason": "end_turn"}, key="reply-1")
    with pytest.raises(KeyConflict):
        await session.add_response(ANTHROPIC, key="reply-1", decisions=["other"])


async def test_a_refused_reply_changes_nothing(session):
    await session.add_user("hi")
    for reply in (None, {}, {**CHAT, "choices": []}, {**ANTHROPIC, "content": [{"type": "x", "y": {1}}]}):
        with pytest.raises(Refused, match="reply"):
            await session.add_response(reply)
    with pytest.raises(HeadMoved):
        await session.add_response(CHAT, expect_head=7)

    assert len(await session.stack()) == 1
    assert (await session.usage()).session.input_tokens == 0


async def test_a_reply_is_in_the_mailbox_before_anybody_can_cancel(session):
    task = asyncio.ensure_future(session.add_response(CHAT))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert (await session.stack()).top.turns == (turn_of(CHAT),)


async def test_what_the_caller_does_to_a_reply_afterwards_changes_nothing(session):
    reply = copy.deepcopy(ANTHROPIC)
    frame = await session.add_response(reply)
    reply["content"][1]["data"] = "changed"
    reply["usage"]["input_tokens"] = 0

    assert frame.turns == (turn_of(ANTHROPIC),)


async def test_the_message_is_public(session):
    frame = await session.ref.call(AddResponse(turn_of(CHAT), decisions=["d"]))

    assert frame.turns == (turn_of(CHAT),)
    with pytest.raises(InvalidArgument, match=r"^reply must be an assistant turn"):
        await session.ref.call(AddResponse((await session.add_user([Text("x")])).turns[0]))


async def test_a_reply_on_a_branch_moves_that_branch_only(session):
    base = await session.add_user("hi")
    idea = await session.branch_off("idea")
    frame = await idea.add_response(CHAT)

    assert (await session.head(), await idea.head()) == (base.id, frame.id)


async def test_calls_without_an_id_are_answered_by_their_ref(session):
    await session.add_response([as_sdk(chunk) for chunk in CHUNKS])
    first, second = await session.pending_calls()

    assert (first.id, second.id) == ("", "")
    await session.add_tool_result(second.ref, "two")
    await session.add_tool_result(first.ref, "one")
    assert await session.pending_calls() == []


async def test_bytes_of_a_native_block_come_back_as_bytes(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        frame = await session.add_response(as_sdk(GEMINI))
    async with reopened(folder) as session:
        natives = [block for block in (await session.get(frame.id)).turns[0].blocks if type(block) is Native]
        assert natives[1].value["inline_data"]["data"] == b"\x89PNG"
