"""Which frames a summary takes the place of."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from session_actor.blocks import CallRef, Text, ToolResult
from session_actor.commands import Push
from session_actor.compaction.ranges import Range, range_of, tail_tokens
from session_actor.frames import Turn
from session_actor.ledger.view import WHOLE, View
from session_actor.window.units import whole_frames

from ..window.ledger_talk import Talk, call, said
from .planned import above, long_talk, units

LONG = "because it is so " * 60


def chosen(
    talk: Talk, tail: int = 500, pinned: Any = frozenset(), view: View = WHOLE, covered: int = 0
) -> Range | None:
    return range_of(above(talk, covered), units(talk, view), tail, pinned)


def working(steps: int, text: str = LONG) -> Talk:
    """One request, and so many steps of work."""
    talk = Talk()
    talk.user("Do it.")
    for number in range(steps):
        talk.says("I look.", calls=[call(f"c{number}")])
        talk.result(f"c{number}", text)
    return talk


def test_the_tail_is_a_quarter_of_a_small_window_and_20_000_tokens_of_a_large_one() -> None:
    assert (tail_tokens(8_000), tail_tokens(80_000), tail_tokens(1_000_000)) == (2_000, 20_000, 20_000)


def test_nothing_is_covered_of_a_conversation_within_the_tail() -> None:
    assert chosen(long_talk(3), tail=20_000) is None
    assert range_of((), [], 500) is None


def test_old_exchanges_are_covered_whole() -> None:
    talk = long_talk(10)  # each turn about 200 tokens
    found = chosen(talk, tail=500)
    assert found is not None
    first_shown = found.covered_frame + 1
    assert talk.state.table.at(first_shown).exchange == first_shown
    assert found.kept == ()
    assert found.tokens == sum(unit.cost for unit in units(talk) if unit.frames[-1] < first_shown)


def test_at_least_the_tail_is_kept_where_an_exchange_begins_near() -> None:
    talk = long_talk(10)
    for tail in range(300, 3_000, 100):
        found = chosen(talk, tail=tail)
        assert found is not None
        stays = sum(unit.cost for unit in units(talk) if unit.frames[0] > found.covered_frame)
        assert tail // 2 < stays <= tail * 3 // 2 + 1


def test_inside_a_long_exchange_old_steps_are_covered_and_what_the_user_asked_stays() -> None:
    talk = working(20)
    found = chosen(talk, tail=1_000)
    assert found is not None
    assert found.kept == (1,)
    assert talk.state.table.at(found.covered_frame).turns[0].role == "tool"
    assert talk.state.table.at(found.covered_frame + 1).turns[0].role == "assistant"


def test_a_long_user_turn_of_the_exchange_that_goes_on_is_covered() -> None:
    talk = Talk()
    talk.user(LONG * 4)
    for number in range(20):
        talk.says("I look.", calls=[call(f"c{number}")])
        talk.result(f"c{number}", LONG)
    found = chosen(talk, tail=1_000)
    assert found is not None
    assert found.kept == ()


def test_a_single_step_longer_than_the_tail_is_never_cut() -> None:
    talk = long_talk(4)
    talk.user("Look.")
    talk.says(calls=[call("a"), call("b"), call("c")])
    for name in "abc":
        talk.result(name, LONG * 3)
    found = chosen(talk, tail=300)
    assert found is not None
    assert found.covered_frame < 10  # where the step begins
    assert 9 not in range(1, found.covered_frame + 1) or found.kept == (9,)


def chained(steps: int, clean: set[int]) -> Talk:
    """Steps of which each frame holds the results of the one before; those of `clean` begin frames of their own."""
    talk = Talk()
    talk.turns(Turn("user", (Text("Do it."),)), said(Text("I look."), call("c0")))
    for number in range(1, steps):
        results = Turn("tool", (ToolResult(f"c{number - 1}", (Text(LONG),)),))
        more = said(Text("I look."), call(f"c{number}"))
        for turns in ([results], [more]) if number in clean else ([results, more],):
            talk.turns(*turns)
    talk.turns(Turn("tool", (ToolResult(f"c{steps - 1}", (Text("end"),)),)), said(Text("Done.")))
    return talk


def in_frames(talk: Talk, tail: int) -> Range | None:
    return range_of(above(talk), whole_frames(units(talk), talk.state.table), tail)


def test_the_range_ends_between_steps_where_a_frame_near_begins_with_one() -> None:
    talk = chained(30, {5, 10, 15, 20, 25})
    for tail in range(2_000, 4_000, 250):
        found = in_frames(talk, tail)
        assert found is not None
        assert talk.state.table.at(found.covered_frame + 1).turns[0].role == "assistant"


def test_where_all_frames_begin_with_results_old_ones_are_covered_all_the_same() -> None:
    found = in_frames(chained(30, set()), 1_000)
    assert found is not None
    assert found.covered_frame > 20


def test_what_the_user_asked_in_a_frame_with_a_call_that_is_answered_later_is_covered_with_its_result() -> None:
    found = in_frames(chained(40, set()), 4_000)
    assert found is not None
    assert found.kept == (), "its call would seem to have been interrupted"


def test_the_range_ends_before_the_oldest_open_call() -> None:
    talk = long_talk(3)
    talk.user("Look.")
    ref = CallRef(talk.says(calls=[call("a"), call("b")]).id, 0)
    talk.result("b", LONG)
    talk.hold(ref)
    for _ in range(6):
        talk.user(LONG)
        talk.says(LONG)
    found = chosen(talk, tail=300)
    assert found is not None
    assert found.covered_frame < ref.frame
    talk.result(ref, "Done.")
    later = chosen(talk, tail=300)
    assert later is not None
    assert later.covered_frame > ref.frame


def test_pinned_frames_stay_shown_and_cost_nothing_of_what_gives_way() -> None:
    talk = long_talk(3)
    pinned = talk.do(Push(user_input="Never push on Fridays.", pinned=True)).id
    for _ in range(4):
        talk.user(LONG)
        talk.says(LONG)
    plain = chosen(talk, tail=300)
    both = chosen(talk, tail=300, pinned=frozenset({2}))
    assert plain is not None
    assert both is not None
    assert plain.kept == (pinned,)
    assert both.kept == (2, pinned)
    assert both.tokens == plain.tokens - next(unit.cost for unit in units(talk) if 2 in unit.frames)


def test_a_pinned_call_keeps_its_results() -> None:
    talk = working(10)
    found = chosen(talk, tail=600, pinned=frozenset({4}))
    assert found is not None
    assert {4, 5} <= set(found.kept)
    assert 3 not in found.kept


def test_frames_that_a_trim_hides_are_covered_too_and_pinned_ones_among_them_kept() -> None:
    talk = long_talk(10)
    view = View(cut=9, kept=(3,), trimmed=True)
    found = chosen(talk, tail=500, view=view, pinned=frozenset({4}))
    assert found is not None
    assert found.covered_frame > 9
    assert 4 in found.kept
    assert found.tokens == sum(
        u.cost for u in units(talk, view) if u.frames[-1] <= found.covered_frame and 4 not in u.frames
    )


def test_nothing_is_covered_twice() -> None:
    talk = long_talk(10)
    first = chosen(talk, tail=500)
    assert first is not None
    view = View(cut=first.covered_frame + 1, trimmed=True)
    assert chosen(talk, tail=500, view=view, covered=first.covered_frame) is None
    for number in range(5):
        talk.user(f"More {number}? {LONG}")
        talk.says(LONG)
    second = chosen(talk, tail=500, view=view, covered=first.covered_frame)
    assert second is not None
    assert second.covered_frame > first.covered_frame


@given(st.data())
def test_any_range_ends_between_steps_and_below_open_calls_and_the_last_unit(data: st.DataObject) -> None:
    talk = Talk()
    for number in range(data.draw(st.integers(1, 30))):
        what = data.draw(st.sampled_from(["user", "says", "call", "result", "hold", "pin"]))
        open_calls = talk.state.pending_calls()
        if what == "user":
            talk.user(LONG[: data.draw(st.integers(1, 900))])
        elif what == "call":
            talk.says("I look.", calls=[call(f"c{number}"), call(f"d{number}")])
        elif what in {"result", "hold"} and open_calls:
            (talk.result if what == "result" else talk.hold)(open_calls[0].ref, "reason")
        elif what == "pin":
            talk.do(Push(user_input="Pinned.", pinned=True))
        else:
            talk.says(LONG[: data.draw(st.integers(1, 900))])
    tail = data.draw(st.integers(10, 600))
    pinned = frozenset(data.draw(st.lists(st.integers(1, 30), max_size=3)))
    found, frames = chosen(talk, tail, pinned), talk.frames
    if found is None:
        return
    covered = [frame for frame in frames if frame.id <= found.covered_frame]
    shown = [frame for frame in frames if frame.id > found.covered_frame]
    assert covered[-1].id == found.covered_frame
    assert shown
    assert not shown[0].turns or shown[0].turns[0].role != "tool"
    assert all(open_call.ref.frame > found.covered_frame for open_call in frames[-1].open_calls)
    assert {frame.id for frame in covered if frame.pinned or frame.id in pinned} <= set(found.kept)
    assert set(found.kept) <= {frame.id for frame in covered}
    assert found.kept == tuple(sorted(found.kept))
    for unit in units(talk):
        assert unit.frames[-1] <= found.covered_frame or unit.frames[0] > found.covered_frame
