"""Requests hold no more media than their provider takes: what is left out is in a record, what is sent is hashed."""

from __future__ import annotations

import struct
from base64 import b64encode
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from session_actor import InvalidArgument, ModelProfile, ToolCall, validate_request
from session_actor.blocks import Document, Image, Native
from session_actor.commands import AddAssistant, AddToolResult, AddUser, BuildRequest, Pop
from session_actor.requests import limits
from session_actor.requests.limits import limits_of

from .asked import DIALECTS, MESSAGES, MODELS, Asked, hash_of, same

SEES = ModelProfile(
    name="sees", window=1_000_000, max_output=8_000, family="o200k", sees_images=True, sees_documents=True
)
NARROW = ModelProfile(
    name="narrow", window=200_000, max_output=8_000, family="o200k", sees_images=True, image_rule="none"
)


@pytest.fixture(autouse=True)
def _models(monkeypatch):
    monkeypatch.setitem(MODELS, "sees", SEES)
    monkeypatch.setitem(MODELS, "narrow", NARROW)


def png(width: int, height: int, size: int = 0) -> Image:
    data = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + bytes(5 + size)
    return Image(data=data, media_type="image/png")


LARGE, SMALL = png(2_001, 10), png(10, 10)


def images_in(request: Any) -> int:
    text = repr(dict(request))
    return text.count("'type': 'image'") + text.count("'image_url': ") + text.count("'inline_data'")


def check(live: Asked, request: Any) -> None:
    """What is sent is what was hashed and counted, and a recovered session sends it, too."""
    assert live.asked.hash == hash_of(request)
    assert same(live.again(request.dialect), request)
    live.save()
    assert same(live.again(request.dialect, live.recovered()), request)


def omitted(request: Any) -> int:
    return [note.what for note in request.omitted].count("no_room")


def test_among_more_than_twenty_images_no_large_one_is_shown():
    live = Asked(model="sees")
    live.do(AddUser([LARGE, *[png(2_000, 2_000)] * 19]))
    assert images_in(live.ask("anthropic")) == 20
    live.do(AddUser([SMALL]))
    request = live.ask("anthropic")
    shown = request["messages"][0]["content"]
    assert [block["type"] for block in shown] == ["text"] + ["image"] * 20
    assert "takes no more" in shown[0]["text"]
    assert omitted(request) == 1
    assert live.asked.made is not None
    check(live, request)
    assert images_in(live.ask("openai_chat")) == 21, "another provider takes them"
    assert live.asked.made is None
    assert live.asked.quote.view == 1


def test_the_newest_image_is_shown_and_old_ones_go():
    live = Asked(model="sees")
    for _ in range(20):
        live.do(AddUser([SMALL]))
        live.do(AddAssistant("I see."))
    live.do(AddUser([LARGE, "And this?"]))
    request = live.ask("anthropic")
    assert request["messages"][-1]["content"][0]["type"] == "image"
    assert images_in(request) == 12, "60% of those that may be beside a large one"
    check(live, request)


def pdf(pages: int, size: int = 0) -> Document:
    data = b"%PDF-1.7\n" + b"<</Type/Page/Parent 1 0 R>>\n" * pages + bytes(size)
    return Document(data=data, media_type="application/pdf")


def native_pdf(pages: int) -> Native:
    data = b64encode(pdf(pages).data or b"").decode()
    return Native(
        "anthropic",
        None,
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}},
    )


def documents_in(request: Any) -> int:
    return repr(dict(request)).count("'type': 'document'")


@pytest.mark.parametrize(("model", "most"), [("sees", 600), ("narrow", 100)])
@pytest.mark.parametrize("make", [pdf, native_pdf])
def test_no_request_has_more_pages_than_are_taken(model, most, make, monkeypatch):
    monkeypatch.setitem(MODELS, "narrow", msgspec.structs.replace(NARROW, sees_documents=True))
    monkeypatch.setitem(MODELS, "sees", msgspec.structs.replace(SEES, image_rule="none"))  # pages cost little
    live = Asked(model=model)
    live.do(AddUser([make(most // 2), "Read this."]))
    live.do(AddAssistant("I did."))
    live.do(AddUser([make(most // 2), "And this."]))
    assert documents_in(live.ask("anthropic")) == 2
    live.do(AddAssistant("I did."))
    live.do(AddUser([make(1), "And this page?"]))
    request = live.ask("anthropic")
    assert documents_in(request) == 2
    assert "takes no more" in repr(request["messages"][0])
    assert omitted(request) == 1
    check(live, request)


def test_a_pdf_of_more_pages_than_are_taken_has_a_text_in_its_place():
    live = Asked(model="sees")
    live.do(AddUser([pdf(601), "Read this."]))
    request = live.ask("anthropic")
    assert documents_in(request) == 0
    assert omitted(request) == 1
    check(live, request)
    assert live.refuses(InvalidArgument, BuildRequest("anthropic", ephemeral=[pdf(601)])).what == "ephemeral"


def test_the_validator_counts_pages():
    document = native_pdf(301).value
    content = [document, {"type": "text", "text": "Read."}, document]
    request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    assert [problem.split(": ")[:2] for problem in validate_request("anthropic", request)] == [
        ["messages[0].content[2].source", "limit"]
    ]
    del content[2]
    assert validate_request("anthropic", request) == []


def test_what_was_left_out_stays_out_until_the_next_record_of_it():
    live = Asked(model="sees")
    marks = 0
    before: list[Any] = []
    for number in range(60):
        live.do(AddAssistant("", tool_calls=[ToolCall(f"call_{number}", "ls")]))
        live.do(AddToolResult(f"call_{number}", [LARGE]))
        request = live.ask("anthropic")
        if live.asked.made is None:
            assert request["messages"][: max(0, len(before) - 1)] == before[:-1]
        marks += live.asked.made is not None
        before = request["messages"]
        assert images_in(request) <= 20
        check(live, request)
    assert marks == 5, "20 at first, and nine more each time"


def test_a_pop_behind_the_mark_shows_them_again():
    live = Asked(model="sees")
    live.do(AddUser([LARGE] * 20))
    live.do(AddAssistant("I see."))
    live.do(AddUser([SMALL]))
    assert omitted(live.ask("anthropic")) == 9
    live.do(Pop(1))
    assert omitted(live.ask("anthropic")) == 0
    live.do(AddUser([SMALL]))
    check(live, live.ask("anthropic"))


def test_the_limits_are_those_that_are_published():
    assert [limits_of(dialect).images for dialect in DIALECTS] == [600, 500, 500, 3_600]
    assert [limits_of(dialect).megabytes for dialect in DIALECTS] == [32, 50, 50, 100]
    assert limits_of("anthropic", 200_000).images == 100
    assert limits_of("anthropic", 200_001).images == 600
    assert [limits_of(dialect).pages for dialect in DIALECTS] == [600, None, None, None]
    assert limits_of("anthropic", 200_000).pages == 100


@pytest.fixture
def few(monkeypatch):
    """Limits that are soon reached: 50 images, and 1 MB."""
    known = {dialect: limits_of(dialect)._replace(images=50, megabytes=1) for dialect in DIALECTS}
    monkeypatch.setattr(limits, "_BY_DIALECT", known)


def test_a_model_with_a_small_window_is_sent_fewer_images():
    check_most("anthropic", "narrow", 100)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_request_has_more_images_than_are_taken(dialect, few):
    check_most(dialect, "sees", 50)


def check_most(dialect: str, model: str, most: int) -> None:
    live = Asked(model=model)
    live.do(AddUser([SMALL] * most))
    assert images_in(live.ask(dialect)) == most
    live.do(AddUser([SMALL]))
    request = live.ask(dialect)
    assert images_in(request) == most, "of the newest turns no more go than must"
    live.do(AddAssistant("Many."))
    live.do(AddUser([SMALL]))
    request = live.ask(dialect)
    assert images_in(request) == int(0.6 * most)
    check(live, request)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_request_has_more_bytes_than_are_taken(dialect, few):
    live = Asked(model="sees")
    paper = Document(data=b"%PDF-1.7" + bytes(60_000), media_type="application/pdf")
    for number in range(10):
        live.do(AddUser([png(10, 10, 80_000), paper]))
        live.do(AddAssistant(f"Seen {number}."))
        request = live.ask(dialect)
        check(live, request)
        assert sum(map(len, sent_data(request))) <= 1_000_000
    assert live.state.marks


def sent_data(value: Any) -> list[str]:
    """All data in a request, in base64."""
    if isinstance(value, bytes):
        return [b64encode(value).decode()]
    if isinstance(value, str):
        return [value] if len(value) > 10_000 else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in sent_data(item)]


def test_blocks_of_one_provider_count_as_what_they_are():
    large = {"type": "image", "source": {"type": "base64", "data": b64encode(LARGE.data or b"").decode()}}
    odd: list[Any] = [
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image", "source": {"data": "%", "type": "base64", "media_type": "image/png"}},
    ]
    live = Asked(model="sees")
    live.do(AddUser([Native("anthropic", None, large), *[Native("anthropic", None, block) for block in odd]]))
    live.do(AddUser([SMALL] * 18))
    request = live.do(BuildRequest("anthropic"))
    content = request["messages"][0]["content"]
    assert [block["type"] for block in content] == ["text"] + ["image"] * 20
    assert content[1:3] == odd


def test_what_is_lent_counts_and_is_refused_when_it_is_too_much_alone():
    live = Asked(model="sees")
    live.do(AddUser([LARGE] * 12))
    assert images_in(live.ask("anthropic", ephemeral=[LARGE] * 8)) == 20
    assert live.asked.made is None
    assert images_in(live.ask("anthropic", ephemeral=[LARGE] * 9)) == 20
    assert live.asked.made is not None
    with pytest.raises(InvalidArgument, match="ephemeral"):
        live.ask("anthropic", ephemeral=[LARGE] * 21)


def test_the_place_in_a_mark_is_that_of_the_image_whatever_else_is_shown():
    live = Asked(model="sees")
    live.do(AddUser([Image(url="https://example.com/a.png"), LARGE, *[SMALL] * 19]))
    live.ask("anthropic")
    assert live.state.marks[-1].unseen[0].place == (2, 0, 1)


def many_of(dialect: str, images: int, size: int = 0) -> dict[str, Any]:
    """A request with so many images."""
    live = Asked(model="sees")
    live.do(AddUser([png(10, 10, size)]))
    request = live.ask(dialect)
    messages = request[MESSAGES[dialect]]
    content = messages[-1].get("content") or messages[-1]["parts"]
    content += [deepcopy(content[-1]) for _ in range(images - 1)]
    return request


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_with_too_many_images_or_bytes_is_a_problem(dialect, few):
    assert validate_request(dialect, many_of(dialect, 50)) == []
    found = validate_request(dialect, many_of(dialect, 51))
    assert len(found) == 1
    assert "limit: hold 51 images; the provider takes 50" in found[0]
    assert validate_request(dialect, many_of(dialect, 5, 150_000)) == []
    found = validate_request(dialect, many_of(dialect, 6, 150_000))
    assert len(found) == 1
    assert "takes 1 MB at once" in found[0]


def test_what_a_model_wrote_is_no_image_and_a_list_in_itself_is_counted_once():
    live = Asked(model="sees")
    live.do(AddUser("Draw."))
    live.do(AddAssistant("", tool_calls=[ToolCall("call_1", "ls", '{"path": [' + '{"type": "image"},' * 700 + "1]}")]))
    live.do(AddToolResult("call_1", "Done."))
    assert validate_request("anthropic", live.ask("anthropic")) == []
    content: list[Any] = [{"type": "text", "text": "x"}]
    content.append(content)
    assert not [one for one in validate_request("anthropic", {"messages": content}) if "images" in one]


@pytest.mark.parametrize("name", ["file_data", "fileData"])
def test_a_file_that_gemini_fetches_counts_when_it_is_an_image(name, few):
    mime = "mime_type" if name == "file_data" else "mimeType"
    live = Asked(model="sees")
    block = Native("gemini", None, {name: {mime: "image/png", "file_uri": "gs://a/b"}})
    live.do(AddUser([block] * 51))
    request = live.do(BuildRequest("gemini"))
    assert sum("text" in part for part in request["contents"][0]["parts"]) == 1


def made(number: int, size: int) -> Native:
    data = b64encode(png(1_024, 1_024, size).data or b"").decode()
    value = {"type": "image_generation_call", "id": f"ig_{number}", "status": "completed", "result": data}
    return Native("openai_responses", "sees", value)


def drawn(request: Any) -> int:
    return [item["type"] for item in request["input"]].count("image_generation_call")


def test_images_that_the_model_made_give_way_to_newer_ones(monkeypatch):
    known = {dialect: limits_of(dialect)._replace(megabytes=4) for dialect in DIALECTS}
    monkeypatch.setattr(limits, "_BY_DIALECT", known)
    live = Asked(model="sees")
    for number in range(12):
        live.do(AddUser("Draw."))
        live.do(AddAssistant([made(number, 300_000)], dialect="openai_responses", model="sees"))
        live.do(AddUser("And?"))
        request = live.ask("openai_responses")
        assert len(repr(dict(request))) < 4_000_000
        assert drawn(request) >= min(number + 1, 4)
        assert drawn(request) + omitted(request) == number + 1
        check(live, request)
    assert "takes no more" in repr(request["input"][1])
    assert request["input"][-2]["type"] == "image_generation_call"


def test_what_a_search_found_does_not_go_for_images():
    found = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"encrypted_content": "x" * 99_999}],
        },
    ]
    live = Asked(model="sees")
    live.do(AddUser("Hello"))
    live.do(AddAssistant([Native("anthropic", "sees", one) for one in found], dialect="anthropic", model="sees"))
    live.do(AddUser([LARGE, *[SMALL] * 20]))
    request = live.ask("anthropic")
    assert omitted(request) == 1
    assert [block["type"] for block in request["messages"][1]["content"]] == [one["type"] for one in found]
