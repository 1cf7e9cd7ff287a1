"""OpenAI: ids of items, what is kept, words that must be there, choices of tools, and the provider's own tools."""

from __future__ import annotations

import pytest

from .bases import BASES
from .breaking import Pair, all_of, check_pair, drop, insert, put
from .test_validation_openai_chat import call as chat_call
from .test_validation_openai_chat import result as chat_result
from .test_validation_openai_responses import ASK, call, reasoning, result

CHAT, RESPONSES = "openai_chat", "openai_responses"
KEPT = {"type": "item_reference", "id": "msg_1"}
CUSTOM = {"type": "custom_tool_call", "call_id": "c", "name": "clock", "input": "x"}
ANSWER = {"type": "custom_tool_call_output", "call_id": "c", "output": "y"}
OBJECT = put("text", value={"format": {"type": "json_object"}})
LONG = "x" * 10_485_761


def beginning(kind, bad, good, *items):
    """The id of an item, in a short conversation."""
    change, other = (put("input", value=[ASK, {**items[0], "id": own}, *items[1:]]) for own in (bad, good))
    return Pair(RESPONSES, f"the id {bad!r} of a {kind}", "item-id", "input[1].id", change, other)


def choice(dialect, sentence, rule, path, bad, good):
    return Pair(dialect, sentence, rule, path, put("tool_choice", value=bad), put("tool_choice", value=good))


def own(sentence, rule, path, bad, good):
    """A tool of the provider's own."""
    return Pair(RESPONSES, sentence, rule, path, insert("tools", 3, value=bad), insert("tools", 3, value=good))


PAIRS = [
    beginning("call", "call_1", "fc_1", call("c"), result("c")),
    beginning("call", "ctc_1", "fc-1", call("c"), result("c")),
    beginning("call of free text", "fc_1", "ctc_1", CUSTOM, ANSWER),
    beginning("reasoning", "item_1", "rs_68af", reasoning("rs_1"), call("c"), result("c")),
    beginning("message", "chatcmpl-1", "msg_1", {"role": "assistant", "content": "Yes."}, ASK),
    beginning("message", "msg_a.b", "msg_a-b", {"role": "assistant", "content": "Yes."}, ASK),
    beginning("message", "msg_" + "x" * 61, "msg_" + "x" * 60, {"role": "assistant", "content": "Yes."}, ASK),
    Pair(
        RESPONSES,
        "a kept item where nothing is kept",
        "conflict",
        "input[0]",
        put("input", value=[KEPT, ASK]),
        all_of(put("input", value=[KEPT, ASK]), drop("store")),
    ),
    Pair(
        RESPONSES,
        "a kept item of no id",
        "missing",
        "input[0].id",
        all_of(drop("store"), put("input", value=[{"type": "item_reference"}, ASK])),
        all_of(put("previous_response_id", value="resp_1"), put("input", value=[KEPT, ASK])),
    ),
    Pair(
        RESPONSES,
        "a wish for a compaction in between",
        "last",
        "input[1]",
        put("input", value=[ASK, {"type": "compaction_trigger"}, {"role": "developer", "content": "x"}, ASK]),
        put("input", value=[ASK, {"type": "compaction_trigger"}]),
    ),
    Pair(
        RESPONSES,
        "JSON that nobody asks for",
        "missing",
        "input",
        OBJECT,
        all_of(OBJECT, put("instructions", value="Answer in JSON.")),
    ),
    Pair(
        RESPONSES,
        "JSON that a text does not ask for",
        "missing",
        "input",
        all_of(OBJECT, put("input", value="Where is it?")),
        all_of(OBJECT, put("input", value="Where is it? As json.")),
    ),
    Pair(
        RESPONSES,
        "JSON in a conversation that is all here",
        "missing",
        "input",
        OBJECT,
        all_of(OBJECT, put("previous_response_id", value="resp_1")),
    ),
    *(
        Pair(
            CHAT,
            f"JSON that nobody asks for {place}",
            "missing",
            "messages",
            put("response_format", value={"type": "json_object"}),
            all_of(put("response_format", value={"type": "json_object"}), word),
        )
        for place, word in (
            ("in the instructions", put("messages", 0, "content", value="Answer in JSON")),
            ("in a part", put("messages", 1, "content", 0, "text", value="json please")),
            ("in a result", put("messages", 8, "content", value='{"format": "Json"}')),
            ("in arguments", put("messages", 7, "tool_calls", 0, "function", "arguments", value='{"as": "JSON"}')),
        )
    ),
    Pair(
        CHAT,
        "more calls than are taken",
        "limit",
        "messages[2].tool_calls",
        *(
            all_of(
                put("messages", 2, "tool_calls", value=[chat_call(f"c{number}") for number in range(count)]),
                drop("messages", 4),
                drop("messages", 3),
                *(insert("messages", 3, value=chat_result(f"c{number}")) for number in range(count)),
            )
            for count in (129, 128)
        ),
    ),
    Pair(
        CHAT,
        "a message that is too long",
        "limit",
        "messages[6].content",
        put("messages", 6, "content", value=LONG),
        put("messages", 6, "content", value=LONG[1:]),
    ),
    Pair(
        RESPONSES,
        "a result that is too long",
        "limit",
        "input[12].output",
        put("input", 12, "output", value=LONG),
        put("input", 12, "output", value=LONG[1:]),
    ),
    choice(
        CHAT,
        "a choice among tools that are not there",
        "unknown",
        "tool_choice.allowed_tools.tools[1].function.name",
        *(
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": name}} for name in ("clock", other)],
                },
            }
            for other in ("oven", "weather")
        ),
    ),
    choice(
        RESPONSES,
        "a choice among tools that are not there",
        "unknown",
        "tool_choice.tools[1].name",
        *(
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "web_search"}, {"type": "function", "name": name}],
            }
            for name in ("oven", "clock")
        ),
    ),
    choice(
        RESPONSES,
        "a choice of no mode",
        "unknown",
        "tool_choice.mode",
        {"type": "allowed_tools", "mode": "any", "tools": [{"type": "web_search"}]},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]},
    ),
    choice(
        RESPONSES,
        "a choice of a custom tool that is not there",
        "unknown",
        "tool_choice.name",
        {"type": "custom", "name": "oven"},
        {"type": "custom", "name": "clock"},
    ),
    Pair(
        CHAT,
        "a choice of no functions",
        "no-tools",
        "function_call",
        put("function_call", value="auto"),
        all_of(put("function_call", value={"name": "f"}), put("functions", value=[{"name": "f"}])),
    ),
    Pair(
        CHAT,
        "two functions of one name",
        "duplicate-tool",
        "functions[1]",
        put("functions", value=[{"name": "f"}, {"name": "f"}]),
        put("functions", value=[{"name": "f"}, {"name": "g"}]),
    ),
    *(
        Pair(
            RESPONSES,
            f"the reasoning of {model}",
            "conflict",
            "include[0]",
            all_of(put("model", value=model), put("input", value="x")),
            all_of(put("model", value=other), put("input", value="x")),
        )
        for model, other in (
            ("gpt-4o", "o3"),
            ("gpt-4.1-mini-2025-04-14", "gpt-5-mini"),
            ("openai/gpt-4o-mini", "openai/gpt-5.1"),
            ("gpt-5-chat-latest", "gpt-5.1-chat-latest"),
        )
    ),
    own(
        "a search in no store",
        "missing",
        "tools[3].vector_store_ids",
        {"type": "file_search"},
        {"type": "file_search", "vector_store_ids": ["vs_1"]},
    ),
    own(
        "a search in an empty list of stores",
        "empty",
        "tools[3].vector_store_ids",
        {"type": "file_search", "vector_store_ids": []},
        {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 5},
    ),
    own(
        "code that runs nowhere",
        "missing",
        "tools[3].container",
        {"type": "code_interpreter"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ),
    own(
        "a server at no address",
        "source",
        "tools[3]",
        {"type": "mcp", "server_label": "notes"},
        {"type": "mcp", "server_label": "notes", "connector_id": "connector_gmail"},
    ),
    Pair(
        RESPONSES,
        "neither a model nor a prompt that has one",
        "missing",
        "model",
        all_of(drop("model"), put("input", value="x")),
        all_of(drop("model"), drop("input"), put("prompt", value={"id": "pmpt_1"})),
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.dialect}: {pair.sentence}")
def test_it_is_refused_and_its_neighbour_is_not(pair):
    check_pair(BASES[pair.dialect], pair)
