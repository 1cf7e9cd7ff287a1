"""Views: what is hidden, what is said of it, what of a long result is shown, and which reasoning has become stale."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.blocks import Image, Text, Thinking
from session_actor.frames import Artifact
from session_actor.ledger.entries import AssistantEntry, UserEntry
from session_actor.ledger.long import shortened
from session_actor.ledger.texts import one_line
from session_actor.ledger.view import View, stale_below
from session_actor.requests.request import Note
from session_actor.tokens.estimate import estimate_tokens

from .ledger_talk import DIALECTS, MODELS, PNG, Talk, call, said, text_of, words

every_dialect = pytest.mark.parametrize("dialect", DIALECTS)
NOTE = "[Earlier messages are not shown.]"


def steps(count: int) -> Talk:
    """A question, and so many steps to answer it: frames 2 and 3, 4 and 5, …"""
    talk = Talk()
    talk.user("Why?")
    for number in range(count):
        talk.says(f"step {number}", calls=[call(f"c{number}")])
        talk.result(f"c{number}", f"result {number}")
    return talk


# --- the cut ---------------------------------------------------------------------------------------------------------


@every_dialect
def test_below_the_cut_only_what_is_kept_is_shown_behind_a_note(dialect):
    talk = steps(4)
    chunks = talk.chunks(dialect, View(cut=6, kept=(1,), trimmed=True))
    assert chunks[0].entries == (UserEntry((Text(NOTE), Text("Why?"))),)
    assert text_of(chunks[1].entries[0]) == "step 2"
    assert len(chunks) == 3
    assert words(chunks, "added") == ["trim_note"]
    assert chunks[0].omitted == (Note("trimmed", 6),)


@every_dialect
def test_a_view_that_begins_in_the_middle_needs_no_bridge(dialect):
    chunks = steps(2).chunks(dialect, View(cut=4, trimmed=True))
    assert chunks[0].entries == (UserEntry((Text(NOTE),)),)
    assert words(chunks, "added") == ["trim_note"]


@every_dialect
def test_where_frames_are_hidden_between_two_steps_the_user_says_so(dialect):
    talk = steps(4)
    chunks = talk.chunks(dialect, View(cut=8, kept=(1, 2, 3), trimmed=True))
    assert chunks[1].entries[-1] == UserEntry((Text("[Messages between are not shown.]"),))
    assert text_of(chunks[2].entries[0]) == "step 3"
    assert words(chunks, "added") == ["trim_note", "gap_note"]


def test_two_answers_with_frames_hidden_between_are_not_one():
    talk = Talk()
    for text in ("a", "b", "c"):
        talk.user(text)
        talk.says(text)
    chunks = talk.chunks(view=View(cut=6, kept=(1, 2), trimmed=True))
    assert [text_of(chunk.entries[0]) for chunk in chunks[1:]] == ["a", "c"]


def test_the_note_lists_what_was_read_and_modified():
    artifacts = (Artifact("a.py", "read"), Artifact("b\n]\x1b.py", "modified"), Artifact("a.py", "modified"))
    chunks = steps(2).chunks(view=View(cut=4, trimmed=True, artifacts=(*artifacts, Artifact("c.py", "read"))))
    note = "[Earlier messages are not shown. Read in them: c.py. Modified in them: a.py, b ] .py.]"
    assert text_of(chunks[0].entries[0]) == note


def test_a_view_of_a_note_alone_is_empty():
    talk = steps(1)
    assert talk.fold(view=View(cut=9, trimmed=True)).is_empty


def test_a_result_whose_call_is_hidden_is_the_users_text():
    talk = steps(1)
    talk.says(calls=[call("late")])
    talk.user("Go on.")
    talk.result("late", "here it is")
    entries = talk.entries(view=View(cut=5, trimmed=True))
    assert "Late result of an earlier tool call (call late):" in text_of(entries[0])
    assert "here it is" in text_of(entries[0])


def test_a_long_name_keeps_its_ends():
    assert one_line("a" * 50 + "b" * 50, 10) == "aaaaaa…bbb"
    assert one_line("a\r\nb", 10) == "a  b"


# --- long results ----------------------------------------------------------------------------------------------------


@every_dialect
def test_a_long_result_shows_its_head_and_its_tail(dialect):
    lines = [f"line {number} of the log\n" for number in range(20_000)]
    talk = Talk()
    talk.user("a")
    talk.says(calls=[call("c1")])
    talk.result("c1", "".join(lines), Image(data=PNG, media_type="image/png"))
    chunks = talk.chunks(dialect, result_cap_tokens=1_000)
    result = chunks[-1].entries[1].results[0]
    head, note, tail = result.blocks[0].text.split("\n\n")
    whole = "".join(lines)
    assert result.why == "cut"
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert 2 < len(head) / len(tail) < 2.7
    assert f"({len(whole) - len(head) - len(tail):,} characters) are left out here" in note
    assert 800 < estimate_tokens(result.blocks[0].text, "o200k") <= 1_000
    assert words(chunks, "omitted") == ["long_result"]


@given(st.text(max_size=300).map(lambda text: text * 20), st.integers(0, 400))
def test_what_is_left_of_any_long_text_is_its_ends_and_within_the_cap(text, cap):
    short = shortened(text, cap, "claude3")
    if short is None:
        assert estimate_tokens(text, "claude3") <= cap + len(text) // 2_048 + 1
        return
    head, _, rest = short.partition("\n\n[… about ")
    tail = rest.partition(" left out here …]\n\n")[2]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) < len(text)
    assert estimate_tokens(head, "claude3") + estimate_tokens(tail, "claude3") <= max(cap, 2) * 1.5


def test_a_result_of_two_megabytes_costs_no_more_than_what_is_shown_of_it():
    talk = Talk()
    talk.user("a")
    talk.says(calls=[call("c1")])
    talk.result("c1", "Ω¶" * 1_000_000)
    (result,) = talk.entries(result_cap_tokens=500)[2].results
    assert estimate_tokens(result.blocks[0].text, "o200k") <= 520


# --- stale reasoning -------------------------------------------------------------------------------------------------

THINKING = Thinking("hm", "c2ln")


def thought(*blocks):
    return said(THINKING, *blocks, dialect="anthropic", model=MODELS["anthropic"])


def stale(talk: Talk, change: int) -> int:
    return stale_below(talk.state.table.at(change), talk.state.table.at)


def shown(talk: Talk, below: int) -> list[bool]:
    entries = [entry for entry in talk.entries(view=View(stale=below)) if isinstance(entry, AssistantEntry)]
    return [THINKING in entry.blocks for entry in entries]


def test_new_instructions_make_the_reasoning_of_finished_exchanges_stale():
    talk = Talk()
    talk.user("a")
    talk.turns(thought(Text("b")))
    change = talk.configure(system="new").id
    talk.user("c")
    talk.turns(thought(Text("d")))
    assert stale(talk, change) == change + 1
    assert shown(talk, stale(talk, change)) == [False, True]


def test_an_exchange_that_goes_on_keeps_its_reasoning_for_good():
    talk = Talk()
    talk.user("a")
    talk.turns(thought(Text("b")))
    talk.user("c")
    talk.turns(thought(call("c1")))
    talk.result("c1", "one")
    change = talk.configure(system="new").id
    below = stale(talk, change)
    assert below == 3
    assert shown(talk, below) == [False, True]
    talk.turns(thought(Text("d")))
    talk.user("e")
    assert stale(talk, change) == below
    assert shown(talk, below) == [False, True, True]


def test_before_the_first_answer_nothing_is_stale():
    talk = Talk()
    change = talk.configure(system="s").id
    assert stale(talk, change) == 0
    talk.user("a")
    assert stale(talk, talk.frames[-1].id) == 0
    talk.turns(thought(Text("b")))
    talk.user("c")
    assert stale(talk, talk.frames[-1].id) == talk.frames[-1].id
