"""What follows from a request that a provider refused."""

from __future__ import annotations

from itertools import pairwise

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_actor import InvalidArgument
from session_actor.blocks import Text, ToolCall
from session_actor.budget.refusals import TooLong, too_long
from session_actor.commands import (
    AddAssistant,
    AddResponse,
    AddToolResult,
    AddUser,
    BuildRequest,
    Configure,
    Pop,
    RequestFailed,
)
from session_actor.frames import Turn, Usage

from .asked import DIALECTS, MESSAGES, Asked, same, shown

ANTHROPIC = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
}
OPENAI = {
    "error": {
        "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130123 "
        "tokens. Please reduce the length of the messages.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}
GEMINI = {
    "error": {
        "code": 400,
        "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "status": "INVALID_ARGUMENT",
    }
}

SAID = [
    (ANTHROPIC, TooLong(210_000, 200_000)),
    (OPENAI, TooLong(130_123, 128_000)),
    (GEMINI, TooLong(1_200_000, 1_048_576, with_output=False)),
    (
        ("input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or "
        "`max_tokens` and try again"),
        TooLong(199_759, 200_000),
    ),
    (
        ("This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (9000 in the "
        "messages, 500 in the functions, and 500 in the completion). Please reduce the length of the messages."),
        TooLong(9_500, 8_192),
    ),
    (
        ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 280001 tokens. Please "
        "reduce the length of the messages."),
        TooLong(280_001, 272_000, with_output=False),
    ),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", TooLong()),
    ("Input is too long for requested model.", TooLong()),
    (
        "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
        TooLong(150_000, 131_072, with_output=False),
    ),
    (("This endpoint's maximum context length is 163,840 tokens. However, you requested about 200,000 tokens (199,000 "
     "of text input, 1,000 in the output)."), TooLong(199_000, 163_840)),
    (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        TooLong(40_000, 32_768),
    ),
    ({"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}, TooLong()),
    ("overloaded_error: try again", None),
    ("Rate limit reached: Limit 30000, Requested 33000 tokens per min", None),
    ({"error": None}, None),
    (None, None),
    (5, None),
    ("x" * 10_000_000, None),
    ("prompt is too long: 99999999999999999999 tokens > 200000 maximum", TooLong(None, 200_000)),
]  # fmt: skip


class Refusal(Exception):
    """As the SDKs raise them: the answer is an attribute."""

    def __init__(self, message: str, body: object) -> None:
        super().__init__(message)
        self.body = body


@pytest.mark.parametrize(("error", "found"), SAID)
def test_what_a_provider_said_is_understood_as_text_dict_or_exception(error, found):
    assert too_long(error) == found
    assert too_long(Refusal("Error code: 400", error)) == found
    if isinstance(error, str):
        assert too_long({"error": {"message": error}}) == found
        assert too_long(error.encode()) == found


def test_the_sdk_s_own_exceptions_are_understood():
    import anthropic
    import openai
    from google.genai import errors

    asked = httpx.Request("POST", "http://localhost/")
    answer = httpx.Response(400, json=ANTHROPIC, request=asked)
    assert too_long(anthropic.BadRequestError("Error code: 400", response=answer, body=ANTHROPIC)).tokens == 210_000
    answer = httpx.Response(400, json=OPENAI, request=asked)
    assert too_long(openai.BadRequestError("Error code: 400", response=answer, body=OPENAI["error"])).limit == 128_000
    assert too_long(errors.ClientError(400, GEMINI)).tokens == 1_200_000


class Hostile(Exception):
    """Whatever is asked of it fails."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError


def test_an_error_that_cannot_be_read_says_nothing():
    assert too_long(Hostile()) is None
    deep: list[object] = []
    deep.append(deep)
    assert too_long(deep) is None


def talked(live: Asked) -> None:
    for number in range(9):
        live.do(AddUser(f"question {number} " + "why " * 900))
        live.do(AddAssistant("thus " * 900))
    live.do(AddUser("And?"))


@pytest.mark.parametrize(
    ("real", "failed"),
    [
        (None, {}),
        (1.4, {}),
        (1.6, {"limit": 32_000}),
        (None, {"limit": 22_000}),
        (None, {"limit": 12_000, "with_output": False}),
        (1.8, {"limit": 20_000, "with_output": False}),
    ],
)
def test_the_next_request_is_shorter_and_so_on_until_one_is_taken(live, dialect, real, failed):
    talked(live)
    request = live.ask(dialect)
    cost = len(str(dict(request)))
    for _ in range(1 if failed or real else 3):
        counted = None if real is None else int(real * 17_000 * len(str(dict(request))) / cost)
        assert live.do(RequestFailed(request.seq, tokens=counted, **failed)) is True
        shorter = live.ask(dialect)
        assert len(str(dict(shorter))) < len(str(dict(request)))
        assert same(live.again(dialect), shorter)
        request = shorter


def test_a_request_that_failed_for_another_reason_changes_nothing(live, dialect):
    talked(live)
    request = live.ask(dialect)
    assert live.do(RequestFailed(request.seq, too_long=False)) is False
    assert same(live.ask(dialect), request)


def test_a_real_count_that_comes_later_makes_up_for_a_refusal(live):
    talked(live)
    live.do(RequestFailed(live.ask().seq))
    believed = live.ask() and live.asked.allowance
    live.do(AddResponse(Turn("assistant", (), Usage(input_tokens=live.asked.quote.tokens)), live.state.seq))
    live.do(AddUser("And then?"))
    live.ask()
    assert believed < live.asked.allowance == int(believed * 1.1) + 1


def messages(request):
    return len(request[MESSAGES[request.dialect]])


@pytest.mark.parametrize("words", [30, 700])
def test_refusals_without_figures_end_at_the_newest_exchange_and_say_so(live, dialect, words):
    for number in range(20):
        live.do(AddUser(f"question {number} " + "why " * words))
        live.do(AddAssistant("thus " * words))
    live.do(AddUser("And?"))
    request = live.ask(dialect)
    seen = [messages(request)]
    while live.do(RequestFailed(request.seq, key=f"k{request.seq}")):
        assert live.do(RequestFailed(request.seq, key=f"k{request.seq}")) is True
        request = live.ask(dialect)
        assert same(live.again(dialect), request)
        seen.append(messages(request))
    assert seen[-1] == (2 if dialect == "openai_chat" else 1), "the system prompt is a message there"
    assert all(after < before for before, after in pairwise(seen))
    assert live.do(RequestFailed(request.seq, key=f"k{request.seq}")) is False
    assert same(live.ask(dialect), request)
    usage = Usage(input_tokens=request.input_tokens)
    live.do(AddResponse(Turn("assistant", (Text("Well."),), usage), request.seq))
    live.do(AddUser("And then?"))
    assert messages(live.ask(dialect)) > seen[-1], "it was answered: the refusals were mistaken"


def test_a_long_result_is_shown_at_less_length_when_it_was_refused(live, dialect):
    live.do(AddUser("Look."))
    live.do(AddAssistant("", tool_calls=[ToolCall("c1", "ls", "{}")]))
    live.do(AddToolResult("c1", "hay " * 4_000))
    request = live.ask(dialect)
    lengths = [request.input_tokens]
    while live.do(RequestFailed(request.seq)):
        request = live.ask(dialect)
        lengths.append(request.input_tokens)
    assert all(after < before for before, after in pairwise(lengths))
    assert lengths[-1] < 300


def test_a_request_of_nobody_is_refused(live):
    talked(live)
    live.refuses(InvalidArgument, RequestFailed(1))
    live.refuses(InvalidArgument, RequestFailed(-1))
    live.refuses(InvalidArgument, RequestFailed("x"))
    live.refuses(InvalidArgument, RequestFailed(live.ask().seq, tokens=-5))


def test_the_same_key_again_answers_the_same(live):
    talked(live)
    seq = live.ask().seq
    assert live.do(RequestFailed(seq, key="k")) is True
    before = live.state.seq
    assert live.do(RequestFailed(seq, key="k")) is True
    assert live.state.seq == before


async def test_a_session_takes_the_exception_itself(session):
    await session.configure(model="claude-sonnet-4-5")
    for number in range(6):
        await session.push(f"question {number} " + "why " * 15_000, "thus " * 15_000)
    await session.add_user("And?")
    request = await session.build_request("anthropic")
    assert await session.request_failed(request, Refusal("Error code: 400", ANTHROPIC)) is True
    assert len((await session.build_request("anthropic"))["messages"]) < len(request["messages"])
    assert await session.request_failed(request.seq, TimeoutError("slow")) is False
    with pytest.raises(InvalidArgument):
        await session.request_failed("x", "y")


def test_nothing_of_the_error_is_recorded(live):
    talked(live)
    seq = live.ask().seq
    live.do(RequestFailed(seq, tokens=24_000))
    kind, data, _, _ = live.records[-1]
    assert kind == "request_failed"
    assert data == b'{"request":%d,"too_long":true,"tokens":24000}' % seq
    assert live.do(BuildRequest("anthropic"))


@pytest.mark.parametrize(
    "failed",
    [{}, {"tokens": 1_010_000, "limit": 1_000_000}, {"limit": 4_096}, {"limit": 10, "with_output": False}],
)
def test_a_mistaken_refusal_never_ends_a_conversation(live, dialect, failed):
    live.do(AddUser("Hello"))
    small = live.ask(dialect)
    for _ in range(5):
        live.do(RequestFailed(small.seq, **failed))
    talked(live)
    request = live.ask(dialect)
    assert "And?" in shown(request)
    quote = live.asked.quote
    usage = Usage(input_tokens=quote.fixed + quote.messages + quote.tail)
    live.do(AddResponse(Turn("assistant", (Text("Well."),), usage), request.seq))
    talked(live)
    request = live.ask(dialect)
    if failed.get("limit", 1_000_000) == 1_000_000:
        assert request.input_tokens > 5_000, "the answer has corrected it"


FIGURE = st.none() | st.integers(0, 2_000_000)


@given(
    dialect=st.sampled_from(DIALECTS),
    refusals=st.lists(st.tuples(st.integers(0, 3), FIGURE, FIGURE, st.booleans()), min_size=1, max_size=8),
)
@settings(max_examples=40, deadline=None)
def test_after_any_refusals_something_small_can_be_asked(dialect, refusals):
    live = Asked()
    live.do(AddUser("Hello"))
    for more, tokens, limit, with_output in refusals:
        for number in range(more):
            live.do(AddAssistant("thus " * 700))
            live.do(AddUser(f"question {number} " + "why " * 700))
        request = live.ask(dialect)
        live.do(RequestFailed(request.seq, tokens=tokens, limit=limit, with_output=with_output))
        assert same(live.again(dialect), live.ask(dialect))
    live.do(Pop(live.state.head))
    live.do(Configure(system="Be brief.", model="small"))
    live.do(AddUser("Hello again"))
    assert "Hello again" in shown(live.ask(dialect))


@given(
    dialect=st.sampled_from(DIALECTS),
    refusals=st.lists(st.tuples(st.integers(0, 2), FIGURE, FIGURE, st.booleans()), min_size=1, max_size=6),
)
@settings(max_examples=20, deadline=None)
def test_whatever_was_refused_others_are_shown_what_they_would_be(dialect, refusals):
    live, calm = Asked(), Asked()
    for one in (live, calm):
        talked(one)
    for more, tokens, limit, with_output in refusals:
        for one in (live, calm):
            for number in range(more):
                one.do(AddAssistant("thus " * 300))
                one.do(AddUser(f"question {number} " + "why " * 300))
        request = live.ask(dialect)
        live.do(RequestFailed(request.seq, tokens=tokens, limit=limit, with_output=with_output))
    for model in ("half", "tiny", "gpt-4o"):
        assert same(live.ask(dialect, model=model), calm.ask(dialect, model=model))
