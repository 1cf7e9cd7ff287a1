"""The valid requests that the cases of the validator change, by dialect."""

from __future__ import annotations

from typing import Any

from . import test_validation_gemini as gemini
from . import test_validation_openai_chat as openai_chat
from . import test_validation_openai_responses as openai_responses
from .anthropic_base import BASE

BASES: dict[str, dict[str, Any]] = {
    "anthropic": BASE,
    "gemini": gemini.BASE,
    "openai_chat": openai_chat.BASE,
    "openai_responses": openai_responses.BASE,
}
