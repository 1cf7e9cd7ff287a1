"""The names that spans and metrics have: those of OpenTelemetry's GenAI conventions, and the library's own."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.41.0"
"""The version of the semantic conventions that the names are of."""
SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{VERSION}"

# Attributes of spans and metrics.
CONVERSATION_ID: Final = "gen_ai.conversation.id"
OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - a name
ERROR_TYPE: Final = "error.type"

# Of spans alone, and only when content was asked for.
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"

# Metrics.
TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - a name
TOKEN_BOUNDS: Final = tuple(float(4**power) for power in range(14))
OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
DURATION_BOUNDS: Final = tuple(0.01 * 2**power for power in range(14))

# Values.
CHAT: Final = "chat"
PROVIDERS: Final = {
    "anthropic": "anthropic",
    "gemini": "gcp.gemini",
    "openai_chat": "openai",
    "openai_responses": "openai",
}
"""The provider of each dialect: other servers speak these, too, and are called by the one whose dialect it is."""
UNKNOWN: Final = "_OTHER"

# The library's own.
OWN: Final = "session_actor"
OWN_DURATION: Final = "session_actor.operation.duration"
OWN_OPERATION: Final = "session_actor.operation"
OWN_LAG: Final = "session_actor.store.lag"
OWN_LEVEL: Final = "session_actor.level"
OWN_EVENTS: Final = "session_actor.events"
OWN_EVENT: Final = "session_actor.event"
