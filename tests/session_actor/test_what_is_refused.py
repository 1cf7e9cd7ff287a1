"""What is easily given wrong is refused with what to give instead."""

from typing import assert_type

import pytest

from session_actor import Frame, InvalidArgument, MemoryStore, Pop, Push, SessionService, Text, ToolCall, Turn
from session_actor.given.content import blocks, call, checked

DICT = {"type": "text", "text": "what the user said"}


@pytest.mark.parametrize("given", [DICT, 5, None, {"what the user said"}, Text("what the user said")])
def test_content_that_is_neither_text_nor_a_list_is_told_what_it_may_be(given: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        checked(blocks, given, "content")
    assert str(caught.value) == (
        f"content must be a str, or a list or a tuple of strs and blocks such as Text, got {type(given).__name__}"
    )


def test_a_dict_among_blocks_is_told_by_its_place() -> None:
    with pytest.raises(InvalidArgument) as caught:
        checked(blocks, ["a", DICT], "content")
    assert str(caught.value) == "content[1] must be a str or a block such as Text, got dict"


async def test_a_pending_call_in_the_place_of_its_ref_is_told_so() -> None:
    async with SessionService.open(MemoryStore()) as service:
        session = await service.session("user-42", create=True)
        await session.push(turns=[Turn("assistant", (ToolCall("a", "read"),))])
        (pending,) = await session.pending_calls()
        with pytest.raises(InvalidArgument, match="as `ref` of a PendingCall is, got PendingCall"):
            checked(call, pending, "call")
        with pytest.raises(InvalidArgument, match=r"what the session sets.*the messages are those of the session"):
            await session.build_request("openai_chat", model="gpt-4o", extra={"messages": []})
        assert len(await session.pending_calls()) == 1


async def test_what_a_message_sent_to_the_reference_is_answered_with_has_its_type() -> None:
    async with SessionService.open(MemoryStore()) as service:
        session = await service.session("user-42", create=True)
        frame = assert_type(await session.ref.call(Push("a", "b")), Frame)
        assert assert_type(await session.ref.call(Pop()), list[Frame]) == [frame]
