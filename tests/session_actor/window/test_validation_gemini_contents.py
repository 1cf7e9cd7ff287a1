"""What stands for contents in google-genai: texts, parts and files, alone or in a list."""

from __future__ import annotations

import pytest

from session_actor import validate_request

from .test_validation_gemini import SAYING, call, response

QUESTION = {"role": "user", "parts": [{"text": "How is it?"}]}
PICTURE = {"inline_data": {"mime_type": "image/png", "data": b"\x89PNG"}}
FILE = {"file_data": {"file_uri": "https://example.org/a.mp4", "mime_type": "video/mp4"}}
MODEL = "gemini-2.5-pro"


def found(contents) -> list[list[str]]:
    return [problem.split(": ")[:2] for problem in validate_request("gemini", {"model": MODEL, "contents": contents})]


@pytest.mark.parametrize(
    "contents",
    [
        "How is it?",
        QUESTION,
        {"text": "How is it?"},
        PICTURE,
        [PICTURE, "What is it?"],
        [["What is it?", PICTURE]],
        [QUESTION, SAYING, "Why?", PICTURE],
        [QUESTION, call("clock"), response("clock")],
        [QUESTION, call("clock"), call("weather"), response("clock"), response("weather"), {"text": "So?"}],
        [{"file_uri": "https://example.org/files/1", "mime_type": "image/png"}, "What is it?"],
    ],
    ids=str,
)
def test_what_the_sdk_makes_contents_of_is_valid(contents):
    assert found(contents) == []


def test_what_the_sdk_made_is_valid_too():
    from google.genai import types

    assert found(types.Part.from_text(text="How is it?")) == []
    assert found(types.File(uri="https://example.org/files/1", mime_type="image/png")) == []
    picture = types.Part.from_uri(file_uri="gs://a/b.png", mime_type="image/png")
    assert found(["What is it?", FILE, {"text": "And this?"}, picture]) == []


def test_a_session_of_mcp_stands_for_its_tools():
    class Session:
        async def list_tools(self):
            return []

    request = {"model": MODEL, "contents": "How is it?", "config": {"tools": [Session()]}}
    assert validate_request("gemini", request) == []
    request["config"]["tools"].append(object())
    assert [problem.split(": ")[:2] for problem in validate_request("gemini", request)] == [["config.tools[1]", "type"]]


@pytest.mark.parametrize(
    ("contents", "problems"),
    [
        (["What is it?", ""], [["contents[1].text", "empty"]]),
        ([PICTURE, {"inline_data": {"data": b"x"}}], [["contents[1].inline_data.mime_type", "missing"]]),
        ([["What is it?", {"text": ""}]], [["contents[0][1].text", "empty"]]),
        ({"text": "x", **FILE}, [["contents", "source"]]),
        ([QUESTION, "Why?"], [["contents[1]", "alternate"]]),
        ([call("clock")], [["contents[0]", "first"], ["contents[0]", "last"], ["contents[0]", "unanswered"]]),
        ([QUESTION, call("clock"), response("weather")], [["contents[2]", "no-call"]]),
        ([QUESTION, 7], [["contents[1]", "type"]]),
        (7, [["contents", "type"]]),
        ([], [["contents", "empty"]]),
    ],
    ids=str,
)
def test_a_problem_is_told_at_the_place_where_it_was_given(contents, problems):
    assert found(contents) == problems
