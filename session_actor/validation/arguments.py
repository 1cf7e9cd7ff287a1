"""Which arguments the call of each SDK takes, at the top of a request. Source: the signatures of the SDKs.

What older versions took, or only the beta of a call takes, is taken too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .problems import named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

_EVERYWHERE: Final = frozenset({"extra_body", "extra_headers", "extra_query", "timeout"})
_ARGUMENTS: Final[dict[str, frozenset[str]]] = {
    "anthropic": _EVERYWHERE | frozenset({
        "betas", "billing_policy", "cache_control", "compaction", "container", "context_management", "diagnostics",
        "fallback_credit_token", "fallbacks", "inference_geo", "max_tokens", "mcp_servers", "messages", "metadata",
        "model", "output_config", "output_format", "service_tier", "speed", "stop_sequences", "stream", "system",
        "temperature", "thinking", "thread", "tool_choice", "tools", "top_k", "top_p", "user_profile_id",
        "workspace_id",
    }),
    "openai_chat": _EVERYWHERE | frozenset({
        "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
        "max_tokens", "messages", "metadata", "modalities", "model", "moderation", "n", "parallel_tool_calls",
        "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
        "reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream",
        "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity",
        "web_search_options",
    }),
    "openai_responses": _EVERYWHERE | frozenset({
        "access_programs", "background", "background_options", "context_management", "conversation", "image",
        "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation",
        "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options",
        "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream",
        "stream_options", "temperature", "text", "text_format", "tool_choice", "tools", "top_logprobs", "top_p",
        "truncation", "user", "verbosity",
    }),
    "gemini": frozenset({"model", "contents", "config"}),
}  # fmt: skip


def arguments(problems: Problems, dialect: str, request: Mapping[str, object]) -> None:
    """Check that the SDK's call takes every argument."""
    known = _ARGUMENTS[dialect]
    for key in request:
        if key not in known:
            problems.add("request", "unknown", f"has the argument {named(key)}, which this call does not take")
