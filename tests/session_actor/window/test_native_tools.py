"""Tools that a provider runs itself: offered to its dialect alone, counted, and named where they are left out."""

from __future__ import annotations

import pytest

from session_actor import InvalidArgument, Native, Tool
from session_actor.commands import AddUser, Configure
from session_actor.ledger.notes import TOOL

from ..live import Live
from .asked import TOOLS, Asked, same, settled, shown

SEARCHES = {
    "anthropic": {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
    "openai_responses": {"type": "web_search", "search_context_size": "low"},
    "openai_chat": {"type": "custom", "custom": {"name": "sql", "description": "Runs SQL."}},
    "gemini": {"google_search": {}},
}


def offered(request: dict) -> list[dict]:
    tools = request["config"]["tools"] if request.dialect == "gemini" else request["tools"]
    return [{key: value for key, value in tool.items() if key != "cache_control"} for tool in tools]


def natives(*dialects: str) -> list[Native]:
    return [Native(dialect, None, SEARCHES[dialect]) for dialect in dialects]


def test_a_native_tool_is_offered_verbatim_to_its_dialect_beside_the_others(live, dialect):
    live.do(AddUser("Hello"))
    before = live.ask(dialect)
    frame = live.do(Configure(tools=[*natives(*SEARCHES), *TOOLS]))
    request = live.ask(dialect)
    assert SEARCHES[dialect] in offered(request)
    assert [(note.what, note.frame) for note in request.omitted] == [(TOOL, frame.id)] * 3
    assert '"ls"' in shown(request)
    assert len(offered(request)) == 2
    assert request.input_tokens > before.input_tokens
    live.do(Configure(tools=TOOLS))
    assert same(live.ask(dialect), before)
    assert live.ask(dialect).omitted == ()


def test_native_tools_alone_are_offered_and_stay_when_other_instructions_change(live, dialect):
    live.do(AddUser("Hello"))
    live.do(Configure(tools=natives(dialect)))
    live.do(Configure(system="Be kind."))
    assert offered(live.ask(dialect)) == [SEARCHES[dialect]]
    assert live.ask(dialect).omitted == ()
    recovered = Asked(model=None)
    recovered.state, recovered.records = settled(live.replayed()), live.records
    assert same(recovered.ask(dialect), live.ask(dialect))


def test_what_is_for_one_model_is_not_offered_to_another(live, dialect):
    live.do(AddUser("Hello"))
    live.do(Configure(tools=[Native(dialect, "tiny", SEARCHES[dialect])]))
    assert "tools" not in shown(live.ask(dialect))
    assert offered(live.ask(dialect, model="tiny")) == [SEARCHES[dialect]]


def test_only_the_end_of_all_tools_is_a_cache_breakpoint_and_one_of_the_embedder_s_stays(live):
    live.do(AddUser("Hello"))
    live.do(Configure(tools=natives("anthropic")))
    assert live.ask("anthropic")["tools"][-1]["cache_control"] == {"type": "ephemeral"}
    hour = {"type": "ephemeral", "ttl": "1h"}
    live.do(Configure(tools=[Native("anthropic", None, SEARCHES["anthropic"] | {"cache_control": hour})]))
    assert [tool["cache_control"] for tool in live.ask("anthropic")["tools"]] == [hour]


def test_a_tool_that_is_deferred_is_no_cache_breakpoint(live):
    finder = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    deferred = {"name": "seek", "input_schema": {"type": "object"}, "defer_loading": True}
    live.do(AddUser("Hello"))
    live.do(Configure(tools=[Native("anthropic", None, finder), Native("anthropic", None, deferred)]))
    assert live.ask("anthropic")["tools"] == [{**finder, "cache_control": {"type": "ephemeral"}}, deferred]


@pytest.mark.parametrize(
    ("tool", "what"),
    [
        (Native("telnet", None, {}), "tools[1].dialect"),
        (Native("gemini", None, ["google_search"]), "tools[1].raw"),
        (Native("gemini", 5, {}), "tools[1].model"),
        ({"type": "web_search"}, "tools[1]"),
    ],
)
def test_what_is_no_tool_is_refused_by_its_place(tool, what):
    assert Live().refuses(InvalidArgument, Configure(tools=[Tool("ls"), tool])).what == what
