"""What the gate looks at: opposites, languages, numbers, words that are no summary."""

from __future__ import annotations

import pytest

from session_actor.compaction.facts import Fact, Facts
from session_actor.compaction.gate import Source, evaluate
from session_actor.compaction.headings import Layout, compose, is_nothing
from session_actor.compaction.known import Known
from session_actor.compaction.languages import is_foreign, spoken, summed, tally
from session_actor.compaction.naming import is_near
from session_actor.compaction.polarity import inverted
from session_actor.compaction.texts import clipped, sentences
from session_actor.compaction.wording import is_empty, is_normal, is_placeholder

SOURCE = Source(Known(frozenset(), frozenset()), (), 40_000, 60_000, range(1, 5))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Never push to main.", "Push to main."),
        ("Never push to main.", "The user wants you to push to main"),
        ("Never push to main.", "Always push to main!"),
        ("You must run the tests.", "You must not run the tests."),
        ("Do not delete the logs", "Delete the logs"),
        ("Don't deploy unless the tests pass.", "Don't deploy if the tests pass."),
        ("Use at most 5 workers.", "Use at least 5 workers."),
        ("Spend no more than 20 dollars.", "Spend at least 20 dollars."),
        ("Always ask before deleting.", "Never ask before deleting."),
        ("Force pushes are forbidden.", "Force pushes are allowed."),
    ],
)
def test_the_opposite_of_a_rule_is_told(rule, said):
    assert inverted([rule], f"It was read. {said} It was written.") == [0]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Never push to main.", "Never push to main."),
        ("Never push to main.", "Do not push to main"),
        ("Never push without asking.", "Ask before you push."),
        ("Use at most 5 workers.", "Use no more than 5 workers."),
        ("Never push to main.", "The main file was read."),
        ("You must run the tests.", "The tests were run."),
        ("Don't deploy unless the tests pass.", "Deploy only if the tests pass."),
        ("Never push.", ""),
        ("Never.", "Whatever is done is done."),
    ],
)
def test_other_words_for_a_rule_are_no_opposite(rule, said):
    assert inverted([rule], said) == []


@pytest.mark.parametrize(
    ("number", "kept", "near"),
    [
        ("125", "1250", True),
        ("12500", "1250", True),
        ("1251", "1250", True),
        ("12.50", "1250", True),
        ("1350", "1250", True),
        ("1360", "1250", False),
        ("12", "125", False),
        ("12", "13", False),
        ("99", "1250", False),
        ("521", "1250", False),
    ],
)
def test_a_number_is_near_one_that_differs_by_a_digit(number, kept, near):
    assert is_near(number, kept) is near
    assert is_near(kept, number) is near


def test_three_unknown_numbers_are_too_many():
    text = compose(Facts(), cap_tokens=500)
    for more, codes in (("7 and 8", ()), ("7, 8 and 9", ("unknown_numbers",)), ("7, 7, 7 and 8", ())):
        made = text.replace("- No model", f"- It took {more} days.\n- No model")
        assert evaluate(made, Facts(), SOURCE, cap_tokens=1_000).codes == codes


ENGLISH = (
    "The queue is new and it was tested by the team, so that we have not to wait for it. This is all that was done."
)
GERMAN = (
    "Die Warteschlange ist neu und wurde mit dem Team getestet, und das ist auch alles, was sie von uns wollen, oder."
)
FRENCH = (
    "La file est nouvelle et elle est dans le code avec les tests, pour que nous ne soyons pas sur une file lente qui."
)
CHINESE = "队列是新的已经由团队测试过所以我们不必再等待它这就是所做的一切剩下的工作明天继续进行请稍后查看结果并确认"


@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (GERMAN, "de"), (FRENCH, "fr"), (CHINESE, "han")])
def test_a_language_is_told_by_its_commonest_words_or_its_script(text, language):
    assert language in spoken(tally(text))
    for other in (ENGLISH, GERMAN, FRENCH, CHINESE):
        assert is_foreign(other, spoken(tally(text))) is (other != text)


def test_a_conversation_in_two_languages_may_be_summed_up_in_either():
    both = spoken(summed([tally(ENGLISH), tally(GERMAN)]))
    assert not is_foreign(ENGLISH, both)
    assert not is_foreign(GERMAN, both)
    assert is_foreign(FRENCH, both)


def test_few_words_are_in_no_language():
    assert spoken(tally("the queue")) == ()
    assert not is_foreign(GERMAN, ())
    assert not is_foreign("die und der", ("en",))


@pytest.mark.parametrize(
    "body", ["[summary here]", "TODO", "...", "\u2026", "- TBD", "<goal>", "{{goal}}", "> *...*", "n/a", "???"]
)
def test_a_body_that_only_holds_a_place_is_known(body):
    assert is_placeholder(body)


@pytest.mark.parametrize(
    "body", ["", "None", "We wait for TODO items.", "[1] is done, [2] is not", "<b>done</b> and more"]
)
def test_other_bodies_are_none(body):
    assert not is_placeholder(body)


def test_what_can_be_seen_is_not_empty():
    assert is_empty(" \u200b\u00a0\n")
    assert not is_empty(f"{' ' * 5_000}.")


@pytest.mark.parametrize(
    ("reason", "normal"), [("end_turn", True), ("STOP", True), (None, True), ("length", False), ("", False)]
)
def test_a_model_has_stopped_by_itself_or_not(reason, normal):
    assert is_normal(reason) is normal


def test_none_is_said_in_several_ways():
    assert all(map(is_nothing, ["None", "- none.", "(None)", "*None*", "\n N/A \n"]))
    assert not any(map(is_nothing, ["", "None of it is done", "Nonetheless"]))


def test_headings_are_read_where_they_stand_for_themselves():
    layout = Layout(
        "# Summary\n## Goal:\nA\n## other\nB\n  ## FILES ##\nC\n```\n## Decisions\n```\n### Decisions\n- ## Progress"
    )
    assert [(section.name, layout.body(section).split("\n")[0]) for section in layout.sections] == [
        ("Goal", "A"),
        ("Files", "C"),
    ]


def test_a_fence_ends_with_as_many_of_the_same_signs():
    layout = Layout("````\n```\n## Goal\n~~~~\n````\n## Files\nA ``` B\n``` x ``` y\n## Decisions\n")
    assert [section.name for section in layout.sections] == ["Files", "Decisions"]


def test_sentences_end_where_they_end():
    assert list(sentences('Use e.g. tabs. See 1.5 of a.b.c! "Really?" Yes... and no. Dr. Who (etc.). 好。是')) == [
        "Use e.g. tabs.",
        "See 1.5 of a.b.c!",
        '"Really?"',
        "Yes... and no.",
        "Dr. Who (etc.).",
        "好。",
        "是",
    ]


def test_a_beginning_is_cut_between_words():
    assert clipped("one two three", 100) == "one two three"
    assert clipped("one two three", 9) == "one two\u2026"
    assert clipped("x" * 20, 9) == f"{'x' * 9}\u2026"


def test_a_retracted_assumption_may_be_a_part_of_another_fact():
    facts = Facts(decisions=(Fact("Copy it, since the disk is large", 1),), retracted=(Fact("the disk is large", 1),))
    assert evaluate(compose(facts, cap_tokens=500), facts, SOURCE, cap_tokens=1_000).ok
