"""Whether a provider would take a request, as far as its form can tell: our own rules, one file a dialect.

The types of the SDKs accept nearly every structural defect; these rules refuse them before the provider does. They are
pure: nothing is sent, counted or changed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from session_actor.dialects import checked_dialect

from . import media
from .arguments import arguments
from .problems import Problems
from .settings import settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session_actor.dialects import Dialect

_MESSAGES: Final = {
    "anthropic": "messages",
    "gemini": "contents",
    "openai_chat": "messages",
    "openai_responses": "input",
}


def validate_request(dialect: Dialect, request: Mapping[str, object]) -> list[str]:
    """Tell what a provider would refuse in a request.

    Args:
        dialect: "openai_chat", "openai_responses", "anthropic" or "gemini": whose form the request has.
        request: The keyword arguments for the SDK's call, as `build_request` gives them; models of the SDK may stand
            inside. Any other value is a problem, never an error.

    Returns:
        A text for each problem, "path: rule: what is wrong and why", in the order of the request; empty when there is
        none. `rule` is one of the short codes of `session_actor.validation.problems.Rule`. A problem shows ids, names
        and types, never what the conversation says.

    Raises:
        InvalidArgument: There is no such dialect.
    """
    dialect = checked_dialect(dialect)
    problems = Problems()
    found = problems.mapping("request", request)
    if found is not None:
        arguments(problems, dialect, found)
        settings(problems, dialect, found)
        import_module(f".{dialect}", __package__).check(found, problems)
        media.whole(problems, dialect, found.get(_MESSAGES[dialect]), _MESSAGES[dialect])
    return problems.found
