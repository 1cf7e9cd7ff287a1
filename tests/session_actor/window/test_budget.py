"""The budget: what takes how much of the window."""

from __future__ import annotations

import pytest

from session_actor import Budget, InvalidArgument, Tool
from session_actor.blocks import Image, ToolCall
from session_actor.budget.report import pressure_of
from session_actor.commands import (
    AddAssistant,
    AddResponse,
    AddToolResult,
    AddUser,
    BuildRequest,
    Configure,
    Fork,
    Pop,
)
from session_actor.frames import Turn, Usage
from session_actor.tokens import estimate
from session_actor.window.pressure import budget_of

from .asked import SMALL, TOOLS, Asked, settled
from .test_build_request import PNG


def budget(live: Asked, on: str | None = None, model: str | None = None) -> Budget:
    found = budget_of(live.state, on, model)
    assert found.used == found.system + found.tools + found.format + found.messages + found.pending
    assert found.free == max(0, found.allowance - found.used)
    assert found.upper >= found.used
    assert found.allowance + found.output_reserve + found.safety_reserve <= found.window
    return found


def answer(live: Asked, request, real: int) -> None:
    turn = Turn("assistant", (ToolCall(f"c{request.seq}", "ls"),), Usage(input_tokens=real), "small", request.dialect)
    live.do(AddResponse(turn, request.seq))


def test_an_empty_session_has_all_of_its_window(live):
    live.do(Pop())
    empty = budget(live, model="small")
    assert (empty.window, empty.output_reserve, empty.safety_reserve) == (32_000, 8_000, 2_000)
    assert (empty.system, empty.tools, empty.pending) == (0, 0, 0)
    assert empty.pressure == "green"
    with pytest.raises(InvalidArgument, match="configure"):
        budget(live)


def test_system_prompt_tools_and_response_format_show(live, dialect):
    before = budget(live)
    assert before.system > 0
    assert before.tools > 0
    live.do(Configure(system="rule " * 500, tools=[*TOOLS, Tool("t", "word " * 500, {"type": "object"})]))
    after = budget(live)
    assert after.system > before.system + 400
    assert after.tools > before.tools + 400
    live.do(AddUser("Hello"))
    schema = {"name": "d", "schema": {"type": "object", "description": "word " * 300}}
    live.ask("openai_chat", extra={"response_format": {"type": "json_schema", "json_schema": schema}})
    assert budget(live).format > 250
    live.ask(dialect)
    assert budget(live).format == 0


def test_what_no_request_has_shown_is_pending(live, dialect):
    live.do(AddUser("why " * 1_000))
    new = budget(live)
    assert new.pending > 900
    live.ask(dialect)
    sent = budget(live)
    assert sent.pending == 0
    assert sent.messages >= new.pending - 20
    live.do(AddUser("thus " * 500))
    assert 400 < budget(live).pending < 700


def test_it_is_what_the_next_request_says(live, dialect):
    for number in range(5):
        live.do(AddUser(f"{number} " + "why " * 500))
        request = live.ask(dialect)
        assert abs(budget(live).used - request.input_tokens) <= 1
        answer(live, request, int(request.input_tokens * 1.2))
        live.do(AddToolResult(live.state.pending_calls()[0].ref, "x"))


def test_real_counts_are_part_of_it(live, dialect):
    live.do(AddUser("why " * 2_000))
    request = live.ask(dialect)
    before = budget(live)
    assert not before.calibrated
    answer(live, request, 3_000)
    after = budget(live)
    assert after.calibrated
    assert after.used > 3_000
    assert after.safety_reserve < before.safety_reserve
    assert after.allowance > before.allowance


def test_cached_tokens_are_not_counted_twice(live):
    live.do(AddUser("why " * 2_000))
    request = live.ask()
    usage = Usage(input_tokens=3_000, cache_read_tokens=2_500, cache_write_tokens=400)
    live.do(AddResponse(Turn("assistant", (), usage, "small", "anthropic"), request.seq))
    assert 3_000 <= budget(live).used < 3_100


def test_of_several_calls_in_one_turn_only_the_last_counts(live):
    live.do(AddUser("why " * 2_000))
    request = live.ask()
    usage = Usage(input_tokens=9_000, anchor_tokens=3_000)
    live.do(AddResponse(Turn("assistant", (), usage, "small", "anthropic"), request.seq))
    assert 3_000 <= budget(live).used < 3_100


def test_an_implausible_count_is_passed_over(live):
    live.do(AddUser("why " * 2_000))
    for real in (0, 100, 90_000):
        answer(live, live.ask(), real)
        assert not budget(live).calibrated
        live.do(Pop())


def test_a_count_belongs_to_its_request_and_not_to_now(live):
    live.do(AddUser("why " * 2_000))
    request = live.ask()
    live.do(AddUser("thus " * 1_000))
    answer(live, request, 3_000)
    assert budget(live).used > 3_900


def test_another_model_has_another_budget(live):
    live.do(AddUser("why " * 2_300))
    assert budget(live, model="tiny").pressure == "yellow"
    assert budget(live, model="gpt-4o").window == 128_000
    assert budget(live).window == SMALL.window


def test_it_is_the_branch_s_own(live):
    live.do(AddUser("why " * 2_000))
    live.do(AddUser("short"))
    live.do(Fork(2, "idea", attach=False))
    assert budget(live, "idea").used < budget(live).used


def test_it_changes_nothing_and_is_the_same_after_a_recovery(live, dialect):
    for number in range(4):
        live.do(AddUser(f"{number} " + "why " * 500))
        answer(live, live.ask(dialect), 1_500 + 700 * number)
    seq = live.state.seq
    assert budget(live) == budget_of(settled(live.replayed()), None, None)
    assert live.state.seq == seq


def test_pressures_begin_where_they_are_said_to():
    assert pressure_of(749, 800, 1_000) == "green"
    assert pressure_of(750, 800, 1_000) == "yellow"
    assert pressure_of(900, 949, 1_000) == "yellow"
    assert pressure_of(700, 950, 1_000) == "red"


async def test_a_session_tells_it(session):
    await session.configure(system="Be brief.", model="claude-sonnet-4-5")
    await session.add_user("Hello")
    found = await session.budget()
    assert found.model == "claude-sonnet-4-5"
    assert found.window == 200_000
    assert 0 < found.pending < found.used < 2_000
    assert (await session.budget("gpt-4o")).window == 128_000


def test_one_more_turn_costs_the_same_however_many_there_are(live):
    """As estimates of texts are what costs: each text is estimated once."""
    counted: list[int] = []
    original = estimate.features

    def features(text: str):
        counted.append(len(text))
        return original(text)

    for number in range(50):
        live.do(AddUser(f"{number} why"))
        live.do(AddAssistant("thus"))
    budget(live)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimate, "features", features)
        budget(live)
        again = len(counted)
        live.do(AddUser("one more"))
        live.do(BuildRequest("openai_chat"))
    assert again < 10
    assert len(counted) < 60


def test_forty_five_images_cost_forty_five_times_one(live, dialect):
    live.do(AddUser("Look."))
    live.ask(dialect)
    costs = [budget(live).used]
    for count in (1, 44):
        live.do(AddUser([Image(data=PNG + bytes(1_000), media_type="image/png")] * count))
        costs.append(budget(live).used)
    one, all_of_them = costs[1] - costs[0], costs[2] - costs[0]
    assert one > 50
    assert abs(all_of_them - 45 * one) <= 0.02 * all_of_them
