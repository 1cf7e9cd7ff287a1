"""A conversation that outgrows its window: it is trimmed now and then, and what is shown stays in between."""

from __future__ import annotations

from itertools import pairwise

import pytest

from session_actor import ContextOverflow
from session_actor.blocks import Text, ToolCall, ToolResult
from session_actor.commands import (
    AddAssistant,
    AddReference,
    AddToolResult,
    AddUser,
    BuildRequest,
    Fork,
    Goto,
    NoteArtifact,
    Pop,
    Push,
)
from session_actor.frames import Turn
from session_actor.state.artifacts import artifacts_in
from session_actor.window import fitting
from session_actor.window.request_options import RESULT_CAP

from .asked import SMALL, Asked, messages_of, same, shown


def step(live: Asked, number: int, result: str) -> None:
    live.do(AddAssistant(f"step {number}", tool_calls=[ToolCall(f"c{number}", "ls", '{"path": "a"}')]))
    live.do(AddToolResult(f"c{number}", result))


def grown(live: Asked, dialect: str, until: int = 1) -> list[object]:
    """Exchanges until so many marks were made; the requests."""
    requests = []
    number = 0
    while len(live.state.marks) < until:
        number += 1
        live.do(AddUser(f"question {number} " + "why " * 300))
        requests.append(live.ask(dialect))
        live.do(AddAssistant(f"answer {number} " + "thus " * 300))
        assert number < 500
    return requests


@pytest.mark.parametrize(
    ("dialect", "steps"), [("openai_responses", 2_000), ("openai_chat", 400), ("anthropic", 400), ("gemini", 400)]
)
def test_one_user_turn_and_two_thousand_steps_stay_within_the_window(dialect, steps):
    live = Asked()
    live.do(AddUser("Do it all."))
    before: list[object] = []
    for number in range(steps):
        step(live, number, f"line {number} " * (5 + number * 37 % 150))
        if number % 20 and number < steps - 25:
            continue
        request = live.ask(dialect)
        now = messages_of(request)
        if live.asked.made is None:
            assert now[: len(before)] == before
        before = now
    assert "Do it all." in shown(request)
    assert len(live.state.marks) > steps // 200
    assert same(live.again(dialect), request)


def test_every_result_that_is_asked_with_is_shown_whole_at_first(dialect):
    live = Asked()
    live.do(AddUser("Do it all."))
    for number in range(100):
        step(live, number, f"needle{number} " + "hay " * 300)
        assert f"needle{number}" in shown(live.ask(dialect))


def test_two_megabytes_of_result_fit(live, dialect):
    live.do(AddUser("Read it."))
    step(live, 1, "start " + "all the words of the book " * 80_000 + " end")
    request = live.ask(dialect)
    assert "start" in shown(request)
    assert "end" in shown(request)
    assert any(note.what == "long_result" for note in request.omitted)


def test_many_long_results_of_one_turn_fit_together(live, dialect):
    live.do(AddUser("Read them."))
    live.do(AddAssistant("", tool_calls=[ToolCall(f"c{n}", "ls") for n in range(20)]))
    for n in range(20):
        live.do(AddToolResult(f"c{n}", f"needle{n} " + "all the words " * 5_000))
    request = live.ask(dialect)
    assert all(f"needle{n} " in shown(request) for n in range(20))
    assert live.asked.made.result_cap is not None
    assert same(live.ask(dialect), request)


def test_a_trim_is_in_the_record_of_the_request_that_it_was_made_for_and_stays(live, dialect):
    requests = grown(live, dialect)
    mark = live.state.marks[0]
    assert live.state.requests[requests[-1].seq].made == mark
    assert mark.at == requests[-1].head
    assert "question 1 " not in shown(requests[-1])
    assert any(note.what == "trim_note" for note in requests[-1].added)
    trimmed = messages_of(requests[-1])
    assert messages_of(live.ask(dialect))[: len(trimmed)] == trimmed
    assert live.state.marks == (mark,)


def test_a_trim_makes_room_for_long(live, dialect):
    requests = grown(live, dialect)
    assert requests[-1].input_tokens <= 0.62 * live.state.marks[0].allowance
    more = grown(live, dialect, 2)
    assert len(more) > 5


def test_goto_to_before_a_trim_undoes_it_and_a_fork_from_before_never_sees_it(live, dialect):
    requests = grown(live, dialect)
    live.do(Goto(requests[-2].head))
    assert same(live.ask(dialect), requests[-2])
    live.do(Fork(requests[-2].head, "idea", "what if", attach=False))
    assert "question 1 " in shown(live.ask(dialect, on="idea"))
    live.do(Goto("main"))
    assert "question 1 " not in shown(live.ask(dialect))


def test_a_larger_window_shows_what_a_smaller_one_had_no_room_for(live, dialect):
    grown(live, dialect)
    assert "question 1 " not in shown(live.ask(dialect))
    large = live.ask(dialect, model="gpt-4.1")
    assert "question 1 " in shown(large)
    assert "question 1 " not in shown(live.ask(dialect))


def test_pinned_frames_stay(live, dialect):
    live.do(Push("never push to master", "understood", pinned=True))
    requests = grown(live, dialect, 2)
    assert "never push to master" in shown(requests[-1])
    assert "question 1 " not in shown(requests[-1])


def test_artifacts_are_told_of_when_their_frames_are_hidden(live, dialect):
    live.do(AddUser("begin"))
    live.do(NoteArtifact("a.py", "modified"))
    live.do(NoteArtifact("b.py"))
    requests = grown(live, dialect, 2)
    text = shown(requests[-1])
    assert "a.py" in text
    assert "b.py" in text
    assert artifacts_in(live.state.stack())["a.py"] == "modified"


def test_old_results_become_stubs_before_anything_is_left_out(live, dialect):
    live.do(AddUser("Read them all."))
    number = 0
    while not live.state.marks:
        number += 1
        step(live, number, f"needle{number} " + "all the words of it " * 100)
        request = live.ask(dialect)
    mark = live.state.marks[0]
    assert mark.stubs
    assert not mark.cut
    assert "needle1 " not in shown(request)
    assert "step 1" in shown(request)
    assert f"needle{number} " in shown(request)


def test_results_too_short_to_become_a_line_are_no_reason_for_a_mark():
    live = Asked("tiny")
    live.do(AddUser("Do it all."))
    before: list[object] = []
    places = []
    for number in range(120):
        step(live, number, f"{number:03} " * 49)
        now = messages_of(live.ask("openai_chat"))
        if live.asked.made is not None:
            places.append(number)
            assert now[: len(before)] != before, "what is shown changes with a mark"
        before = now
    assert len(places) > 3
    assert min(later - first for first, later in pairwise(places)) > 3


def test_an_answer_too_long_for_a_smaller_model_is_named(live, dialect):
    live.do(AddUser("Tell me all."))
    live.do(AddAssistant("well " * 5_000))
    live.do(AddUser("Shorter."))
    assert live.ask(dialect)
    request = live.ask(dialect, model="tiny")
    assert "Shorter." in shown(request)
    live.do(AddUser("or " * 5_000))
    assert live.refuses(ContextOverflow, BuildRequest(dialect, "tiny")).part == "messages"


def test_reasoning_over_many_turns_of_no_text_is_nothing_to_stumble_on(live, dialect):
    for _ in range(3):
        live.do(AddUser(""))
        live.do(AddAssistant(""))
        live.do(AddUser([Text("")]))
    live.do(AddUser("Hello"))
    assert "Hello" in shown(live.ask(dialect))


@pytest.mark.parametrize("wanted", [1, 500, 8_000, 100_000])
def test_input_and_output_together_never_exceed_the_window(live, dialect, wanted):
    for number in range(60):
        live.do(AddUser(f"question {number} " + "why " * 400))
        request = live.ask(dialect, max_output_tokens=wanted)
        assert request.input_tokens + request.max_output_tokens <= SMALL.window
        live.do(AddAssistant("because " * 100))


def test_user_turns_without_an_answer_between_them_are_left_out_one_by_one(live, dialect):
    for number in range(20):
        live.do(AddReference(f"page{number} " + "data " * 2_000, "a page"))
    live.do(AddUser("What do they say?"))
    text = shown(live.ask(dialect))
    assert "What do they say?" in text
    assert "page19 " in text
    assert "page0 " not in text


def test_frames_of_results_with_the_next_call_are_left_out_too(live, dialect):
    live.do(AddUser("Do it all."))
    live.do(AddAssistant("", tool_calls=[ToolCall("c0", "ls")]))
    for number in range(80):
        result = ToolResult(f"c{number}", (Text(f"needle{number} " + "hay " * 500),))
        call = Turn("assistant", (ToolCall(f"c{number + 1}", "ls"),))
        live.do(Push(turns=(Turn("tool", (result,)), call)))
        request = live.ask(dialect)
        assert f"needle{number} " in shown(request)
    assert "Do it all." in shown(request)


def test_what_the_user_asked_for_in_a_frame_with_its_answer_stays(live, dialect):
    live.do(AddUser("First of all: hello."))
    call = Turn("assistant", (ToolCall("first", "ls"),))
    live.do(Push(turns=(Turn("user", (Text("Do it all."),)), call)))
    live.do(AddToolResult("first", "well"))
    for number in range(80):
        live.do(AddAssistant("hay " * 300, tool_calls=[ToolCall(f"c{number}", "ls")]))
        live.do(AddToolResult(f"c{number}", "hay " * 200))
        request = live.ask(dialect)
    assert "Do it all." in shown(request)
    assert "First of all" not in shown(request)


def test_going_back_to_a_remembered_place_shows_what_is_shown_from_there(live, dialect):
    for number in range(120):
        step(live, number, "hay")
        if number % 9 == 0:
            live.do(AddUser(f"question {number}"))
    live.ask(dialect)
    for n in (1, 2, 40, 3, 150):
        live.do(Pop(n))
        request = live.ask(dialect)
        live.state.window = None
        assert same(live.ask(dialect), request)


def test_a_cap_of_results_comes_down_to_its_least_within_one_request():
    cap, rounds = RESULT_CAP, 0
    while cap > fitting._SHORTEST_RESULT:
        cap, rounds = max(fitting._SHORTEST_RESULT, cap * 3 // 4), rounds + 1
    assert rounds < fitting._ROUNDS - 10, "with some for the trims: none is left for the next request at the same head"
