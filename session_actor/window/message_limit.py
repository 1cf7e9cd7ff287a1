"""Messages that are too many for one request: some servers of Chat Completions count them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .fitting import Fit
    from .request_options import Ask


def room_for_messages(ask: Ask, fit: Fit) -> float | None:
    """Which share of the messages the server takes; None: it takes them all. One is the system prompt's."""
    most = ask.profile.most_messages
    if most is None or ask.dialect != "openai_chat":
        return None
    count = len(fit.rendered.done.messages) + len(fit.rendered.messages(fit.sent)) + 1
    return most / count if count > most else None
