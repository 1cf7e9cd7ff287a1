"""Sealing and composing, for any facts and any text."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from session_actor.compaction.facts import Fact, Facts
from session_actor.compaction.frame_facts import facts_of
from session_actor.compaction.gate import Source, allowed_tokens, evaluate, judge
from session_actor.compaction.headings import HEADINGS, Layout, compose
from session_actor.compaction.known import Known
from session_actor.compaction.merge import merged
from session_actor.compaction.seal import seal
from session_actor.compaction.texts import key
from session_actor.frames import Frame
from session_actor.tokens.estimate import FAMILIES, estimate_tokens

from .summaries import CASES, FACTS, GOOD

STRANGE = (
    *("## Goal", "```", "~~~ x", "- None", "None", "none.", "- a", "1. a", "Human: go", "<|im_end|>", "[INST]", "..."),
    *("TODO", "I'm sorry, I can't", "Error: no", "frame 99999", "a/b/c.py 3f9a2c7 OPS-1 17 18 19 20", "\ud800", "\x00"),
    *("# x", "\u200b", "Never push.", "Push.", "e\u0301", "\u00e9", "sk-abcdefghijklmnop1234", "password: hunter22"),
    *('{"tool_calls": []}', "[secret]", "*", "**a**", '"a"', "a b", "a", "\r", "Was ist das und nicht der die mit?"),
)
WORDS = st.one_of(st.sampled_from(STRANGE), st.text(max_size=30), st.lists(st.sampled_from(STRANGE)).map(" ".join))
KINDS = st.sampled_from(["", "read", "modified"])
FACT = st.builds(Fact, WORDS, st.integers(1, 9), KINDS)
SOME = st.lists(FACT, max_size=5).map(tuple)
ANY_FACTS = st.builds(
    Facts,
    goal=st.none() | FACT,
    constraints=SOME,
    decisions=SOME,
    assumptions=SOME,
    retracted=SOME,
    artifacts=SOME,
    identifiers=st.lists(st.sampled_from(["OPS-1", "a/b.py", "1,250 ms", "3f9a2c7"]), unique=True).map(
        lambda names: tuple(Fact(name, 1) for name in names)
    ),
    open_question=st.none() | FACT,
    answered=st.lists(WORDS, max_size=3).map(tuple),
    inputs=SOME,
    languages=st.sampled_from([(), ("en",), ("de",), ("han",)]),
)
SOURCE = Source(Known(frozenset(), frozenset()), (), 40_000, 60_000, ())
SETTINGS = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(ANY_FACTS, st.sampled_from(FAMILIES))
def test_a_summary_of_facts_alone_passes_whatever_they_are(facts, family):
    text = compose(facts, cap_tokens=4_000, family=family)
    assert text == compose(facts, cap_tokens=4_000, family=family)
    verdict = evaluate(text, facts, SOURCE, cap_tokens=4_000, family=family)
    assert verdict.ok, (verdict.errors, text)
    assert verdict.reasons == ()
    assert verdict.sealed == text


@SETTINGS
@example(Facts(retracted=(Fact("## Goal", 1),)), "## Retracted\n- The sea is calm\n\n```\n## Progress\nNone\n")
@given(ANY_FACTS, st.sampled_from([GOOD, *(case.text for case in CASES if len(case.text) < 5_000)]) | st.text())
def test_sealing_again_changes_nothing_and_adds_all_that_has_a_place(facts, text):
    sealed = seal(text, facts)
    assert seal(sealed, facts) == sealed
    layout = Layout(sealed)
    lacking = {reason.code for reason in judge(sealed, facts, SOURCE, cap_tokens=8_000)}
    if layout.section("Constraints") is not None:
        assert "constraint_missing" not in lacking
    if layout.section("Progress") is not None:
        assert "retraction_missing" not in lacking


@SETTINGS
@given(st.lists(st.tuples(WORDS, WORDS, st.lists(WORDS, max_size=2), st.lists(WORDS, max_size=2)), max_size=6))
def test_any_conversation_has_facts_that_a_summary_can_keep(talk):
    frames = [
        Frame(
            place, None, 1, 0, user_input=user, assistant_output=answer, assumptions=tuple(more), decisions=tuple(done)
        )
        for place, (user, answer, more, done) in enumerate(talk, 1)
    ]
    facts = merged([facts_of(frame) for frame in frames], cap_tokens=2_000)
    verdict = evaluate(compose(facts, cap_tokens=2_000), facts, SOURCE, cap_tokens=2_000)
    assert verdict.ok, verdict.errors


@SETTINGS
@given(st.text() | st.sampled_from(STRANGE), st.text(max_size=10))
def test_no_text_is_too_strange_to_be_judged(text, stop_reason):
    verdict = evaluate(text, FACTS, SOURCE, cap_tokens=1_000, stop_reason=stop_reason)
    assert not verdict.ok
    assert not verdict.sealed


@pytest.mark.parametrize("text", [None, b"## Goal", 5, ["## Goal"]])
def test_what_is_no_text_is_refused(text):
    assert evaluate(text, FACTS, SOURCE, cap_tokens=1_000).codes == ("not_text",)


def test_the_cap_gives_way_to_what_has_to_be_kept_up_to_half_of_the_source():
    rules = tuple(Fact(f"Never delete the table of orders number {number}.", 1) for number in range(100))
    facts = Facts(constraints=rules)
    text = compose(facts, cap_tokens=500)
    needed = estimate_tokens(text)
    assert needed > 1_000
    assert allowed_tokens(facts, SOURCE, 500) == needed + 125
    assert evaluate(text, facts, SOURCE, cap_tokens=500).ok
    small = SOURCE._replace(tokens=needed)
    assert allowed_tokens(facts, small, 500) == needed // 2
    assert evaluate(text, facts, small, cap_tokens=500).codes == ("too_long", "no_gain")


def test_what_was_said_last_fills_a_summary_up_to_the_cap():
    facts = Facts(
        inputs=tuple(Fact(f"Please do thing number {number} of all of them.", number) for number in range(40))
    )
    text = compose(facts, cap_tokens=300)
    assert estimate_tokens(text) <= 300
    assert "number 39" in text
    assert "number 0 " not in text
    assert text.index("number 38") < text.index("number 39")


def test_the_headings_are_there_once_in_order_and_retracted_only_when_something_was():
    text = compose(Facts(), cap_tokens=500)
    assert [line for line in text.split("\n") if line[:1] == "#"] == [one for one in HEADINGS if one != "## Retracted"]
    assert "## Retracted\n- a" in compose(Facts(retracted=(Fact("a", 1),)), cap_tokens=500)


def test_a_secret_in_a_fact_is_never_sealed():
    facts = Facts(decisions=(Fact("Use ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8 there", 1),))
    text = compose(Facts(), cap_tokens=500)
    sealed = evaluate(text, facts, SOURCE, cap_tokens=1_000).sealed
    assert "- Use [secret] there" in sealed
    assert "ghp_" not in sealed


def test_what_is_put_back_stands_at_the_end_of_its_section():
    facts = Facts(decisions=(Fact("Use tabs", 1), Fact("Use  spaces", 1)), constraints=(Fact("Never push.", 1),))
    text = "## Constraints\nNone\n\n## Decisions\nWe chose this:\n- Use tabs\n\n\n## Progress\nDone."
    assert seal(text, facts) == (
        "## Constraints\n- Never push.\n\n## Decisions\nWe chose this:\n- Use tabs\n- Use spaces\n"
        "\n\n## Progress\nDone."
    )


@pytest.mark.parametrize(
    "line",
    [
        "Never push.",
        "- Never  push.",
        "* **Never push.**",
        '1. "Never push."',
        "As said: Never push. Really.",
        "`Never push.`",
    ],
)
def test_a_rule_is_there_as_a_point_or_as_a_whole_sentence_of_one(line):
    facts = Facts(constraints=(Fact("Never push.", 1),))
    text = f"## Constraints\n{line}\n"
    assert seal(text, facts) == text


@pytest.mark.parametrize(
    "line", ["Never push to main?", "Do not: Ever Never push", "We say never push.", "XNever push.", "Never push.x"]
)
def test_a_part_of_another_sentence_is_not_the_rule(line):
    facts = Facts(constraints=(Fact("Never push", 1),))
    assert "- Never push" in seal(f"## Constraints\n{line} now\n", facts).split("\n")


def test_equal_texts_are_told_by_nfc_and_folded_white_space_alone():
    assert key(" e\u0301\u00a0\n x") == key("\u00e9 x") == "\u00e9 x"
    assert key("A") != key("a")
    assert key("\ufb01") != key("fi")


def test_points_that_say_nothing_beside_others_are_points():
    facts = Facts(decisions=(Fact("- None", 1), Fact("...", 1)))
    source = Source(Known(frozenset(), frozenset()), (), 6_000, 9_000, ())
    text = compose(facts, cap_tokens=500)
    assert seal(text, facts) == text
    assert not [reason for reason in judge(text, facts, source, cap_tokens=500) if reason.code == "decision_missing"]
