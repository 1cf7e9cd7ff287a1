"""Which dialect a reply is of, by its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.errors import InvalidArgument

if TYPE_CHECKING:
    from session_actor.dialects import Dialect

    from .fields import Fields


def dialect_of(reply: Fields) -> Dialect:
    """The dialect of a reply. Raises InvalidArgument for what is no reply, and says what it is if that can be told."""
    if reply.has("candidates", "prompt_feedback", "usage_metadata"):
        return "gemini"
    kind, name = reply.get("object"), reply.get("type")
    if kind == "chat.completion.chunk":
        raise _no_reply(reply, "a chunk of a stream: gather them, as the SDK's own streaming helper does")
    if reply.has("choices"):
        return "openai_chat"
    if kind == "response" or (reply.has("output") and reply.has("status")):
        return "openai_responses"
    if name == "error" or (reply.has("error") and not reply.has("content")):
        raise _no_reply(reply, "an error of the provider")
    if reply.has("content") and (name == "message" or reply.has("stop_reason")):
        return "anthropic"
    if reply.has("content") and reply.get("role") == "assistant":
        raise _no_reply(reply, "only the message of a reply: give the whole reply")
    if isinstance(name, str) and name.startswith(("response.", "message_", "content_block_")):
        raise _no_reply(reply, "an event of a stream: give what the stream has accumulated")
    raise _no_reply(reply, "of no form that is known")


def _no_reply(reply: Fields, what: str) -> InvalidArgument:
    return InvalidArgument(reply.where, f"is no reply of anthropic, openai or google-genai: it is {what}")
