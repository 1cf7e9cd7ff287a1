"""Images that a provider would refuse for their size, and those that are not of the type they are said to be."""

from __future__ import annotations

import struct

import pytest

from session_actor import validate_request
from session_actor.blocks import Image
from session_actor.commands import AddUser
from session_actor.media import image_type
from session_actor.requests.media import carries, is_too_large, media_type

from .asked import Asked

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
