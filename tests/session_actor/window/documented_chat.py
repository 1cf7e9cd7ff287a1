"""Requests with the structure of the examples in OpenAI's documentation of Chat Completions."""

from __future__ import annotations

from typing import Any

from .breaking import PIXEL

LOOK_UP = {
    "type": "function",
    "function": {
        "name": "tell_weather",
        "description": "Tells the weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
            "required": ["place", "unit"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}
STEPS = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"why": {"type": "string"}, "then": {"type": ["string", "null"]}},
                "required": ["why", "then"],
                "additionalProperties": False,
            },
        },
        "answer": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/fraction"}]},
    },
    "$defs": {
        "fraction": {
            "type": "object",
            "properties": {"over": {"type": "integer"}, "under": {"type": "integer", "minimum": 1}},
            "required": ["over", "under"],
            "additionalProperties": False,
        }
    },
    "required": ["steps", "answer"],
    "additionalProperties": False,
}


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def asked(*messages: dict[str, Any], model: str = "gpt-4.1", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": list(messages), **more}


def call(call_id: str, place: str) -> dict[str, Any]:
    function = {"name": "tell_weather", "arguments": f'{{"place": "{place}", "unit": "celsius"}}'}
    return {"id": call_id, "type": "function", "function": function}


HELLO = said("user", "Hello!")
QUESTION = said("user", "What is the weather in Bergen and Oslo?")
DOCUMENTED: dict[str, dict[str, Any]] = {
    "Create chat completion": asked(said("developer", "You are a helpful assistant."), HELLO),
    "Create chat completion: an image": asked(
        said(
            "user",
            [
                {"type": "text", "text": "What is in it?"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.jpg"}},
            ],
        ),
        max_tokens=300,
    ),
    "Create chat completion: a stream": asked(
        said("system", "Be brief."), HELLO, stream=True, stream_options={"include_usage": True}
    ),
    "Create chat completion: functions": asked(QUESTION, tools=[LOOK_UP], tool_choice="auto"),
    "Create chat completion: log probabilities": asked(HELLO, logprobs=True, top_logprobs=2),
    "Create chat completion: kept": asked(HELLO, store=True, metadata={"role": "manager", "source": "homepage"}),
    "Images and vision": asked(
        said(
            "user",
            [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "high"}},
            ],
        )
    ),
    "Audio: heard": asked(
        said(
            "user",
            [
                {"type": "text", "text": "What is said?"},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            ],
        ),
        model="gpt-4o-audio-preview",
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "wav"},
    ),
    "Audio: said before": asked(
        HELLO,
        {"role": "assistant", "audio": {"id": "audio_abc"}},
        said("user", "Why?"),
        model="gpt-4o-audio-preview",
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "wav"},
    ),
    "File inputs": asked(
        said(
            "user",
            [
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
                {"type": "file", "file": {"file_id": "file-6F2"}},
                {"type": "text", "text": "Who wrote it?"},
            ],
        )
    ),
    "Function calling": asked(
        QUESTION,
        said("assistant", None, tool_calls=[call("call_12345xyz", "Bergen"), call("call_67890abc", "Oslo")]),
        said("tool", "14", tool_call_id="call_12345xyz"),
        said("tool", [{"type": "text", "text": "16"}], tool_call_id="call_67890abc"),
        tools=[LOOK_UP],
        parallel_tool_calls=False,
    ),
    "Function calling: forced": asked(
        QUESTION, tools=[LOOK_UP], tool_choice={"type": "function", "function": {"name": "tell_weather"}}
    ),
    "Function calling: allowed": asked(
        QUESTION,
        tools=[LOOK_UP],
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "tell_weather"}}],
            },
        },
    ),
    "Function calling: no parameters": asked(QUESTION, tools=[{"type": "function", "function": {"name": "now"}}]),
    "Function calling: custom tools": asked(
        QUESTION,
        model="gpt-5",
        tools=[
            {
                "type": "custom",
                "custom": {
                    "name": "add",
                    "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[0-9+]+"}},
                },
            }
        ],
    ),
    "Structured outputs": asked(
        said("system", "You teach mathematics."),
        said("user", "Solve 8x + 7 = -23"),
        response_format={"type": "json_schema", "json_schema": {"name": "a_solution", "strict": True, "schema": STEPS}},
    ),
    "Structured outputs: JSON mode": asked(
        said("system", "You design output in JSON."), HELLO, response_format={"type": "json_object"}
    ),
    "Structured outputs: a refusal, sent back": asked(
        HELLO, {"role": "assistant", "content": None, "refusal": "I cannot."}, said("user", "Why not?")
    ),
    "Predicted outputs": asked(
        said("user", "Rename the class: class A {}"), prediction={"type": "content", "content": "class A {}"}
    ),
    "Reasoning": asked(
        said("user", "Write a script."), model="o4-mini", reasoning_effort="high", max_completion_tokens=25_000
    ),
    "Web search": asked(
        HELLO,
        model="gpt-4o-search-preview",
        web_search_options={"user_location": {"type": "approximate", "approximate": {"country": "NO", "city": "Oslo"}}},
    ),
    "Prompting: examples by name": asked(
        said("system", "Translate what managers say."),
        said("system", "New synergies will help.", name="example_user"),
        said("system", "It will be more.", name="example_assistant"),
        said("user", "Let us circle back.", name="Ada_L-1"),
        temperature=0,
        seed=123,
        logit_bias={"2435": -100},
        n=2,
        stop=["\n", "END"],
    ),
}
