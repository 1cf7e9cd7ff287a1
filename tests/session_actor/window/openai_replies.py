"""What OpenAI's two APIs answer, as dicts and as what the SDK makes of them."""

from __future__ import annotations

ARGUMENTS = '{"path":  "/ü"}'  # as the model wrote it, spaces and all
CHAT_USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 50,
    "total_tokens": 170,
    "prompt_tokens_details": {"cached_tokens": 100, "audio_tokens": 0, "cache_write_tokens": 7},
    "completion_tokens_details": {"reasoning_tokens": 30},
}
MESSAGE = {
    "role": "assistant",
    "content": "Two things",
    "refusal": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": ARGUMENTS}},
        {"id": "call_2", "type": "function", "function": {"name": "ls", "arguments": '{"pa'}},
        {"id": "call_3", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
    ],
}
CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5.1",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls", "logprobs": None}],
    "usage": CHAT_USAGE,
}
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Hm"}],
    "encrypted_content": "RW5jcnlwdGVk",
}
SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "rain"},
}
RESPONSE_USAGE = {
    "input_tokens": 120,
    "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 7},
    "output_tokens": 50,
    "output_tokens_details": {"reasoning_tokens": 30},
    "total_tokens": 170,
}
ITEMS = [
    REASONING,
    SEARCH,
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "Two ", "annotations": []},
            {"type": "output_text", "text": "", "annotations": []},
            {"type": "refusal", "refusal": "No."},
        ],
    },
    {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": "ls",
        "arguments": ARGUMENTS,
        "status": "completed",
    },
    {
        "id": "fc_2",
        "type": "function_call",
        "call_id": "call_2",
        "name": "ls",
        "arguments": "{}",
        "status": "completed",
    },
    {"id": "ct_1", "type": "custom_tool_call", "call_id": "call_3", "name": "sql", "input": "SELECT 1"},
]
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1.0,
    "model": "gpt-5.1",
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "output": ITEMS,
    "usage": RESPONSE_USAGE,
}
FUTURE = {"type": "output_scent", "scent": "rose"}
"""A part of a message that nobody knows yet."""


def as_chat(reply):
    from openai.types.chat import ChatCompletion

    return ChatCompletion.model_validate(reply)


def as_received_chat(reply):
    """What the SDK's client makes of an answer, whatever it is."""
    from openai.types.chat import ChatCompletion

    return ChatCompletion.construct(**reply)


def as_response(reply):
    from openai.types.responses import Response

    return Response.model_validate(reply)


def as_received_response(reply):
    from openai.types.responses import Response

    return Response.construct(**reply)


def said(**fields):
    """A chat completion whose message has these fields."""
    return {**CHAT, "choices": [{**CHAT["choices"][0], "message": {"role": "assistant", **fields}}]}
