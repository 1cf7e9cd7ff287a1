"""A second check of a request: whether the SDKs' own types take it. They know shapes only, nothing of any order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pydantic


def shape_problems(dialect: str, request: Mapping[str, Any]) -> list[str]:
    """What the SDK of a dialect says against the keyword arguments of its call: "place: message" each."""
    call, check = _sdk(dialect)
    try:
        inspect.signature(call).bind(None, **request)
    except TypeError as error:
        return [f"call: {error}"]
    return list(check(request))


def sdk_arguments(dialect: str) -> list[str]:
    """The keyword arguments that the call of a dialect's SDK takes."""
    return [name for name in inspect.signature(_sdk(dialect)[0]).parameters if name != "self"]


@cache
def _sdk(dialect: str) -> tuple[Callable[..., Any], Callable[[Mapping[str, Any]], Iterator[str]]]:
    if dialect == "anthropic":
        from anthropic.resources.messages import Messages
        from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

        return Messages.create, _checker(MessageCreateParamsNonStreaming)
    if dialect == "openai_chat":
        from openai.resources.chat.completions import Completions
        from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

        return Completions.create, _checker(CompletionCreateParamsNonStreaming)
    if dialect == "openai_responses":
        from openai.resources.responses import Responses
        from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

        return Responses.create, _checker(ResponseCreateParamsNonStreaming)
    if dialect == "gemini":
        from google.genai.models import Models

        return Models.generate_content, _gemini
    raise ValueError(dialect)


def _checker(kind: Any) -> Callable[[Mapping[str, Any]], Iterator[str]]:
    adapter = pydantic.TypeAdapter(kind)

    def check(request: Mapping[str, Any]) -> Iterator[str]:
        try:
            found = adapter.validate_python(dict(request))
        except pydantic.ValidationError as error:
            yield from _told(error, "")
        else:
            yield from _walk(found, "")

    return check


def _walk(value: Any, place: str) -> Iterator[str]:
    """Visit everything: an `Iterable` field is checked item by item, and only while somebody iterates over it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _walk(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _walk(inner, f"{place}[{number}]")
    elif hasattr(value, "__next__"):
        yield from _walk_lazy(value, place)


def _walk_lazy(items: Iterator[Any], place: str) -> Iterator[str]:
    number = 0
    while True:
        try:
            inner = next(items)
        except StopIteration:
            return
        except pydantic.ValidationError as error:
            yield from _told(error, place)
        else:
            yield from _walk(inner, f"{place}[{number}]")
        number += 1


def _told(error: pydantic.ValidationError, place: str) -> Iterator[str]:
    for one in error.errors(include_url=False, include_input=False):
        yield f"{place}{''.join(f'.{step}' for step in one['loc'])}: {one['msg']}"


def _gemini(request: Mapping[str, Any]) -> Iterator[str]:
    from google.genai import types

    contents = request.get("contents")
    contents = contents if isinstance(contents, list | tuple) else [contents]
    wanted: list[tuple[str, type[pydantic.BaseModel], Any]] = [
        (f"contents[{number}]", types.Part if _is_part(content) else types.Content, content)
        for number, content in enumerate(contents)
        if not isinstance(content, str)
    ]
    if request.get("config") is not None:
        wanted.append(("config", types.GenerateContentConfig, request["config"]))
    for place, kind, value in wanted:
        try:
            kind.model_validate(value)
        except pydantic.ValidationError as error:
            yield from _told(error, place)


def _is_part(content: object) -> bool:
    """Whether it stands in a list of contents as a part of the user's."""
    return isinstance(content, dict) and bool(content) and not {"parts", "role"} & set(content)
