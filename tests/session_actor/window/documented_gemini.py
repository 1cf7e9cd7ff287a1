"""Requests with the structure of the examples in Gemini's documentation."""

from __future__ import annotations

import base64
from typing import Any

from .breaking import PIXEL

IMAGE = {"inline_data": {"mime_type": "image/png", "data": base64.b64decode(PIXEL)}}
LIGHTS = {
    "name": "set_lights",
    "description": "Sets brightness and colour.",
    "parameters": {
        "type": "object",
        "properties": {
            "brightness": {"type": "integer", "description": "From 0 to 100"},
            "colour": {"type": "string", "enum": ["daylight", "cool", "warm"]},
        },
        "required": ["brightness", "colour"],
    },
}
MEETING = {
    "name": "plan_meeting",
    "parameters": {
        "type": "OBJECT",
        "properties": {"guests": {"type": "ARRAY", "items": {"type": "STRING"}}, "topic": {"type": "STRING"}},
        "required": ["guests"],
    },
}
NOW = {"name": "now", "description": "Tells the time."}
RECIPES = {
    "type": "ARRAY",
    "items": {
        "type": "OBJECT",
        "properties": {"name": {"type": "STRING"}},
        "required": ["name"],
        "property_ordering": ["name"],
    },
}


def asked(contents: Any, model: str = "gemini-2.5-flash", **config: Any) -> dict[str, Any]:
    return {"model": model, "contents": contents, **({"config": config} if config else {})}


def content(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def call(name: str, signature: bytes | None = None, **args: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"function_call": {"name": name, "args": args}}
    return made if signature is None else {**made, "thought_signature": signature}


def result(name: str, **response: Any) -> dict[str, Any]:
    return {"function_response": {"name": name, "response": response}}


def tell_weather(place: str) -> str:
    """Tells the weather of a place."""
    return f"Rain in {place}."


def functions(*declarations: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"function_declarations": list(declarations)}]


QUESTION = content("user", "Make it cosy.")
DOCUMENTED: dict[str, dict[str, Any]] = {
    "Text generation": asked("How does it work?"),
    "Text generation: instructions": asked("Hello there", system_instruction="You are a cat.", temperature=0.1),
    "Text generation: a chat": asked(
        [content("user", "I have two dogs."), content("model", "Great!"), content("user", "How many paws?")]
    ),
    "Image understanding": asked([content("user", IMAGE, "What is it?")]),
    "Image understanding: parts by themselves": asked([IMAGE, "What is it?"]),
    "Image understanding: an uploaded file": asked(
        [
            content(
                "user",
                {"file_data": {"mime_type": "image/jpeg", "file_uri": "https://example.org/v1beta/files/1"}},
                "What is it?",
            )
        ]
    ),
    "Document processing": asked(
        [content("user", {"inline_data": {"mime_type": "application/pdf", "data": b"%PDF-1.7"}}, "Sum it up.")]
    ),
    "Video understanding": asked(
        [
            content(
                "user",
                {
                    "file_data": {"file_uri": "https://example.org/watch?v=1"},
                    "video_metadata": {"start_offset": "1250s", "end_offset": "1570s"},
                },
                "Sum it up.",
            )
        ]
    ),
    "Audio understanding": asked(
        [content("user", "What is said?", {"inlineData": {"mimeType": "audio/mp3", "data": "SUQz"}})]
    ),
    "Function calling": asked([QUESTION], tools=functions(LIGHTS, MEETING, NOW)),
    "Function calling: with the result": asked(
        [
            QUESTION,
            content("model", call("set_lights", brightness=25)),
            content("user", result("set_lights", result="done")),
        ],
        tools=functions(LIGHTS),
    ),
    "Function calling: in parallel": asked(
        [
            QUESTION,
            content("model", call("set_lights", brightness=25), call("now")),
            content("user", result("set_lights", result="done"), result("now", output="noon")),
        ],
        tools=functions(LIGHTS, NOW),
    ),
    "Function calling: forced": asked(
        [QUESTION],
        tools=functions(LIGHTS),
        tool_config={"function_calling_config": {"mode": "ANY", "allowed_function_names": ["set_lights"]}},
    ),
    "Function calling: automatic": asked("What is the weather?", tools=[tell_weather]),
    "Thought signatures": asked(
        [
            QUESTION,
            content("model", call("set_lights", b"\x01\x02", brightness=25), call("now")),
            content("user", result("set_lights", result="done"), result("now", output="noon")),
            content("model", call("now", b"\x03")),
            content("user", result("now", output="noon")),
        ],
        model="gemini-3-pro-preview",
        tools=functions(LIGHTS, NOW),
        thinking_config={"thinking_level": "low"},
    ),
    "Thinking: a budget": asked("Why?", thinking_config={"thinking_budget": 1024}),
    "Thinking: none": asked("Why?", thinking_config={"thinking_budget": 0}),
    "Thinking: as much as it likes, with summaries": asked(
        "Why?", model="gemini-2.5-pro", thinking_config={"thinking_budget": -1, "include_thoughts": True}
    ),
    "Structured output": asked("Some recipes?", response_mime_type="application/json", response_schema=RECIPES),
    "Structured output: one of several words": asked(
        "What is an oboe?",
        response_mime_type="text/x.enum",
        response_schema={"type": "STRING", "enum": ["Percussion", "String", "Woodwind"]},
    ),
    "Structured output: JSON Schema": asked(
        "A recipe?",
        response_mime_type="application/json",
        response_json_schema={"type": "object", "properties": {"name": {"type": ["string", "null"]}}, "$defs": {}},
    ),
    "Structured output: with tools": asked(
        "Who won?",
        model="gemini-3-pro-preview",
        tools=[{"google_search": {}}, {"url_context": {}}],
        response_mime_type="application/json",
        response_json_schema={"type": "object", "properties": {"winner": {"type": "string"}}},
    ),
    "Grounding with Google Search": asked("Who won?", tools=[{"google_search": {}}]),
    "Code execution": asked("Sum of the first 50 primes?", tools=[{"code_execution": {}}]),
    "Code execution: sent back": asked(
        [
            content("user", "Sum of primes?"),
            content(
                "model",
                {"executable_code": {"language": "PYTHON", "code": "print(5)"}},
                {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "5"}},
                "It is 5.",
            ),
            content("user", "And of 100?"),
        ],
        tools=[{"code_execution": {}}],
    ),
    "Safety settings": asked(
        "Hm?",
        safety_settings=[
            {"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_LOW_AND_ABOVE"},
            {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"},
        ],
    ),
    "Context caching": asked(
        "What happens in it?", model="models/gemini-2.0-flash-001", cached_content="cachedContents/abc"
    ),
    "Image generation": asked(
        ["A picture of a cat.", "In oil."],
        model="gemini-2.5-flash-image",
        response_modalities=["TEXT", "IMAGE"],
        image_config={"aspect_ratio": "16:9"},
    ),
    "Generating content": asked(
        [{"parts": [{"text": "A tale."}]}],
        stop_sequences=["Title"],
        max_output_tokens=800,
        top_p=0.8,
        top_k=10,
        candidate_count=1,
        seed=5,
        presence_penalty=0.0,
        frequency_penalty=0.0,
    ),
}


def made_by_the_sdk() -> dict[str, dict[str, Any]]:
    from google.genai import types

    question = types.UserContent(parts=[types.Part.from_text(text="Make it cosy.")])
    called = types.Part.from_function_call(name="now", args={})
    answered = types.Part.from_function_response(name="now", response={"output": "noon"})
    picture = types.Part.from_bytes(data=base64.b64decode(PIXEL), mime_type="image/png")
    sound = types.File(uri="https://example.org/v1beta/files/1", mime_type="audio/mp3")
    return {
        "Image understanding": asked([picture, "What is it?"]),
        "Files API": asked([sound, "What is said?"]),
        "Text generation: one content by itself": asked(question),
        "Function calling: parts in a list": asked([question, called, answered]),
    }
