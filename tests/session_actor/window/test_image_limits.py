"""Images that a provider would refuse for their size, and those that are not of the type they are said to be."""

from __future__ import annotations

import struct
from base64 import b64encode
from typing import Any

import pytest

from session_actor import validate_request
from session_actor.blocks import Image
from session_actor.commands import AddAssistant, AddUser, Pop
from session_actor.media import image_type
from session_actor.requests import many_images
from session_actor.requests.many_images import leave_out_large
from session_actor.requests.media import carries, is_too_large, media_type

from .asked import Asked, same

GIF = b"GIF89a" + struct.pack("<HH", 16, 16) + b"\x00\x00\x00"
WEBP = b"RIFF\x1a\x00\x00\x00WEBPVP8L" + bytes(16)


def png(width: int, height: int, size: int = 0) -> bytes:
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + bytes(5 + size)


def image(data: bytes) -> Image:
    return Image(data=data, media_type="image/png")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png(1, 1), "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (GIF, "image/gif"),
        (WEBP, "image/webp"),
        (b"\x00\x00\x00\x18ftypheic", "image/heic"),
        (b"RIFF\x00\x00\x00\x00WAVE", None),
        (b"BMW", None),
        (b"", None),
    ],
)
def test_the_first_bytes_tell_the_type(data, kind):
    assert image_type(data) == kind


def test_an_image_is_sent_as_what_its_bytes_say(dialect):
    said = Image(data=png(10, 10), media_type="image/jpeg")
    assert media_type(said) == "image/png"
    live = Asked()
    live.do(AddUser([said]))
    request = live.ask(dialect)
    assert "image/png" in repr(dict(request))
    assert "image/jpeg" not in repr(dict(request))
    assert not carries(dialect, Image(data=b"\x00\x00\x00\x18ftypavif", media_type="image/png"))
    assert media_type(Image(data=b"??", media_type="image/webp")) == "image/webp"


@pytest.mark.parametrize(
    ("data", "too_large"),
    [
        (png(8_000, 8_000), False),
        (png(8_001, 1), True),
        (png(10, 10, (5 << 20) * 3 // 4 - 29), False),
        (png(10, 10, (5 << 20) * 3 // 4 - 28), True),
    ],
)
def test_an_image_that_is_too_large_for_anthropic_has_a_text_in_its_place(data, too_large):
    assert is_too_large("anthropic", image(data)) == too_large
    assert not is_too_large("openai_chat", image(data))
    live = Asked()
    live.do(AddUser(["What is it?", image(data)]))
    request = live.ask("anthropic")
    assert validate_request("anthropic", request) == []
    assert [block["type"] for block in request["messages"][0]["content"]] == ["text", "text" if too_large else "image"]
    assert ("image" in [note.what for note in request.omitted]) == too_large


def test_among_more_than_twenty_images_the_large_ones_are_left_out():
    live = Asked(model="claude-sonnet-4-5")
    live.do(AddUser([image(png(2_001, 10)), *[image(png(2_000, 2_000))] * 19]))
    assert [block["type"] for block in live.ask("anthropic")["messages"][0]["content"]] == ["image"] * 20
    live.do(AddUser([image(png(10, 10))]))
    request = live.ask("anthropic")
    shown = request["messages"][0]["content"]
    assert [block["type"] for block in shown] == ["text"] + ["image"] * 20
    assert "more than 20" in shown[0]["text"]
    assert [note.what for note in request.omitted] == ["image"]
    assert shown[20]["source"]["data"] == b64encode(png(10, 10)).decode()
    assert validate_request("anthropic", request) == []


def test_images_of_all_turns_count_and_no_longer_when_their_turns_are_popped():
    live = Asked(model="claude-sonnet-4-5")
    for _ in range(10):
        live.do(AddUser([image(png(2_001, 10)), image(png(10, 10))]))
        live.do(AddAssistant("I see."))
        assert live.ask("anthropic").omitted == ()
    live.do(AddUser([image(png(10, 10))]))
    assert [note.what for note in live.ask("anthropic").omitted] == ["image"] * 10
    live.do(Pop(1))
    assert live.ask("anthropic").omitted == ()
    live.do(AddUser([image(png(10, 10))]))
    request = live.ask("anthropic")
    assert [note.what for note in request.omitted] == ["image"] * 10
    assert same(live.again("anthropic"), request)


def test_no_text_of_a_long_conversation_is_looked_at_again_for_images(monkeypatch):
    live = Asked()
    for _ in range(60):
        live.do(AddUser("Go on."))
        live.do(AddAssistant("It goes on."))
    live.do(AddUser("Go on."))
    live.ask("anthropic")
    looked = []
    monkeypatch.setattr(many_images, "_images", lambda content: looked.append(content) or iter(()))
    live.do(AddAssistant("It goes on."))
    live.do(AddUser("Go on."))
    live.ask("anthropic")
    assert 0 < len(looked) <= 8


def test_images_in_results_count_and_blocks_of_any_source_are_left_alone():
    large = {"type": "image", "source": {"type": "base64", "data": b64encode(png(2_001, 1)).decode()}}
    odd: list[Any] = [
        {"type": "image"},
        {"type": "image", "source": None},
        {"type": "image", "source": {"data": "%"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
    ]
    result = {"type": "tool_result", "tool_use_id": "a", "content": [large, *odd]}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [result, *odd * 4]},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": "text"}]},
    ]
    assert leave_out_large(messages) == 1
    assert result["content"][0]["type"] == "text"
    assert result["content"][1:] == odd
