"""Texts that patterns and loops could get lost in: every one is read in a time that its length tells."""

from __future__ import annotations

import pytest

from session_actor.compaction.facts import Fact, Facts
from session_actor.compaction.frame_facts import facts_of, texts_of
from session_actor.compaction.gate import Source, evaluate
from session_actor.compaction.headings import compose
from session_actor.compaction.known import Known, known_in
from session_actor.compaction.merge import merged
from session_actor.compaction.seal import seal
from session_actor.compaction.secrets import has_secret
from session_actor.frames import Frame

from ...processor import at_most
from .summaries import FACTS

LENGTH = 5_000
PIECES = (
    *(
        "a",
        "1",
        ".",
        ". ",
        "?!",
        " ",
        "\n",
        "\r",
        "-",
        "/",
        "\\",
        "a/",
        "/a.",
        "a.b",
        "1,",
        "1,000,",
        "a@b.",
        "#",
        "# ",
    ),
    *(
        "## Goal\n",
        "```\n",
        "`",
        '"',
        "[",
        "<a ",
        "never ",
        "Never push. ",
        "http://a:",
        "://a:b@",
        "eyJ",
        "eyJaaaaaaaaa.",
    ),
    *("password=", "token: ", "key-", "-----BEGIN ", "frame 1,", "$1", "1 ms", "1.1.", "0a1b", "OPS-", "a_1234"),
    *(
        "\u0301",
        "e\u0301\u0316",
        "\u05b0\u0592",
        "\u200b",
        "\ud800",
        "\x00",
        "- ",
        "- a\n",
        "1) ",
        "**",
        "<|",
        '{"name": "a", ',
    ),
    *("user:", "必须。", "\u2028", "e.g. ", ":1", "a=", "ghp_aaaaaaaaaaaaaaaaaaaaa", "A1b2", "no more than "),
    *(
        "all ",
        "these rules ",
        "the rules of a ",
        "ignore all ",
        "> ",
        "User",
        "javascript:a",
        "a.com",
        "\U000e0041",
        "no ",
    ),
    *("\u0661", "you ", "keep it ", "before you ", "- ## a\n", "a\n=\n"),
)
LIMIT_S = 1.25
"""Far more than it takes; a pattern that goes back and forth takes hours."""


@pytest.mark.parametrize("piece", PIECES, ids=ascii)
@at_most(LIMIT_S)
def test_a_long_text_of_one_kind_has_facts(piece):
    text = (piece * (LENGTH // len(piece) + 1))[:LENGTH] + "x"
    short = text[:999]
    frame = Frame(1, None, 1, 0, user_input=text, assistant_output=short, decisions=(text,), assumptions=(short,))
    part = facts_of(frame)
    facts = merged([part], retracted={text[:500]: 9}, cap_tokens=1_000)
    assert all(not has_secret(fact.text) for fact in (*facts.constraints, *facts.decisions, *facts.identifiers))
    assert len(facts.identifiers) <= 64
    assert all(len(rule) <= 700 for rule in part.rules)
    assert texts_of(frame)[0] == text
    assert known_in([part]).names == {name.text for name in part.names}


@pytest.mark.parametrize("piece", PIECES, ids=ascii)
@at_most(LIMIT_S)
def test_a_long_summary_of_one_kind_is_judged(piece):
    text = (piece * (LENGTH // len(piece) + 1))[:LENGTH] + "x"
    source = Source(Known(frozenset(), frozenset()), (text,), 4_000_000, 4_000_000, ())
    for summary in (text, f"## Goal\n{text}", f"{compose(FACTS, cap_tokens=1_000)}{text}"):
        verdict = evaluate(summary, FACTS, source, cap_tokens=1_000_000)
        assert verdict.sealed == "" or verdict.ok
        assert len(verdict.reasons) < 100
    assert evaluate(text * 2, FACTS, source, cap_tokens=200).codes[0] in {"empty", "too_long"}


@at_most(4 * LIMIT_S)
def test_many_facts_are_sealed_and_judged():
    facts = Facts(
        constraints=tuple(Fact(f"Never touch table {number} of the store.", 1) for number in range(2_000)),
        decisions=tuple(Fact(f"Use table {number}", 1) for number in range(2_000)),
        retracted=tuple(Fact(f"Table {number} is empty", 1) for number in range(2_000)),
    )
    source = Source(Known(frozenset(), frozenset()), (), 4_000_000, 4_000_000, ())
    bare = compose(Facts(), cap_tokens=1_000)
    verdict = evaluate(bare, facts, source, cap_tokens=1_000)
    assert verdict.ok
    assert verdict.sealed == seal(bare, facts)
    assert verdict.sealed.count("\n- ") > 6_000
