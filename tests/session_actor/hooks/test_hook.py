"""Describing hooks: what can be right, and in which order they begin."""

from __future__ import annotations

import pytest

from session_actor import Hook, InvalidArgument, MemoryStore, SessionService
from session_actor.hooks.hook import by_phase, key_of


async def nothing(ctx):
    """A hook."""


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": 7},
        {"fn": "nothing"},
        {"phase": "deleted"},
        {"phase": ["ended"]},
        {"priority": -1},
        {"priority": 101},
        {"priority": True},
        {"mandatory": 1},
        {"mandatory": True, "phase": "created"},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"timeout_s": None},
    ],
    ids=str,
)
def test_a_hook_that_can_never_be_right_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        Hook(**({"name": "bill", "fn": nothing, "phase": "ended"} | wrong))


def test_two_hooks_of_one_phase_have_different_names():
    Hook("bill", nothing, "created")
    with pytest.raises(InvalidArgument, match="another hook 'bill'"):
        SessionService.open(MemoryStore(), hooks=[Hook("bill", nothing, "ended"), Hook("bill", nothing, "ended")])
    with pytest.raises(InvalidArgument, match="must be a Hook"):
        SessionService.open(MemoryStore(), hooks=[nothing])
    SessionService.open(MemoryStore(), hooks=[Hook("bill", nothing, "ended"), Hook("bill", nothing, "created")])


@pytest.mark.parametrize("phase", ["created", "activated", "before_compaction"])
def test_hooks_that_open_something_begin_in_the_order_of_their_priority(phase):
    hooks = [Hook("c", nothing, phase, 90), Hook("a", nothing, phase, 10), Hook("b", nothing, phase, 10)]
    assert [hook.name for hook in by_phase(hooks)[phase]] == ["a", "b", "c"]


@pytest.mark.parametrize("phase", ["passivated", "after_compaction", "ended"])
def test_hooks_that_close_something_begin_in_the_reverse_order(phase):
    hooks = [Hook("c", nothing, phase, 90), Hook("a", nothing, phase, 10), Hook("b", nothing, phase, 10)]
    assert [hook.name for hook in by_phase(hooks)[phase]] == ["c", "b", "a"]


def test_a_key_tells_hook_birth_and_occasion_apart_and_stays_the_same():
    bill = Hook("bill", nothing, "ended")
    keys = {
        key_of(bill, "a1"),
        key_of(bill, "a2"),
        key_of(bill, "a1", "7"),
        key_of(Hook("bill", nothing, "created"), "a1"),
        key_of(Hook("\ud800", nothing, "ended"), "a1"),
    }
    assert len(keys) == 5
    assert key_of(bill, "a1") == "3bd30791665d60126c357a8a6d44133d"  # others may have noted it: it never changes
