"""What is left out of a view that has become too long."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from session_actor.budget.report import YELLOW
from session_actor.budget.trim import TARGET, Beside, TooBig, Trim, Unit, plan_trim


def user(frame, cost=100, *, pinned=False):
    return Unit((frame,), cost, frame, is_user=True, pinned=pinned)


def step(frame, exchange, cost=100, *, pinned=False, saving=0):
    return Unit((frame, frame + 1), cost, exchange, is_user=False, pinned=pinned, stub_saving=saving)


def shown(units, plan):
    """The units that a plan leaves, priced as they are then shown."""
    found = []
    for unit in units:
        if unit.frames[0] < plan.cut and not set(unit.frames) <= set(plan.kept):
            continue
        stub = unit.frames[-1] < plan.stubs
        found.append(unit._replace(cost=unit.cost - unit.stub_saving, stub_saving=0) if stub else unit)
    return found


@st.composite
def views(draw):
    """Units of a path: exchanges of a user turn and steps; the first may lack its user turn."""
    units, frame = [], draw(st.integers(1, 5))
    for number in range(draw(st.integers(1, 6))):
        exchange = 0 if number == 0 and draw(st.booleans()) else frame
        if exchange:
            units.append(user(frame, draw(st.integers(1, 400)), pinned=draw(st.integers(0, 9)) == 0))
            frame += draw(st.integers(1, 3))
        for _ in range(draw(st.integers(0 if exchange else 1, 8))):
            cost = draw(st.integers(1, 1_000))
            saving = draw(st.integers(0, cost - 1))
            units.append(step(frame, exchange, cost, pinned=draw(st.integers(0, 9)) == 0, saving=saving))
            frame += draw(st.integers(2, 4))
    return units


besides = st.builds(Beside, st.integers(0, 500), st.integers(0, 500), st.integers(0, 100))
allowances = st.integers(1, 8_000)


def stays(units):
    """The places of the units that no plan leaves out."""
    newest = max((place for place, unit in enumerate(units) if not unit.is_user), default=-1)
    last = units[-1].exchange
    return {
        place
        for place, unit in enumerate(units)
        if unit.pinned or (unit.exchange == last and (unit.is_user or place == newest))
    }


@given(views(), besides, allowances)
def test_a_plan_goes_down_to_its_target_or_leaves_only_what_must_stay(units, beside, allowance):
    plan = plan_trim(units, beside, allowance)
    before = sum(beside) + sum(unit.cost for unit in units)
    if plan is None:
        assert before <= allowance
        return
    assert plan.tokens < before or isinstance(plan, TooBig)
    if isinstance(plan, TooBig):
        assert plan.tokens > allowance
        return
    left = shown(units, plan)
    assert plan.tokens == sum(beside) + sum(unit.cost for unit in left) <= allowance
    if before > allowance and plan.tokens > TARGET * allowance:
        assert [unit.frames for unit in left] == [units[place].frames for place in sorted(stays(units))]


@given(views(), besides, allowances)
def test_a_plan_never_drops_what_must_stay_and_keeps_the_order_of_age(units, beside, allowance):
    plan = plan_trim(units, beside, allowance)
    if not isinstance(plan, Trim):
        return
    left = [unit.frames for unit in shown(units, plan)]
    assert all(units[place].frames in left for place in stays(units))
    assert list(plan.kept) == sorted(plan.kept)
    assert all(frame < plan.cut for frame in plan.kept)
    gone = [place for place, unit in enumerate(units) if unit.frames not in left]
    for place, unit in enumerate(units):
        if gone and place < max(gone) and not unit.pinned and not unit.is_user:
            assert place in gone, "an older step stays although a newer one goes"


@given(views(), besides, allowances)
def test_a_plan_of_what_a_plan_left_changes_nothing(units, beside, allowance):
    plan = plan_trim(units, beside, allowance)
    if isinstance(plan, Trim):
        again = plan_trim(
            shown(units, plan), beside, allowance, cut=(plan.cut, plan.turn), stubs=(plan.stubs, plan.stub_turn)
        )
        assert again is None


@given(views(), besides, allowances, st.data())
def test_as_a_conversation_grows_plans_only_move_forward_and_never_fail_to_make_room(units, beside, allowance, data):
    cut = stubs = (0, 0)
    view = []
    for unit in units:
        view.append(unit)
        plan = plan_trim(view, beside, allowance, cut=cut, stubs=stubs)
        if isinstance(plan, TooBig):
            return
        if plan is None:
            assert sum(beside) + sum(each.cost for each in view) <= allowance
            continue
        new_cut, new_stubs = (plan.cut, plan.turn), (plan.stubs, plan.stub_turn)
        assert new_cut >= cut
        assert new_stubs >= stubs
        assert (new_cut, new_stubs) > (cut, stubs) or plan.kept != tuple(
            frame for each in view for frame in each.frames if frame < cut[0]
        )
        view, cut, stubs = shown(view, plan), new_cut, new_stubs


@given(views(), besides, allowances)
@example([user(1, 50)], Beside(system=500), 400)
def test_too_big_names_the_biggest_part_and_how_much_room_it_has(units, beside, allowance):
    plan = plan_trim(units, beside, allowance)
    if isinstance(plan, TooBig):
        assert plan.room == allowance - plan.tokens + plan.part_tokens < plan.part_tokens
        if plan.part in ("system", "tools", "other"):
            assert plan.part_tokens == getattr(beside, plan.part)


def test_nothing_happens_below_yellow():
    units = [user(1), step(2, 1, 600, saving=500), step(4, 1)]
    assert plan_trim(units, Beside(), round(800 / YELLOW) + 1) is None


def test_old_results_become_stubs_at_yellow_before_anything_is_left_out():
    units = [user(1), *(step(frame, 1, 200, saving=180) for frame in range(2, 22, 2))]
    plan = plan_trim(units, Beside(), 2_500)
    assert plan is not None
    assert (plan.cut, plan.kept) == (0, ())
    assert plan.stubs == 16, "the newest three steps stay whole"
    assert plan.tokens == 2_100 - 7 * 180


def test_stubs_that_save_little_are_not_worth_a_new_prefix():
    units = [user(1), *(step(frame, 1, 200, saving=20) for frame in range(2, 22, 2))]
    assert plan_trim(units, Beside(), 2_500) is None


def test_results_within_the_newest_quarter_of_the_allowance_stay_whole():
    units = [user(1, 10), *(step(frame, 1, 100, saving=90) for frame in range(2, 62, 2))]
    plan = plan_trim(units, Beside(), 3_600)
    assert plan is not None
    assert plan.stubs == 62 - 2 * 9, "nine steps are a quarter of 3,600"


def test_old_exchanges_go_first_each_as_a_whole():
    units = []
    for first in (1, 11, 21, 31):
        units += [user(first), step(first + 1, first), step(first + 3, first)]
    plan = plan_trim(units, Beside(), 1_100)
    assert plan == Trim(cut=21, kept=(), stubs=0, tokens=600)


def test_a_large_old_exchange_goes_step_by_step_and_keeps_its_user_turn():
    units = [user(1), *(step(frame, 1) for frame in range(2, 22, 2)), user(30)]
    plan = plan_trim(units, Beside(), 1_100)
    assert isinstance(plan, Trim)
    assert (plan.cut, plan.kept, plan.tokens) == (14, (1,), 600)


def test_the_user_turn_of_an_old_exchange_goes_with_its_last_step():
    plan = plan_trim([user(1, 100), step(2, 1, 400), user(5, 300)], Beside(), 780)
    assert plan == Trim(cut=5, kept=(), stubs=0, tokens=300)


def test_steps_of_the_current_exchange_go_last_and_its_user_turn_stays():
    units = [user(1), step(2, 1), user(5), *(step(frame, 5) for frame in range(6, 26, 2))]
    plan = plan_trim(units, Beside(), 1_200)
    assert isinstance(plan, Trim)
    assert (plan.cut, plan.kept, plan.tokens) == (14, (5,), 700)


def test_pinned_frames_stay_below_the_cut():
    units = [user(1), step(2, 1, pinned=True), user(5), step(6, 5), user(9), step(10, 9)]
    plan = plan_trim(units, Beside(), 550)
    assert isinstance(plan, Trim)
    assert (plan.cut, plan.kept, plan.tokens) == (9, (2, 3), 300)


def test_a_user_turn_that_was_kept_goes_once_its_exchange_is_old():
    kept = [user(5), step(20, 5), user(30), step(31, 30), step(33, 30), step(35, 30)]
    plan = plan_trim(kept, Beside(), 550, cut=(20, 0), stubs=(12, 0))
    assert isinstance(plan, Trim)
    assert (plan.cut, plan.kept) == (33, (30,))


def test_what_cannot_fit_is_named():
    units = [user(1, 50), step(2, 1, 200, saving=150)]
    assert plan_trim(units, Beside(system=900, tools=100), 1_000) == TooBig("system", 900, 1_250, 1_000)
    assert plan_trim(units, Beside(system=100, tools=900), 1_000) == TooBig("tools", 900, 1_250, 1_000)
    assert plan_trim(units, Beside(other=900), 800) == TooBig("other", 900, 1_150, 800)
    assert plan_trim([user(1, 5_000)], Beside(10), 1_000) == TooBig("last turn", 5_000, 5_010, 1_000)
    pinned = [user(1, 900, pinned=True), user(2, 200)]
    assert plan_trim(pinned, Beside(10), 1_000) == TooBig("pinned", 900, 1_110, 1_000)


def test_results_are_named_when_the_newest_step_would_fit_without_them():
    units = [user(1, 50), step(2, 1, 2_000, saving=1_900)]
    plan = plan_trim(units, Beside(100), 1_000)
    assert plan == TooBig("results", 1_900, 2_150, 1_000)
    assert plan.room == 750


def test_a_view_without_units_is_too_big_by_what_is_beside_it():
    assert plan_trim([], Beside(tools=20), 10) == TooBig("tools", 20, 20, 10)


def test_two_thousand_steps_in_a_small_window_always_fit_and_the_prefix_changes_rarely():
    view, cut, stubs, marks = [user(1)], (0, 0), (0, 0), 0
    for frame in range(2, 4_002, 2):
        view.append(step(frame, 1, 300, saving=200))
        plan = plan_trim(view, Beside(1_000, 1_500), 24_000, cut=cut, stubs=stubs)
        assert not isinstance(plan, TooBig)
        if plan is not None:
            view, cut, stubs = shown(view, plan), (plan.cut, plan.turn), (plan.stubs, plan.stub_turn)
            marks += 1
        assert sum(each.cost for each in view) + 2_500 <= 24_000
    assert view[0].frames == (1,)
    assert marks < 120
