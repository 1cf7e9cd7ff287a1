"""Idempotency keys: one change and one reply for a command that is sent again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from session_actor.blocks import CallRef, Native, Text, ToolCall
from session_actor.commands import (
    AddAssistant,
    AddToolResult,
    AddUser,
    Checkpoint,
    Configure,
    DeleteBranch,
    End,
    Fork,
    Goto,
    Pop,
    Push,
)
from session_actor.errors import InvalidArgument, KeyConflict, NameTaken
from session_actor.frames import Tool, Usage
from session_actor.given.fingerprint import fingerprint
from session_actor.state.decide import decide
from session_actor.state.keys import KEYS_KEPT, Repeat

from .live import Live


@pytest.mark.parametrize(
    "command",
    [
        Push("d", key="k"),
        AddUser("d", key="k"),
        Pop(2, key="k"),
        Pop(9, key="k"),
        Goto(1, key="k"),
        Goto("main", key="k"),
        Fork(1, user_input="x", key="k"),
        Fork(1, key="k"),
        Checkpoint("here", key="k"),
        Configure("be kind", key="k"),
        End(key="k"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_command_sent_again_is_done_once_and_answered_the_same(live, command):
    first = live.do(command)
    seq = live.state.seq
    if not isinstance(command, End):
        live.do(Push("later"))
        live.do(Goto(2))

    repeat = decide(live.state, command)
    assert repeat == Repeat(first, seq)
    assert decide(live.replayed(), command) == Repeat(first, seq)


def test_a_deleted_name_and_a_refusal_later_do_not_change_the_first_reply(live):
    live.do(Fork(1, branch="idea", attach=False))
    live.do(DeleteBranch("idea", key="k"))

    assert decide(live.state, DeleteBranch("idea", key="k")) == Repeat(None, live.state.seq)


def test_other_arguments_under_a_key_are_a_conflict(live):
    live.do(Push("d", key="k"))
    conflict = live.refuses(KeyConflict, Push("e", key="k"))

    assert (conflict.key, conflict.seq) == ("k", 5)
    live.refuses(KeyConflict, AddUser("d", key="k"))
    live.refuses(KeyConflict, Push("d", on="main", key="k"))


def test_level_and_expected_head_are_no_arguments(live):
    first = live.do(Push("d", key="k", expect_head=3))

    assert live.do(Push("d", key="k", expect_head=4, durability="synced")) is first


def test_a_refusal_keeps_no_key(live):
    live.refuses(NameTaken, Checkpoint("main", key="k"))

    assert live.do(Push("d", key="k")).id == 4


def test_the_same_tool_result_under_a_new_key_changes_nothing(live):
    live.do(AddAssistant("", [ToolCall("a", "t")]))
    first = live.do(AddToolResult("a", "x", key="k1"))

    assert live.do(AddToolResult("a", "x", key="k2")) is first
    assert list(live.state.keys.entries()) == ["k1"]


def test_a_session_knows_its_newest_keys():
    live = Live()
    for number in range(KEYS_KEPT + 2):
        event, *_ = decide(live.state, Push(str(number), key=f"k{number}"))
        live.record(event)

    assert len(live.state.keys.entries()) == KEYS_KEPT
    assert isinstance(decide(live.state, Push("2", key="k2")), Repeat)
    assert live.do(Push("1", key="k1")).id == KEYS_KEPT + 3
    assert list(live.replayed().keys.entries()) == list(live.state.keys.entries())


@pytest.mark.parametrize("key", ["", "x" * 513, 7, b"k"])
def test_an_unusable_key_is_refused(live, key):
    live.refuses(InvalidArgument, Push("d", key=key))


def test_two_sessions_do_not_share_keys(live):
    live.do(Push("d", key="k"))

    assert Live().do(Push("other", key="k")).user_input == "other"


def test_lists_and_tuples_are_the_same_arguments():
    assert fingerprint(Push("a", assumptions=["x"])) == fingerprint(Push("a", assumptions=("x",)))
    assert fingerprint(Configure(tools=[Tool("t", schema={"a": 1, "b": 2})])) == fingerprint(
        Configure(tools=(Tool("t", schema={"b": 2, "a": 1}),))
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Push("a", "b"), Push("b", "a")),
        (Push("ab"), Push("a", "b")),
        (Push("a", assumptions=["xy"]), Push("a", assumptions=["x", "y"])),
        (Push("a", assumptions=["x"]), Push("a", decisions=["x"])),
        (Push("a", turns=[]), Push("a")),
        (Pop(1), Pop(2)),
        (Pop(1, "step"), Pop(1)),
        (AddUser("a"), AddAssistant("a")),
        (AddUser([Text("a")]), AddUser("a")),
        (AddUser("\ud800"), AddUser("\ud801")),
        (AddToolResult("1", "x"), AddToolResult(CallRef(1, 0), "x")),
        (AddAssistant([Native("d", None, {"n": 1})]), AddAssistant([Native("d", None, {"n": "1"})])),
        (AddAssistant([Native("d", None, {"n": 1})]), AddAssistant([Native("d", None, {"n": True})])),
        (AddAssistant([Native("d", None, {"n": 1})]), AddAssistant([Native("d", None, {"n": 1.0})])),
        (AddAssistant([Native("d", None, [[], [1]])]), AddAssistant([Native("d", None, [[[]], 1])])),
        (AddAssistant("", usage=Usage(raw=b"1")), AddAssistant("", usage=Usage(raw="1"))),
        (AddAssistant("", usage=Usage(raw=None)), AddAssistant("")),
    ],
)
def test_different_arguments_have_different_fingerprints(one, other):
    assert fingerprint(one) != fingerprint(other)


def test_arguments_that_cannot_be_kept_have_no_fingerprint(live):
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    live.refuses(InvalidArgument, AddAssistant([Native("d", None, deep)], key="k"))
    live.refuses(InvalidArgument, AddAssistant([Native("d", None, {1, 2})], key="k"))
    live.refuses(InvalidArgument, Push(object(), key="k"))


def test_a_fingerprint_is_the_same_in_every_process():
    code = (
        "from session_actor.commands import Push; from session_actor.given.fingerprint import fingerprint;"
        "print(fingerprint(Push('a', assumptions=['x'], turns=[], key='k')))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert (
        other.stdout.strip()
        == fingerprint(Push("a", assumptions=["x"], turns=[]))
        == "47abf5b784bf23929ea60513eb6b797e"
    )
