"""Finds the profile of a model by its name, as providers, gateways and clouds spell it."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.errors import InvalidArgument
from session_actor.given.plain import is_a, plain_str
from session_actor.log import LOGGER

from .profile import ModelProfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UNKNOWN: Final = ModelProfile(
    name="unknown",
    window=32_000,
    max_output=4_096,
    family="claude47",
    image_rule="unknown",
    dialects=("openai_chat", "openai_responses", "anthropic", "gemini"),
)
"""What is taken for a model that is not known. Hardly a model in use takes less than 32,000 tokens or writes less than
4,096; of all tokenizers that of `claude47` gives most tokens for most texts. It is let see images: leaving one out
would change what is asked, and the provider says so when it takes none."""

AZURE_MESSAGES: Final = 2_048
"""learn.microsoft.com, "Azure OpenAI quotas and limits": max number of /chat/completions messages. OpenAI's own
reference names no limit."""
_AZURE: Final = re.compile(r"azure(?:_ai|_openai)?[/:]")

_WARNED_LIMIT: Final = 1_000
_warned: set[str] = set()

# A cloud's region and vendor ("us.anthropic.", "meta."), a router's provider ("google-vertex:"), a fine-tune ("ft:").
_REGION: Final = re.compile(r"^(?:us-gov|us|eu|apac|ap|jp|au|ca|sa|me|global)\.(?=[a-z])")
_VENDOR: Final = re.compile(r"^(?:anthropic|openai|google|meta|mistral|mistralai|qwen|cohere|ai21|amazon)\.")
_ROUTE: Final = re.compile(
    r"^(?:openai(?:-chat|-responses)?|anthropic|google(?:-gla|-vertex|_genai|_vertexai)?|vertexai|bedrock(?:_converse)?"
    r"|azure(?:_openai)?|mistral(?:ai)?|groq|together|fireworks|ollama|openrouter|deepseek|cerebras|ft):"
)


def profile_of(model: str, overrides: Mapping[str, ModelProfile] | None = None) -> ModelProfile:
    """Return what is known of a model.

    The longest name wins that `model` begins with: `gpt-4o-mini` for `gpt-4o-mini-2024-07-18`. Upper case, and what
    gateways and clouds put around a name, make no difference: `openrouter/anthropic/claude-sonnet-4.5`,
    `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `models/gemini-2.5-pro` and `azure/gpt-4o` are found. The first
    time in a process that a model is not known, a warning is logged (event `model_unknown`).

    Args:
        model: the model's name, as a request has it.
        overrides: profiles by model name, which win over those that are shipped; a key is matched exactly, then like a
            shipped name. None: none.

    Returns:
        The profile; `UNKNOWN`, which is careful in everything, when there is none.

    Raises:
        InvalidArgument: `model` is no str or is empty; a value of `overrides` that was asked for is no `ModelProfile`.
    """
    if type(model) is not str:
        model = _plain(model)
    if not model:
        raise InvalidArgument("model", "must not be empty")
    found = _override(model, overrides) if overrides else None
    if found is None:
        found = _shipped(model)
        if found is not None and _AZURE.match(model.lower()) and found.most_messages is None:
            found = _on_azure(found)
    if found is None:
        _warn(model)
        return UNKNOWN
    return found


@cache
def _on_azure(profile: ModelProfile) -> ModelProfile:
    return msgspec.structs.replace(profile, most_messages=AZURE_MESSAGES)


@cache
def shipped() -> dict[str, ModelProfile]:
    """Return the profiles of the data file (session_actor/data/models.json) by every name they are known by."""
    from importlib.resources import files

    data = files("session_actor.data").joinpath("models.json").read_bytes()
    families = msgspec.json.decode(data, type=list[_Family])
    return {key(name): family.profile for family in families for name in (family.profile.name, *family.also)}


class _Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    profile: ModelProfile
    also: tuple[str, ...] = ()
    """Other beginnings of names that stand for the same."""


def key(model: str) -> str:
    """Return a model's name without what gateways and clouds put around it, in one spelling: `claude-sonnet-4-5`."""
    name = model.rsplit("/", 1)[-1].lower()
    name = _ROUTE.sub("", name)
    name = _VENDOR.sub("", _REGION.sub("", name))
    return name.replace(".", "-").replace("_", "-")


@lru_cache(maxsize=512)
def _shipped(model: str) -> ModelProfile | None:
    names = shipped()
    name = _longest(key(model), names)
    return None if name is None else names[name]


def _override(model: str, overrides: Mapping[str, ModelProfile]) -> ModelProfile | None:
    spelled = model
    if model not in overrides:
        spellings = {key(name): name for name in overrides}
        name = _longest(key(model), spellings)
        if name is None:
            return None
        spelled = spellings[name]
    profile = overrides[spelled]
    if not is_a(profile, ModelProfile):
        raise InvalidArgument(f"models[{spelled!r}]", f"must be a ModelProfile, got {type(profile).__name__}")
    return profile


def _longest(model: str, names: Iterable[str]) -> str | None:
    """Return the longest of `names` that is `model`, or stands before a mark in it: `gpt-4` does not begin `gpt-4o`."""
    best: str | None = None
    for name in names:
        if model.startswith(name) and not model[len(name) : len(name) + 1].isalnum():
            best = name if best is None or len(name) > len(best) else best
    return best


def _warn(model: str) -> None:
    if model in _warned or len(_warned) >= _WARNED_LIMIT:
        return
    _warned.add(model)
    LOGGER.warning(
        "model_unknown",
        model=model[:128],
        window=UNKNOWN.window,
        max_output=UNKNOWN.max_output,
        advice="name its ModelProfile in SessionService.open(models={...})",
    )


def _plain(model: object) -> str:
    if not is_a(model, str):
        raise InvalidArgument("model", f"must be a str, got {type(model).__name__}")
    return plain_str(model)
