"""Costs: what the parts of a request are counted for."""

import gzip
import json
import os
import struct
import zlib
from base64 import b64encode
from itertools import pairwise
from pathlib import Path
from statistics import mean

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import (
    CallRef,
    Document,
    Image,
    Instructions,
    InvalidArgument,
    Native,
    Text,
    Thinking,
    Tool,
    ToolCall,
    estimate_tokens,
    profile_of,
)
from session_actor.budget.costs import Fixed, cost_of, cost_of_extra, cost_of_instructions
from session_actor.ledger.entries import AssistantEntry, ResultsEntry, ShownResult, Target, UserEntry
from session_actor.tokens.images import image_tokens, page_tokens, pages_of, unknown_image_tokens
from session_actor.tokens.overhead import OVERHEADS

MODELS = {
    "openai_chat": "gpt-4o",
    "openai_responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
}
CLAUDE = profile_of("claude-sonnet-4-5")
SHARED = Path(__file__).parents[4] / "shared"
CORPUS = Path(os.environ.get("TOKEN_CORPUS", SHARED / "tokens" / "corpus_train.jsonl.gz"))
REAL = Path(os.environ.get("REAL_SESSION", SHARED / "transcripts" / "pi_large_session.jsonl"))


def target(dialect="anthropic"):
    model = MODELS[dialect]
    return Target(dialect=dialect, model=model, family=profile_of(model).family, result_cap_tokens=25_000)


def cost(*entries, dialect="anthropic"):
    return cost_of(entries, target(dialect), profile_of(MODELS[dialect]))


def user(*blocks):
    return UserEntry(blocks=tuple(Text(block) if isinstance(block, str) else block for block in blocks))


def said(*blocks):
    return AssistantEntry(blocks=tuple(Text(block) if isinstance(block, str) else block for block in blocks))


def results(*texts):
    shown = [ShownResult(CallRef(1, n), f"call_1_{n}", "read", (Text(text),)) for n, text in enumerate(texts)]
    return ResultsEntry(results=tuple(shown))


def png(width, height, size_bytes=0):
    """A PNG of that many pixels and bytes; its picture is noise that no decoder would like."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", bytes(size_bytes)) + chunk(b"IEND", b"")


def image(width=1_000, height=1_000, size_bytes=0):
    return Image(data=png(width, height, size_bytes), media_type="image/png")


def pdf(pages):
    leaves = b"".join(b"%d 0 obj\n<< /Type /Page /Parent 2 0 R >>\nendobj\n" % (3 + n) for n in range(pages))
    kids = b" ".join(b"%d 0 R" % (3 + n) for n in range(pages))
    tree = b"2 0 obj\n<< /Type /Pages /Count %d /Kids [%s] >>\nendobj\n" % (pages, kids)
    return b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n" + tree + leaves + b"%%EOF\n"


@pytest.mark.parametrize("dialect", sorted(MODELS))
def test_a_text_costs_its_tokens_and_what_stands_around_a_message(dialect):
    family = profile_of(MODELS[dialect]).family
    text = "How long is the Nile, and why is that contested?"
    assert cost(user(text), dialect=dialect) == estimate_tokens(text, family) + OVERHEADS[dialect].message


def test_nothing_costs_nothing():
    assert cost() == 0


@pytest.mark.parametrize("dialect", sorted(MODELS))
def test_entries_cost_the_sum_of_each(dialect):
    entries = [
        user("Look at this", image()),
        said("I read two files.", ToolCall("a", "read", '{"path": "a.py"}'), ToolCall("b", "read", '{"path": "b.py"}')),
        results("def a(): ...", "x" * 500),
        user("And now?"),
    ]
    assert cost(*entries, dialect=dialect) == sum(cost(entry, dialect=dialect) for entry in entries)


def test_each_call_and_each_result_costs_something_besides_its_text():
    one, two = said(ToolCall("a", "ls")), said(ToolCall("a", "ls"), ToolCall("b", "ls"))
    assert cost(two) - cost(one) >= OVERHEADS["anthropic"].call
    assert cost(results("ok", "ok")) - cost(results("ok")) >= OVERHEADS["anthropic"].result


def test_arguments_are_counted_as_the_model_gets_them():
    code = 'print("a")\n\tif "b":\n\t\treturn "c"\n' * 50
    call = said(ToolCall("a", "write", json.dumps({"content": code})))
    assert cost(call, dialect="openai_chat") > 1.1 * estimate_tokens(code, "o200k")
    assert cost(call) < 1.1 * estimate_tokens(code, "claude3")


@pytest.mark.parametrize("arguments", ['{"path": "a', "[1, 2]", "", "NaN", '{"a": {"b": [1, null, "é"]}}', "[" * 5_000])
def test_any_arguments_can_be_counted(arguments):
    assert cost(said(ToolCall("a", "run", arguments))) >= OVERHEADS["anthropic"].call


@given(st.text(max_size=200), st.text(max_size=200))
def test_more_text_never_costs_nothing_and_never_raises(first, second):
    assert cost(user(first, second)) >= cost(user(first)) >= OVERHEADS["anthropic"].message


def test_45_images_cost_45_times_one():
    message = OVERHEADS["anthropic"].message
    assert cost(user(*[image()] * 45)) - message == 45 * (cost(user(image())) - message)


@pytest.mark.parametrize("dialect", sorted(MODELS))
def test_an_image_costs_its_pixels_and_not_its_bytes(dialect):
    rule = profile_of(MODELS[dialect]).image_rule
    expected = image_tokens(1_000, 800, rule) + OVERHEADS[dialect].message
    assert cost(user(image(1_000, 800)), dialect=dialect) == expected
    assert cost(user(image(1_000, 800, 3_000_000)), dialect=dialect) == expected


def test_a_data_uri_of_3_mb_costs_its_pixels():
    uri = "data:image/png;base64," + b64encode(png(640, 480, 3_000_000)).decode()
    assert cost(user(Image(url=uri))) == cost(user(image(640, 480)))


@pytest.mark.parametrize(
    "unknown",
    [
        Image(url="https://example.org/a.png"),
        Image(file_id="file-1", dialect="anthropic"),
        Image(data=b"no picture", media_type="image/png"),
        Image(url="data:image/png;base64,????"),
    ],
)
def test_an_image_whose_size_is_not_known_costs_a_careful_figure(unknown):
    assert cost(user(unknown)) == unknown_image_tokens("claude") + OVERHEADS["anthropic"].message


def test_an_image_in_a_result_costs_as_much_as_one_of_the_user():
    shown = ShownResult(CallRef(1, 0), "c", "shot", (image(),))
    without = ShownResult(CallRef(1, 0), "c", "shot", ())
    assert cost(ResultsEntry((shown,))) - cost(ResultsEntry((without,))) == image_tokens(1_000, 1_000, "claude")


def test_a_pdf_costs_its_pages():
    document = Document(data=pdf(7), media_type="application/pdf")
    assert cost(user(document)) == 7 * page_tokens("claude") + OVERHEADS["anthropic"].message


def test_a_document_that_cannot_be_looked_into_costs_pages_by_its_bytes():
    unknown = Document(data=bytes(100_000), media_type="application/pdf")
    named = Document(file_id="file-1", dialect="anthropic")
    assert cost(user(unknown)) == pages_of(100_000) * page_tokens("claude") + OVERHEADS["anthropic"].message
    assert cost(user(named)) == pages_of(None) * page_tokens("claude") + OVERHEADS["anthropic"].message


def test_a_document_of_plain_text_costs_its_text():
    text = "A line of prose that stands in a file.\n" * 100
    document = Document(data=text.encode(), media_type="text/plain; charset=utf-8")
    assert cost(user(document)) == cost(user(text))


def test_thinking_costs_all_that_was_thought_even_when_its_text_is_a_summary():
    short, long = Thinking("I compare both.", "c2ln"), Thinking("I compare both.", "A" * 16_000)
    assert cost(said(short)) == estimate_tokens("I compare both.", "claude3") + OVERHEADS["anthropic"].message
    assert 2_500 <= cost(said(long)) <= 4_500


def test_encrypted_reasoning_costs_what_it_holds_and_not_its_base64():
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "A" * 16_000}
    native = Native("openai_responses", "gpt-5", item)
    spent = cost(said(native), dialect="openai_responses")
    assert 3_000 <= spent <= 3_100


def test_a_native_block_costs_its_json_text():
    value = {"type": "server_tool_use", "name": "web_search", "input": {"query": "length of the Nile"}}
    native = Native("anthropic", "claude-sonnet-4-5", value)
    kept = Native("anthropic", "claude-sonnet-4-5", msgspec.Raw(json.dumps(value).encode()))
    text = json.dumps(value, separators=(",", ":"))
    assert cost(said(native)) == estimate_tokens(text, "claude3") + OVERHEADS["anthropic"].message
    assert cost(said(kept)) == cost(said(native))


@pytest.mark.parametrize(
    "source",
    [
        {"type": "base64", "media_type": "image/png", "data": b64encode(png(1_000, 1_000, 3_000_000)).decode()},
        {"inline_data": {"mime_type": "image/png", "data": png(1_000, 1_000, 3_000_000)}},
        {"image_url": {"url": "data:image/png;base64," + b64encode(png(1_000, 1_000, 3_000_000)).decode()}},
    ],
    ids=["anthropic", "gemini", "openai"],
)
def test_an_image_inside_a_native_block_costs_its_pixels(source):
    native = Native("anthropic", None, {"content": [source]})
    assert 1_296 <= cost(said(native)) <= 1_296 + 80


def test_a_file_costs_what_it_is_under_whatever_key_it_stands():
    png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 1_024, 1_024) + os.urandom(500_000)
    made = {"type": "image_generation_call", "id": "ig_1", "status": "completed"}

    def costs(data: bytes | None, key: str = "result") -> int:
        value = made if data is None else {**made, key: b64encode(data).decode()}
        block = Native("openai_responses", "gpt-5", value)
        return cost(AssistantEntry((block,)), dialect="openai_responses")

    image = image_tokens(1_024, 1_024, profile_of("gpt-5").image_rule)
    assert image <= costs(png) - costs(None) < image + 20
    assert abs(costs(png, "other") - costs(png)) < 5
    assert costs(b"%PDF-1.7\n" + os.urandom(500_000)) < 100_000
    assert costs(os.urandom(500_000)) > 100_000, "nobody knows what that is"


async def test_a_generated_image_drives_nothing_out_of_the_request(session):
    png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 1_024, 1_024) + os.urandom(1_500_000)
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": b64encode(png).decode()}
    await session.add_user("Draw a cat.")
    await session.add_response({"object": "response", "status": "completed", "model": "gpt-5", "output": [item]})
    await session.add_user("And a dog.")
    request = await session.build_request("openai_responses", model="gpt-5")
    assert [one["type"] for one in request["input"]] == ["message", "image_generation_call", "message"]


def test_a_native_blocks_own_data_that_is_text_is_counted_as_text():
    text = "All of this is read by the model. " * 30
    native = Native("anthropic", None, {"source": {"type": "text", "media_type": "text/plain", "data": text}})
    assert cost(said(native)) >= estimate_tokens(text, "claude3")


def test_instructions_cost_their_system_prompt_and_their_tools():
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "Where it is."}}}
    tool = Tool("read", "Read a file.", schema)
    instructions = Instructions(system="You are a careful assistant.", tools=(tool,))
    fixed = cost_of_instructions(instructions, target(), CLAUDE)
    assert fixed.system == estimate_tokens("You are a careful assistant.", "claude3") + 4
    assert fixed.tools > CLAUDE.tools_prompt + 30
    assert fixed.total == fixed.system + fixed.tools + fixed.request


def test_no_instructions_cost_only_what_surrounds_a_conversation():
    assert cost_of_instructions(None, target(), CLAUDE) == Fixed(0, 0, 3)
    assert cost_of_instructions(Instructions(), target(), CLAUDE) == Fixed(0, 0, 3)


def test_anthropics_prompt_for_tools_is_counted_once():
    tools = tuple(Tool(f"tool_{n}", "Does a thing.") for n in range(3))
    one = cost_of_instructions(Instructions(tools=tools[:1]), target(), CLAUDE).tools
    three = cost_of_instructions(Instructions(tools=tools), target(), CLAUDE).tools
    assert CLAUDE.tools_prompt == 496
    assert three - CLAUDE.tools_prompt == 3 * (one - CLAUDE.tools_prompt)


def test_a_schema_costs_the_same_given_or_kept():
    schema = {"type": "object", "properties": {"größe": {"type": "number"}}}
    kept = msgspec.Raw(json.dumps(schema, ensure_ascii=False).encode())
    costs = {
        cost_of_instructions(Instructions(tools=(Tool("t", "d", given),)), target(), CLAUDE).tools
        for given in (schema, kept)
    }
    assert len(costs) == 1


def test_a_response_format_is_counted_and_settings_are_not():
    schema = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(50)}}
    wanted = {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}
    assert cost_of_extra(wanted, target()) > 400
    settings = {"temperature": 0.2, "top_p": 1, "seed": 7, "stop": ["a"], "metadata": {"user": "x" * 500}}
    assert cost_of_extra(settings, target()) == 0
    assert cost_of_extra(None, target()) == cost_of_extra({}, target()) == 0


def test_extra_that_is_no_json_costs_what_of_it_is():
    assert cost_of_extra({"config": {"response_schema": object, "a": (1, b"x")}}, target()) > 0


def test_a_dialect_that_is_not_known_is_refused():
    other = msgspec.structs.replace(target(), dialect="soap")
    with pytest.raises(InvalidArgument, match="dialect must be one of openai_chat"):
        cost_of([user("a")], other, CLAUDE)


def test_what_is_no_block_of_an_entry_is_refused():
    with pytest.raises(TypeError, match="not a block that is shown: str"):
        cost_of([UserEntry(blocks=("text",))], target(), CLAUDE)


# --- against what was counted for real --------------------------------------------------------------------------------


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not there; TOKEN_CORPUS names its place")
@pytest.mark.parametrize("language", ["zh", "ja", "ko", "hi", "ru", "ar"])
def test_other_scripts_are_not_underestimated_by_more_than_15_percent_on_average(language):
    with gzip.open(CORPUS) as lines:
        texts = [text for text in map(json.loads, lines) if text["category"] == language]
    families = texts[0]["tokens"]
    errors = {f: mean(estimate_tokens(t["text"], f) / t["tokens"][f] - 1 for t in texts) for f in families}
    assert len(texts) >= 10
    assert min(errors.values()) > -0.15


@pytest.mark.skipif(not REAL.exists(), reason="the session is not there; REAL_SESSION names its place")
def test_what_a_real_session_added_from_call_to_call_costs_what_was_charged():
    errors = [cost_of(entries, target(), CLAUDE) / charged - 1 for charged, entries in increments()]
    assert len(errors) > 350
    assert -0.02 < mean(errors) < 0.05
    assert mean(map(abs, errors)) < 0.08


def increments():
    """What the provider charged for more from one call to the next, and the entries that stood between."""
    lines = REAL.read_text(encoding="utf-8").splitlines()
    messages = [line["message"] for line in map(json.loads, lines) if line["type"] == "message"]
    calls = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    for before, after in pairwise(calls):
        said_before, charged = messages[before], sent(messages[after]) - sent(messages[before])
        whole = {said_before["stopReason"], messages[after]["stopReason"]} <= {"stop", "toolUse"}
        if whole and charged > 0:
            yield charged, list(entries_of(messages[before:after]))


def sent(message):
    return sum(message["usage"][part] for part in ("input", "cacheRead", "cacheWrite"))


def entries_of(messages):
    answered = []
    for message in messages:
        texts = [Text(block["text"]) for block in message["content"] if block["type"] == "text"]
        if message["role"] == "user":
            yield UserEntry(tuple(texts))
        elif message["role"] == "toolResult":
            answered.append(ShownResult(CallRef(1, 0), "c", message["toolName"], tuple(texts)))
        else:
            made = [block for block in message["content"] if block["type"] == "toolCall"]
            asked = [ToolCall(c["id"], c["name"], json.dumps(c["arguments"])) for c in made]
            yield AssistantEntry((*texts, *asked))
    if answered:
        yield ResultsEntry(tuple(answered))
