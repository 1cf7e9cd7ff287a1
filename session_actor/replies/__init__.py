"""Replies: what a provider answered, in any dialect, as one turn."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from session_actor.dialects import DIALECTS
from session_actor.errors import InvalidArgument, ValueNotStorable
from session_actor.given.plain import is_a, items_of, plain_str, shown

if TYPE_CHECKING:
    from session_actor.dialects import Dialect
    from session_actor.frames import Turn


__all__ = ["turn_of"]


def turn_of(reply: object, dialect: Dialect | None = None) -> Turn:
    """The assistant turn that a provider's reply is, complete and as it stays: what `add_response` adds.

    `reply`: an object of the SDK of anthropic, openai or google-genai, or the same as a dict (its `model_dump()`, or
    the JSON of the API); of a stream what its helper has accumulated (`stream.get_final_message()`,
    `stream.current_message_snapshot`, `stream.get_final_response()` …), also when it was cut off; of google-genai,
    whose streams accumulate nothing, also the list of all chunks so far. `dialect`: its form; None: as it looks.

    - `stop_reason` and `model` are the provider's words; a reply that was cut off has no stop reason.
    - `usage` counts alike for all: what came from a cache or was written to one is part of `input_tokens`, reasoning is
      part of `output_tokens`; `usage.raw` is the provider's own report.
    - The arguments of a call are the JSON text that the model wrote; where the SDK gives a dict, that as JSON. Of a
      call with which a reply of anthropic broke off (cut off, `max_tokens`, `refusal`), the closing brace is left out:
      it must not pass for complete.
    - Text, thinking with its signature and calls become blocks of those kinds, any other block a `Native`, verbatim.

    Raises InvalidArgument, which names the place, for what is no complete reply of that form (an error, an event, a
    chunk), and ValueNotStorable for a block that JSON cannot hold exactly.
    """
    if dialect is not None and (not is_a(dialect, str) or plain_str(dialect) not in DIALECTS):
        raise InvalidArgument("dialect", f"must be one of {', '.join(DIALECTS)}, or None, got {shown(dialect)}")
    try:
        return _turn(reply, dialect)
    except (InvalidArgument, ValueNotStorable):
        raise
    except Exception as error:  # noqa: BLE001 - a reply may be of a caller's own class, and that may raise anything
        raise InvalidArgument("reply", f"cannot be read: it raised {type(error).__name__}") from None


def _turn(reply: object, dialect: Dialect | None) -> Turn:
    from .fields import fields_of
    from .shapes import dialect_of

    if is_a(reply, (list, tuple)):
        from .gemini import gathered

        chunks = [fields_of(chunk, f"reply[{place}]") for place, chunk in enumerate(items_of(reply))]
        found = {dialect_of(chunk) for chunk in chunks}
        if found != {"gemini"} or dialect not in (None, "gemini"):
            raise InvalidArgument(
                "reply", "a list must hold the chunks of one stream of google-genai, and nothing else"
            )
        return gathered(chunks)
    fields = fields_of(reply, "reply")
    seen = dialect_of(fields)
    if dialect is not None and seen != dialect:
        raise InvalidArgument("reply", f"is not of the dialect {dialect}: it looks like {seen}")
    reader: Any = import_module(f".{seen}", __name__)  # only the one that is needed
    return reader.read(fields)  # type: ignore[no-any-return]  # each module's `read` gives a turn
