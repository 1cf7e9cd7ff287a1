"""Definitions of tools: what no provider takes is refused before anything was changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import InvalidArgument, Native, Tool, validate_request
from session_actor.commands import AddUser, BuildRequest, Configure
from session_actor.frames import Instructions
from session_actor.requests import dialect_of
from session_actor.requests.tools import check_names

from .asked import DIALECTS, shown

LONG = "x" * 65


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("read_gauge-1", set(DIALECTS)),
        ("1st", {"anthropic", "openai_chat", "openai_responses"}),
        ("read.gauge", {"gemini"}),
        ("read gauge!", set()),
        ("résumé", set()),
        ("ls\n", set()),
        (LONG, {"anthropic", "gemini"}),
        ("x" * 129, set()),
    ],
)
def test_a_tool_whose_name_a_dialect_refuses_is_named_and_nothing_is_recorded(live, dialect, name, takes):
    live.do(Configure(tools=[Tool("ls"), Tool(name, "Does it.")]))
    live.do(AddUser("Hello"))
    if dialect in takes:
        assert name in shown(live.ask(dialect))
        return
    for _ in range(2):
        refused = live.refuses(InvalidArgument, BuildRequest(dialect))
        assert refused.what == "tools[1].name"
        assert dialect in str(refused)
        assert "[a-zA-Z" in str(refused)
    live.do(Configure(tools=[Tool("ls")]))
    assert live.ask(dialect).model == "small"


@given(
    st.sampled_from(DIALECTS), st.text(st.characters(codec="ascii") | st.sampled_from("é\n"), min_size=1, max_size=140)
)
def test_names_are_refused_exactly_when_the_validator_finds_them_wrong(dialect, name):
    instructions = Instructions(tools=(Tool(name),))
    request = dialect_of(dialect).assemble("m", instructions, [], 1_000)
    wrong = [problem for problem in validate_request(dialect, request) if "tool-name" in problem]
    if wrong:
        with pytest.raises(InvalidArgument, match=r"^tools\[0\]\.name is "):
            check_names(instructions, dialect)
    else:
        check_names(instructions, dialect)


@pytest.mark.parametrize("model", ["gpt-5", "azure/gpt-4.1", "o3", "chatgpt-4o-latest"])
def test_more_tools_than_openai_takes_are_refused_with_their_number(live, model):
    live.do(Configure(tools=[Tool(f"t{number}") for number in range(129)]))
    live.do(AddUser("Hello"))
    refused = live.refuses(InvalidArgument, BuildRequest("openai_chat", model=model))
    assert refused.what == "tools"
    assert "129" in str(refused)
    live.do(Configure(tools=[Tool(f"t{number}") for number in range(128)]))
    assert len(live.ask("openai_chat", model=model)["tools"]) == 128


@pytest.mark.parametrize(
    ("other", "model"),
    [("openai_responses", "gpt-5"), ("anthropic", "claude-sonnet-4-5"), ("gemini", "gemini-2.5-pro")],
)
def test_who_takes_more_tools_gets_them(live, other, model):
    live.do(Configure(tools=[Tool(f"t{number}") for number in range(129)]))
    live.do(AddUser("Hello"))
    assert "t128" in shown(live.ask(other, model=model))


@pytest.mark.parametrize(
    ("own", "raw"),
    [
        ("anthropic", {"type": "bash_20250124", "name": "bash"}),
        ("openai_chat", {"type": "custom", "custom": {"name": "bash"}}),
        ("openai_responses", {"type": "custom", "name": "bash"}),
    ],
)
def test_a_tool_that_is_called_as_one_of_the_providers_own_is_refused_there_alone(live, own, raw):
    live.do(Configure(tools=[Tool("ls"), Tool("bash"), Native(own, None, raw)]))
    live.do(AddUser("Hello"))
    for dialect in DIALECTS:
        if dialect == own:
            assert live.refuses(InvalidArgument, BuildRequest(dialect)).what == "tools[1].name"
        else:
            assert '"bash"' in shown(live.ask(dialect))


@pytest.mark.parametrize("schema", ["object", 5, [], ["type"], True, float("nan")])
def test_a_schema_that_is_no_object_is_refused_by_its_place(live, schema):
    refused = live.refuses(InvalidArgument, Configure(tools=[Tool("ls"), Tool("x", "y", schema)]))
    assert refused.what == "tools[1].schema"
    assert "dict" in str(refused)


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"$float": "nan"}])
def test_a_schema_may_be_an_object_or_none(live, schema):
    frame = live.do(Configure(tools=[Tool("x", "y", schema)]))
    assert frame.in_force.tools[0].schema_value == schema


def test_a_tool_without_a_name_is_refused(live):
    assert live.refuses(InvalidArgument, Configure(tools=[Tool("")])).what == "tools[0].name"


def test_changed_instructions_are_assembled_anew_and_no_request_shares_them(live, dialect):
    live.do(AddUser("Hello"))
    first = live.ask(dialect)
    assert '"ls"' in shown(first)
    first.clear()
    live.do(Configure(tools=[Tool("cat")]))
    for _ in range(2):
        assert '"cat"' in shown(live.ask(dialect))
        assert '"ls"' not in shown(live.ask(dialect))
    live.do(Configure(tools=()))
    assert '"cat"' not in shown(live.ask(dialect))
    other = live.ask(dialect, model="tiny")
    assert other["model"] == "tiny"
    assert other.max_output_tokens == 1_000
