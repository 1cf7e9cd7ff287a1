"""The facts of a range, and what of them a later summary still keeps."""

from __future__ import annotations

import msgspec

from session_actor.blocks import CallRef, Text, ToolCall, ToolResult
from session_actor.compaction.facts import Fact, Facts
from session_actor.compaction.frame_facts import facts_of
from session_actor.compaction.known import known_in
from session_actor.compaction.merge import merged
from session_actor.frames import Artifact, Frame, Turn

from .summaries import FACTS

CAP = 4_000


def frame(number, user="", assistant="", **more):
    return Frame(number, number - 1 or None, number, 0, user_input=user, assistant_output=assistant, **more)


def result(number, text):
    call, answer = ToolCall("1", "read"), ToolResult("1", (Text(text),), ref=CallRef(number, 0))
    return Frame(number, None, 1, 0, given_turns=(Turn("assistant", (call,)), Turn("tool", (answer,))))


def facts(*frames, previous=None, cap_tokens=CAP, **more):
    return merged([facts_of(one) for one in frames], previous, cap_tokens=cap_tokens, **more)


def said(kept):
    return [fact.text for fact in kept]


def test_nothing_gives_no_facts():
    assert merged((), cap_tokens=CAP) == Facts()


def test_rules_decisions_and_assumptions_are_kept_once_in_their_first_wording_and_never_expire():
    kept = facts(
        frame(1, "Never push.", decisions=("Use  tabs",), assumptions=("Caf\u00e9 is open",)),
        frame(2, "Never  push.", decisions=("Use tabs", "Use  tabs"), assumptions=("Cafe\u0301 is open", "")),
    )
    assert said(kept.constraints) == ["Never push."]
    assert said(kept.decisions) == ["Use tabs"]
    assert said(kept.assumptions) == ["Caf\u00e9 is open"]
    assert (kept.decisions[0].frame, kept.decisions[0].seen, kept.decisions[0].last_seen) == (1, 2, 2)
    for number in range(3, 13):
        kept = facts(frame(number, "Go on."), previous=kept)
    assert said(kept.constraints) == ["Never push."]
    assert said(kept.decisions) == ["Use tabs"]
    assert said(kept.assumptions) == ["Caf\u00e9 is open"]


def test_a_retracted_assumption_is_none_any_more():
    stated = facts(frame(1, assumptions=("The disk is large", "The net is fast")))
    kept = facts(frame(2, "Go on."), previous=stated, retracted={"The  disk is\nlarge": 3})
    assert said(kept.assumptions) == ["The net is fast"]
    assert kept.retracted == (Fact("The disk is large", 1, "", 1, 1),)
    later = facts(frame(3, "Go on."), previous=kept)
    assert said(later.assumptions) == ["The net is fast"]
    assert later.retracted == kept.retracted


def test_an_assumption_that_is_stated_anew_after_its_retraction_is_live_until_the_next():
    kept = facts(frame(1, assumptions=("The disk is large",)), retracted={"The disk is large": 2})
    assert said(kept.retracted) == ["The disk is large"]
    again = facts(frame(3, assumptions=("The  disk is large",)), previous=kept, retracted={"The disk is large": 2})
    assert (said(again.assumptions), again.retracted) == (["The disk is large"], ())
    on = facts(frame(4, "Go on."), previous=again, retracted={"The disk is large": 2})
    assert (said(on.assumptions), on.retracted) == (["The disk is large"], ())
    last = facts(frame(5, "Go on."), previous=on, retracted={"The disk is large": 5})
    assert (last.assumptions, said(last.retracted)) == ((), ["The disk is large"])


def test_other_case_or_other_words_are_another_assumption():
    kept = facts(frame(1, assumptions=("The disk is large", "the disk is large")), retracted={"The disk is large": 2})
    assert said(kept.assumptions) == ["the disk is large"]


def test_names_of_the_last_quarter_and_those_seen_twice_are_kept():
    kept = facts(
        frame(1, "See OPS-1, OPS-2."),
        frame(2, "See OPS-2."),
        frame(3, "Go on."),
        frame(4, "See OPS-4."),
    )
    assert said(kept.identifiers) == ["OPS-2", "OPS-4"]


def test_a_name_that_is_not_seen_again_expires_after_two_rounds():
    first = facts(frame(1, "See OPS-1 and OPS-2."))
    second = facts(frame(2, "See OPS-2."), previous=first)
    assert [(fact.text, fact.missed) for fact in second.identifiers] == [("OPS-1", 1), ("OPS-2", 0)]
    third = facts(frame(3, "Go on."), previous=second)
    assert [(fact.text, fact.missed) for fact in third.identifiers] == [("OPS-2", 1)]
    assert facts(frame(4, "Go on."), previous=third).identifiers == ()


def test_of_many_names_those_count_most_that_somebody_said():
    listing = " ".join(f"src/file{number}.py" for number in range(200))
    kept = facts(
        frame(1, "See docs/plan.md."), result(2, listing), result(3, listing), frame(4, "", "See docs/rest.md.")
    )
    names = said(kept.identifiers)
    assert len(names) == 64
    assert "docs/rest.md" in names
    assert len(said(facts(result(1, listing), cap_tokens=400).identifiers)) < 30


def test_a_name_that_looks_like_a_secret_is_never_kept():
    kept = facts(frame(1, "Use AKIAIOSFODNN7EXAMPLE, token=3f9a2c71d0be4f5a6b7c8d9e0f1a2b3c, or OPS-1."))
    assert said(kept.identifiers) == ["OPS-1"]


def test_artifacts_are_kept_and_modified_once_is_modified():
    kept = facts(
        frame(1, artifacts=(Artifact("a.py", "modified"), Artifact("b.py", "read"))),
        frame(2, artifacts=(Artifact("a.py", "read"),)),
    )
    assert [(fact.text, fact.kind) for fact in kept.artifacts] == [("b.py", "read"), ("a.py", "modified")]


def test_the_last_question_is_open_until_it_is_answered():
    asked = facts(frame(1, "Which one? Why?"), frame(2, "", "The first."), frame(3, "And how many of them are there?"))
    assert asked.open_question is not None
    assert asked.open_question.text == "And how many of them are there?"
    assert asked.answered == ("Which one?", "Why?")
    answered = facts(frame(4, "", "Five."), previous=asked)
    assert answered.open_question is None
    assert answered.answered == ("Which one?", "Why?", "And how many of them are there?")


def test_a_call_is_no_answer():
    asked = facts(frame(1, "How many?"), result(2, "5"))
    assert asked.open_question is not None


def test_the_goal_is_what_was_said_first_in_more_than_two_words():
    kept = facts(frame(1, "Hi there"), frame(2, "Please build a bridge."), frame(3, "Now a tunnel, please."))
    assert kept.goal == Fact("Please build a bridge.", 2, "goal")
    assert facts(frame(4, "Now another thing."), previous=kept).goal == kept.goal
    assert said(kept.inputs) == ["Hi there", "Please build a bridge.", "Now a tunnel, please."]


def test_facts_can_be_stored_and_show_nothing_of_the_conversation():
    assert msgspec.json.decode(msgspec.json.encode(FACTS), type=Facts) == FACTS
    assert "push" not in repr(FACTS)
    assert "push" not in repr(FACTS.constraints[0])
    assert "push" not in repr(facts_of(frame(1, "Never push.")))


def test_what_is_known_are_all_names_and_numbers():
    known = known_in([facts_of(frame(1, "See a/b.py:12 and OPS-1."))], ["Take 17 of c/d.py"])
    assert known.names == {"a/b.py", "OPS-1", "c/d.py"}
    assert {"17"} <= known.numbers
    assert "OPS" not in repr(known)
