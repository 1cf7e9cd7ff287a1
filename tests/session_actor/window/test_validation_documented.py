"""What the providers show in their own documentation is valid."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from session_actor import validate_request

from .documented_anthropic import DOCUMENTED as ANTHROPIC
from .documented_chat import DOCUMENTED as CHAT
from .documented_gemini import DOCUMENTED as GEMINI
from .documented_gemini import made_by_the_sdk
from .documented_responses import DOCUMENTED as RESPONSES
from .sdk_shapes import shape_problems

DOCUMENTED: dict[str, dict[str, dict[str, Any]]] = {
    "anthropic": ANTHROPIC,
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "gemini": GEMINI,
}
UNTYPED = {"betas", "context_management", "mcp_servers", "stream", "temperature"}
"""Arguments that the types of a plain call do not have: of a call in beta, of another call, of an older SDK."""
EXAMPLES = [(dialect, page) for dialect, pages in DOCUMENTED.items() for page in pages]


@pytest.mark.parametrize(("dialect", "page"), EXAMPLES, ids=lambda value: value)
def test_what_a_provider_documents_is_valid_and_the_types_take_it(dialect, page):
    check(dialect, DOCUMENTED[dialect][page])


def test_what_is_documented_as_made_by_the_sdk_of_gemini_is_valid_and_the_types_take_it():
    for request in made_by_the_sdk().values():
        check("gemini", request)


def check(dialect, request):
    before = copy.deepcopy(request)
    assert validate_request(dialect, request) == []
    assert request == before
    assert UNTYPED & set(request) or shape_problems(dialect, request) == []


def test_every_provider_shows_many():
    assert all(len(pages) >= 20 for pages in DOCUMENTED.values())
