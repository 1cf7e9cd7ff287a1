"""Requests of one conversation with and without a response format: what the one showed is of use for the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.blocks import Text
from session_actor.budget.calibration import learn, price
from session_actor.budget.readings import NOTHING, Key, Shown
from session_actor.commands import AddResponse, AddUser, Configure
from session_actor.frames import Turn, Usage
from session_actor.window.pressure import budget_of

from .asked import Asked

KEY = Key("model", "openai_chat", 1)
FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "report",
        "schema": {"type": "object", "properties": {f"field{n}": {"description": "word " * 10} for n in range(250)}},
    },
}
ASKED = 2_000


def answered(live: Asked, request, real: int) -> None:
    turn = Turn("assistant", (Text("ok"),), Usage(input_tokens=real), "small", request.dialect)
    live.do(AddResponse(turn, request.seq))


@pytest.fixture
def talked():
    """A conversation of some 2,000 tokens, without tools."""
    live = Asked(model=None)
    live.do(Configure(system="Be brief.", model="small"))
    live.do(AddUser("word " * ASKED))
    return live


def test_a_format_that_costs_half_of_its_estimate_takes_nothing_from_the_messages_when_it_is_gone(talked):
    with_it = talked.ask("openai_chat", extra={"response_format": FORMAT})
    estimate = with_it.input_tokens - ASKED
    real = ASKED + estimate * 45 // 100
    answered(talked, with_it, real)
    without = talked.ask("openai_chat")
    assert without.input_tokens == pytest.approx(ASKED, rel=0.15)
    assert talked.asked.quote.upper >= ASKED
    answered(talked, without, ASKED + 10)
    talked.do(AddUser("And?"))
    assert talked.ask("openai_chat").input_tokens == pytest.approx(ASKED + 20, abs=20)
    assert talked.ask("openai_chat", extra={"response_format": FORMAT}).input_tokens == pytest.approx(real, rel=0.02)


@given(
    formats=st.lists(st.sampled_from([0, 500, 3_000, 12_000]), min_size=3, max_size=12),
    factor=st.floats(0.55, 1.2),
    ratio=st.floats(0.9, 1.3),
    step=st.integers(20, 2_000),
)
def test_whatever_formats_come_and_go_no_request_seems_far_shorter_than_it_is(formats, factor, ratio, step):
    learned, seen, system = NOTHING, set[int](), 50
    for head, added in enumerate(formats, 1):
        messages = 3_000 + head * step
        shown = Shown(KEY, 0, head, system + added, messages, 0, lambda frame: 3_000 + frame * step if frame else 0)
        quote = price(shown, learned, lambda _frame: True)
        real = round(system + factor * added + ratio * messages)
        assert quote.tokens >= 0.6 * real
        assert quote.fixed_tokens <= quote.tokens <= quote.upper
        if added in seen:
            assert quote.tokens == pytest.approx(real, rel=0.2)
        seen.add(added)
        learned = learn(learned, quote, real, lambda _frame: True)


def test_a_provider_that_counts_less_than_before_makes_no_part_of_the_budget_negative():
    live = Asked("small")
    live.do(Configure(system="word " * ASKED))
    live.do(AddUser("Hello"))
    first = live.ask("openai_chat")
    answered(live, first, first.input_tokens * 9 // 10)
    live.do(AddUser("And?"))
    answered(live, live.ask("openai_chat"), first.input_tokens * 6 // 10)
    budget = budget_of(live.state, None, "small")
    assert min(budget.system, budget.tools, budget.format, budget.messages, budget.pending) >= 0
    assert budget.used == budget.system + budget.tools + budget.format + budget.messages + budget.pending
