"""The book: what its records add up to, that they are read as ever, and that a snapshot says the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import RecordUnknown, RecordUnreadable
from session_actor.hooks.book import Book
from session_actor.hooks.records import (
    KINDS,
    DeletionAsked,
    DeletionDone,
    HookBegun,
    HookCut,
    HookDiscarded,
    HookDone,
    HookDriven,
    HookFailed,
    HooksDue,
    HooksVoid,
    decode,
)
from session_actor.persistence.format.values import encode_record_data

GOLDEN = [
    (
        HooksDue("user-42", "b1", 1_700_000_000_000_000, "done", (("bill", "k1"), ("learn", "k2"))),
        (
            '{"session":"user-42","birth":"b1","created_at_us":1700000000000000,"reason":"done",'
            '"hooks":[["bill","k1"],["learn","k2"]]}'
        ),
    ),
    (
        HooksDue("user-42", "b1", 0, "deleted", (), delete=True),
        '{"session":"user-42","birth":"b1","created_at_us":0,"reason":"deleted","hooks":[],"delete":true}',
    ),
    (HooksVoid("user-42"), '{"session":"user-42"}'),
    (HookBegun("k1"), '{"hook":"k1"}'),
    (HookCut("k1"), '{"hook":"k1"}'),
    (HookFailed("k1", "ValueError"), '{"hook":"k1","error":"ValueError"}'),
    (HookFailed("k1", "ValueError", dead=True), '{"hook":"k1","error":"ValueError","dead":true}'),
    (HookDone("k1"), '{"hook":"k1"}'),
    (HookDriven("k1"), '{"hook":"k1"}'),
    (HookDiscarded("k1"), '{"hook":"k1"}'),
    (DeletionAsked("user-42"), '{"session":"user-42"}'),
    (DeletionDone("user-42"), '{"session":"user-42"}'),
]
WORDS = {
    HooksDue: "hooks_due",
    HooksVoid: "hooks_void",
    HookBegun: "hook_begun",
    HookCut: "hook_cut",
    HookFailed: "hook_failed",
    HookDone: "hook_done",
    HookDriven: "hook_driven",
    HookDiscarded: "hook_discarded",
    DeletionAsked: "deletion_asked",
    DeletionDone: "deletion_done",
}


@pytest.mark.parametrize(("record", "data"), GOLDEN, ids=lambda value: getattr(value, "kind", ""))
def test_a_record_is_written_and_read_as_ever(record, data):
    assert encode_record_data(record).decode() == data
    assert record.kind == WORDS[type(record)]
    assert decode(record.kind, data.encode()) == record


def test_every_kind_has_a_golden_line():
    assert {type(record) for record, _ in GOLDEN} == set(KINDS.values())


def test_a_kind_of_a_newer_version_is_refused_by_name_and_data_that_are_none_too():
    with pytest.raises(RecordUnknown, match="hooks_moved"):
        decode("hooks_moved", b"{}")
    with pytest.raises(RecordUnreadable):
        decode("hook_done", b"[]")


def test_no_record_shows_the_reason_of_an_end():
    assert repr(HooksDue("s", "b", 0, "a canary", ())) == "HooksDue()"


def due(*names: str, session: str = "s", birth: str = "b", delete: bool = False) -> HooksDue:
    return HooksDue(session, birth, 1, "done", tuple((name, f"{birth}-{name}") for name in names), delete)


def book(*records) -> Book:
    made = Book()
    for record in records:
        made.apply(record, 5)
    return made


def test_what_is_due_is_pending_until_it_is_done():
    made = book(due("x", "y"), HookBegun("b-x"), HookDone("b-x"))
    assert list(made.entries["s"].hooks) == ["b-y"]
    made.apply(HookDone("b-y"), 6)
    assert not made.entries
    assert made.find("b-y") is None


def test_a_deletion_stays_in_the_book_when_all_is_done():
    made = book(due("x", delete=True), HookDone("b-x"))
    assert made.entries["s"].hooks == {}
    made.apply(DeletionDone("s"), 6)
    assert not made.entries


def test_an_end_that_never_came_is_replaced_by_the_next_one():
    made = book(due("x", "y"), due("z"))
    assert list(made.entries["s"].hooks) == ["b-z"]
    assert made.find("b-x") is None


def test_tries_are_counted_and_one_that_closing_cut_short_is_not():
    made = book(due("x"), HookBegun("b-x"), HookFailed("b-x", "ValueError"), HookBegun("b-x"), HookCut("b-x"))
    _, pending = made.find("b-x")
    assert (pending.attempt, pending.failures, pending.unfinished, pending.error) == (1, 1, 0, "ValueError")
    made.apply(HookBegun("b-x"), 7)
    assert (pending.attempt, pending.unfinished) == (2, 1)
    made.apply(HookFailed("b-x", "OSError", dead=True), 8)
    assert pending.dead
    made.apply(HookDriven("b-x"), 9)
    assert (pending.attempt, pending.failures, pending.unfinished, pending.dead) == (2, 0, 0, False)


_sessions = st.sampled_from(["s", "t", "\ud800"])
_keys = st.sampled_from(["sb-x", "sb-y", "tc-x", "tb-x"])
_records = st.one_of(
    st.builds(
        lambda session, birth, names, delete: due(*names, session=session, birth=f"{session}{birth}", delete=delete),
        _sessions,
        st.sampled_from(["b", "c"]),
        st.lists(st.sampled_from(["x", "y", "z"]), unique=True),
        st.booleans(),
    ),
    st.builds(HooksVoid, _sessions),
    st.builds(DeletionAsked, _sessions),
    st.builds(DeletionDone, _sessions),
    st.builds(HookFailed, _keys, st.just("E"), st.booleans()),
    *(st.builds(kind, _keys) for kind in (HookBegun, HookCut, HookDone, HookDriven, HookDiscarded)),
)


@given(st.lists(_records, max_size=20), st.lists(_records, max_size=5))
def test_a_saved_book_goes_on_as_the_one_that_was_saved(before, after):
    whole, saved = book(*before), book(*before).saved()
    again = Book.read(saved)
    for record in after:
        whole.apply(record, 9)
        again.apply(record, 9)
    assert again.saved() == whole.saved()
    assert all(again.find(key) == whole.find(key) for key in ("sb-x", "sb-y", "tc-x"))


def test_a_book_of_another_version_is_not_read():
    assert Book.read(b'{"version":2,"entries":[]}') is None
    assert Book.read(b"{}") is None
