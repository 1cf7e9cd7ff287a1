"""Calls of OpenAI's custom tools, whose input is a text of any form."""

from __future__ import annotations

import json

from session_actor.blocks import ToolCall


def custom_call(call_id: str, name: str, given: str, *, is_cut: bool) -> ToolCall:
    """A call as the ledger keeps it: its arguments are a JSON object with one key, `input`.

    `is_cut`: the reply may have broken off in it; then the text stays as it is, which says that it is not whole.
    """
    return ToolCall(call_id, name, given if is_cut else json.dumps({"input": given}, ensure_ascii=False))
