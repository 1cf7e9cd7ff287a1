"""The rules of Gemini's generateContent, as google-genai takes it: model, contents, config.

Keys may be written in snake_case (as the SDK does) or in camelCase (as the REST API does). Sources: API reference
"Generating content", docs "Thought signatures" (sent back as they came; which models ask for them).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from .gemini_config import TOOL_NAME, check_config
from .gemini_contents import contents_of, single
from .gemini_turns import Turns
from .problems import as_mapping, named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

_SIGNS: Final = re.compile(r"gemini-(?:[3-9]|\d{2})(?!.*image)")


def check(request: Mapping[str, Any], problems: Problems) -> None:
    """Note every problem of a request."""
    problems.required_text("", request, "model", blank=False)
    model = request.get("model")
    name = model if isinstance(model, str) else ""
    if request.get("config") is not None:
        config = problems.mapping("config", request["config"])
        if config is not None:
            check_config(problems, config, name)
    value = problems.required("", request, "contents")
    if value is None:
        return
    if isinstance(value, str):  # one turn of the user
        problems.text("contents", value)
        return
    is_one = as_mapping(value) is not None  # a content, a part or a file of its own
    contents = [single(value)] if is_one else contents_of(problems.sequence("contents", value) or ())
    turns = Turns(problems, TOOL_NAME, asks_signature=_SIGNS.search(name) is not None)
    for given in contents:
        if given.content is None:
            problems.add(given.path, "type", f"must be a Content, got {named(given.item)}")
            turns.broken()
        else:
            turns.content(given.path, given.content, alone=len(contents) == 1, paths=given.parts)
    turns.close()
