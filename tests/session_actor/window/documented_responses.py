"""Requests with the structure of the examples in OpenAI's documentation of Responses."""

from __future__ import annotations

from typing import Any

from .breaking import PIXEL
from .documented_chat import STEPS

LOOK_UP = {
    "type": "function",
    "name": "tell_weather",
    "description": "Tells the weather of a place.",
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
        "additionalProperties": False,
    },
    "strict": True,
}


def asked(given: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5", "input": given, **more}


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def part(kind: str, **inner: Any) -> dict[str, Any]:
    return {"type": f"input_{kind}", **inner}


def answer(own_id: str, words: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "id": own_id, "status": "completed", "role": "assistant", "content": content}


QUESTION = said("user", "What is the weather in Bergen?")
WORDS = part("text", text="What is it?")
THOUGHT = {"type": "reasoning", "id": "rs_6888f6d0606c", "summary": [{"type": "summary_text", "text": "They ask."}]}
CALL = {
    "type": "function_call",
    "id": "fc_6888f7b8",
    "call_id": "call_12345xyz",
    "name": "tell_weather",
    "arguments": '{"place": "Bergen"}',
    "status": "completed",
}
RESULT = {"type": "function_call_output", "call_id": "call_12345xyz", "output": "14"}
HIDDEN = {"store": False, "include": ["reasoning.encrypted_content"]}
MCP = {"type": "mcp", "server_label": "dice", "server_url": "https://example.org/sse", "require_approval": "always"}
WISH = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "dice", "name": "roll", "arguments": "{}"}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: NUMBER"}
DOCUMENTED: dict[str, dict[str, Any]] = {
    "Text generation": asked("Write a sentence about a unicorn."),
    "Text generation: instructions": asked(
        "Are semicolons needed?", instructions="Talk like a pirate.", reasoning={"effort": "low"}
    ),
    "Text generation: roles": asked([said("developer", "Talk like a pirate."), said("user", "Are they?")]),
    "Text generation: a prompt that is kept": {
        "prompt": {"id": "pmpt_abc123", "version": "2", "variables": {"customer_name": "Ada"}}
    },
    "Images and vision": asked(
        [
            said(
                "user",
                [
                    WORDS,
                    part("image", image_url="https://example.org/a.jpg", detail="auto"),
                    part("image", image_url=f"data:image/png;base64,{PIXEL}", detail="low"),
                ],
            )
        ]
    ),
    "File inputs": asked(
        [
            said(
                "user",
                [
                    part("file", file_url="https://example.org/a.pdf"),
                    part("file", file_id="file-6F2"),
                    part("file", filename="b.pdf", file_data="data:application/pdf;base64,JVBERi0="),
                    WORDS,
                ],
            )
        ]
    ),
    "Function calling": asked([QUESTION], tools=[LOOK_UP]),
    "Function calling: with the result": asked(
        [QUESTION, THOUGHT, CALL, RESULT], tools=[LOOK_UP], instructions="Be brief."
    ),
    "Function calling: an image as the result": asked(
        [QUESTION, CALL, {**RESULT, "output": [part("image", image_url="https://example.org/map.png")]}],
        tools=[LOOK_UP],
    ),
    "Function calling: allowed tools": asked(
        [QUESTION],
        tools=[LOOK_UP, {"type": "image_generation"}],
        tool_choice={
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "tell_weather"}, {"type": "image_generation"}],
        },
    ),
    "Function calling: custom tools": asked(
        [
            said("user", "Add them."),
            {"type": "custom_tool_call", "id": "ctc_6890e972", "call_id": "call_c", "name": "add", "input": "4 + 4"},
            {"type": "custom_tool_call_output", "call_id": "call_c", "output": "8"},
        ],
        tools=[{"type": "custom", "name": "add", "description": "Adds.", "format": GRAMMAR}],
    ),
    "Structured outputs": asked(
        [said("system", "You teach mathematics."), said("user", "Solve 8x + 7 = -23")],
        text={"format": {"type": "json_schema", "name": "solution", "schema": STEPS, "strict": True}},
    ),
    "Structured outputs: JSON mode": asked(
        [said("user", "Who won? Answer in JSON.")], text={"format": {"type": "json_object"}}
    ),
    "Conversation state: by hand": asked(
        [said("user", "Knock knock."), said("assistant", "Who is there?"), said("user", "Orange.")]
    ),
    "Conversation state: by the answer before": asked("Tell it again.", previous_response_id="resp_1", store=True),
    "Conversation state: a conversation": asked([said("user", "What are the five?")], conversation="conv_689667905b"),
    "Conversation state: kept results": asked([RESULT], previous_response_id="resp_1", tools=[LOOK_UP]),
    "Conversation state: kept items": asked([{"type": "item_reference", "id": "msg_1"}, QUESTION]),
    "Reasoning: nothing is kept": asked(
        [QUESTION, {**THOUGHT, "encrypted_content": "gAAAAABo"}, CALL, RESULT],
        **HIDDEN,
        tools=[LOOK_UP],
        max_output_tokens=300,
    ),
    "Web search": asked(
        "Good news?",
        tools=[{"type": "web_search", "filters": {"allowed_domains": ["example.org"]}}],
        include=["web_search_call.action.sources"],
        tool_choice="required",
    ),
    "Web search: sent back": asked(
        [
            QUESTION,
            {
                "type": "web_search_call",
                "id": "ws_67c9fa05",
                "status": "completed",
                "action": {"type": "search", "query": "x"},
            },
            answer("msg_67c9fa07", "Rain."),
            said("user", "And tomorrow?"),
        ]
    ),
    "File search": asked(
        "What is deep research?",
        tools=[{"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 2}],
        include=["file_search_call.results"],
    ),
    "Code interpreter": asked(
        "Solve it.", tools=[{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file-1"]}}]
    ),
    "MCP and connectors: an approval": asked(
        [QUESTION, WISH, {"type": "mcp_approval_response", "approve": True, "approval_request_id": "mcpr_1"}],
        tools=[MCP],
    ),
    "MCP and connectors: a connector": asked(
        "What is on today?",
        tools=[
            {
                "type": "mcp",
                "server_label": "calendar",
                "connector_id": "connector_googlecalendar",
                "authorization": "x",
            }
        ],
    ),
    "Local shell": asked(
        [
            said("user", "List files."),
            {
                "type": "local_shell_call",
                "id": "lsh_1",
                "call_id": "call_s",
                "status": "completed",
                "action": {"type": "exec", "command": ["ls"], "env": {}},
            },
            {"type": "local_shell_call_output", "id": "call_s", "output": "a.txt"},
        ],
        tools=[{"type": "local_shell"}],
    ),
    "Background mode": asked("Write a novel.", background=True, stream=True),
    "Compaction": asked([QUESTION, answer("msg_1", "Rain."), said("user", "So?"), {"type": "compaction_trigger"}]),
    "Create a model response": {
        **asked("Tell a tale.", temperature=1, top_p=1.0, truncation="disabled", parallel_tool_calls=True, metadata={}),
        "max_output_tokens": 16,
        "service_tier": "flex",
    },
}
