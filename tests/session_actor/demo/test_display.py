"""What the demo draws: the bar, the table, the tree."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.demo.display import Progress, percentile, table
from session_actor.demo.tree import draw_tree
from session_actor.frames import Frame


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def frame(frame_id: int, parent: int | None, depth: int, forked_from: int | None = None) -> Frame:
    return Frame(id=frame_id, parent=parent, depth=depth, at_us=0, forked_from=forked_from)


def test_the_bar_is_drawn_in_place_on_a_terminal():
    stream = Terminal()
    progress = Progress(total=4, kills=1, stream=stream)
    progress.step(2, killed=1)
    progress.close()
    assert stream.getvalue() == f"\r{'█' * 16}{'░' * 16} 2/4 steps   1/1 kills\x1b[K\n"


def test_nothing_is_drawn_in_place_where_there_is_no_terminal():
    stream = io.StringIO()
    progress = Progress(total=4, kills=1, stream=stream)
    progress.step(2, killed=0)
    progress.killed(1, 2)
    progress.close()
    assert stream.getvalue() == "kill 1 of 1: at step 2 of 4\n"


def test_a_kill_before_anything_more_was_fed_says_so():
    stream = io.StringIO()
    progress = Progress(total=4, kills=2, stream=stream)
    progress.killed(1, 2)
    progress.killed(2, 2, again=True)
    assert stream.getvalue().splitlines()[1] == "kill 2 of 2: at step 2 of 4 again, before anything more was fed"


@given(st.lists(st.floats(allow_nan=False), min_size=1), st.floats(0, 1))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[float], share: float):
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) <= share * len(values)


def test_there_is_no_percentile_of_nothing():
    assert math.isnan(percentile([], 0.5))


def test_a_table_has_its_values_in_one_column():
    assert table([("a", "1"), ("long", "2")]) == "  a      1\n  long   2"


def test_a_tree_draws_runs_forks_and_names():
    main = [frame(number, number - 1 or None, number) for number in range(1, 7)]
    idea = [frame(7, 2, 3, forked_from=2), frame(8, 7, 4), frame(9, 7, 4, forked_from=7)]
    names = {"main": 6, "idea": 8, "other": 9}
    assert draw_tree([*main, *idea], names, {"here": 2}, "main").splitlines() == [
        "frames 1 to 2 (2)  ← checkpoint here",
        "├─ frames 3 to 6 (4)  ← branch main (here)",
        "└─ frame 7, forked from 2",
        "   ├─ frame 8  ← branch idea",
        "   └─ frame 9, forked from 7  ← branch other",
    ]


def test_a_run_names_the_frames_that_other_branches_took_of_its_numbers():
    main = [frame(number, number - 1 or None, number) for number in (1, 2, 3)]
    main += [frame(6, 3, 4), frame(8, 6, 5), frame(9, 8, 6), frame(13, 9, 7)]
    tree = draw_tree(main, {"main": 13}, {}, "main")
    assert tree == "frames 1 to 13 without 4 and 5, 7, 10 to 12 (7)  ← branch main (here)"


@pytest.mark.parametrize("depth", [1, 100_000])
def test_a_long_stack_is_one_line(depth: int):
    frames = [frame(number, number - 1 or None, number) for number in range(1, depth + 1)]
    assert len(draw_tree(frames, {"main": depth}, {}, None).splitlines()) == 1
