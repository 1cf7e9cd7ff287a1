"""What summarisers make of a conversation, and what the gate says of it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import msgspec
import pytest

from session_actor.compaction.gate import Gate, evaluate, judge
from session_actor.compaction.merge import merged
from session_actor.compaction.seal import seal
from session_actor.compaction.verdict import CODES, Verdict

from .hostile_summaries import ALL_CASES
from .summaries import CAP_TOKENS, FACTS, GOOD, NEVER, PARTS, RETRACTED, SOURCE, Case

GATE = Gate(FACTS, SOURCE, cap_tokens=CAP_TOKENS)


@cache
def verdict_of(case: Case) -> Verdict:
    return GATE.evaluate(case.text, case.stop_reason)


def test_the_good_summary_passes_without_a_word():
    verdict = evaluate(GOOD, FACTS, SOURCE, cap_tokens=CAP_TOKENS)
    assert verdict.ok
    assert verdict.reasons == ()
    assert verdict.sealed == GOOD


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_a_summary_gets_its_reason(case):
    verdict = verdict_of(case)
    if not case.code:
        assert verdict.ok, verdict.reasons
        assert verdict.reasons == ()
        return
    assert case.code in verdict.codes, verdict.reasons
    assert verdict.ok is not case.is_refused, verdict.reasons
    errors = [reason.code for reason in verdict.errors]
    assert (case.code in errors) is case.is_refused or case.code == "identifier_missing"
    assert bool(verdict.sealed) is verdict.ok


def test_the_corpus_is_large_and_tries_nearly_every_code():
    assert len(ALL_CASES) >= 60
    assert len({case.name for case in ALL_CASES}) == len(ALL_CASES)
    assert set(CODES) - {case.code for case in ALL_CASES} == {"no_gain"}


def test_nothing_of_the_conversation_is_in_a_repr():
    for case in ALL_CASES:
        verdict = verdict_of(case)
        assert "queue" not in repr(verdict)
        assert "queue" not in repr(verdict.reasons)


@pytest.mark.parametrize("case", [case for case in ALL_CASES if not case.is_refused], ids=lambda case: case.name)
def test_what_was_sealed_is_not_missing_any_more(case):
    sealed = verdict_of(case).sealed
    assert seal(sealed, FACTS) == sealed
    assert not [reason for reason in GATE.judge(sealed) if reason.severity == "error"]


def test_a_text_that_is_not_sealed_is_judged_as_it_is():
    text = GOOD.replace(f"- {NEVER}\n", "")
    assert [(reason.code, reason.severity) for reason in judge(text, FACTS, SOURCE, cap_tokens=CAP_TOKENS)] == [
        ("constraint_missing", "error")
    ]


def test_a_summary_that_saves_next_to_nothing_is_refused():
    small = SOURCE._replace(tokens=800, view_tokens=9_000)
    assert evaluate(GOOD, FACTS, small, cap_tokens=CAP_TOKENS).codes == ("no_gain",)


def test_the_same_text_gets_the_same_bytes_again():
    for case in ALL_CASES[::4]:
        again = evaluate(case.text, FACTS, SOURCE, cap_tokens=CAP_TOKENS, stop_reason=case.stop_reason)
        assert msgspec.json.encode(again) == msgspec.json.encode(verdict_of(case))


def test_nothing_can_be_listed_as_retracted_where_nothing_was():
    facts = merged(PARTS, cap_tokens=CAP_TOKENS)
    text = GOOD.replace("## Assumptions\n", f"## Assumptions\n- {RETRACTED}\n").replace(
        f"## Retracted\n- {RETRACTED}\n", "## Retracted\nNone\n"
    )
    assert evaluate(text, facts, SOURCE, cap_tokens=CAP_TOKENS).reasons == ()
    more = text.replace("## Retracted\nNone\n", "## Retracted\n- The old plan of the user\n")
    assert evaluate(more, facts, SOURCE, cap_tokens=CAP_TOKENS).codes == ("retraction_unknown",)


def test_every_verdict_is_the_same_in_another_process_with_another_hash_seed():
    code = (
        "import hashlib, msgspec\n"
        "from tests.session_actor.compaction.hostile_summaries import ALL_CASES\n"
        "from tests.session_actor.compaction.summaries import CAP_TOKENS, FACTS, SOURCE\n"
        "from session_actor.compaction.gate import Gate\n"
        "gate = Gate(FACTS, SOURCE, cap_tokens=CAP_TOKENS)\n"
        "done = [gate.evaluate(case.text, case.stop_reason) for case in ALL_CASES]\n"
        "print(hashlib.blake2b(b''.join(map(msgspec.json.encode, [*done, FACTS]))).hexdigest())\n"
    )
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONHASHSEED": seed},
        check=True,
        capture_output=True,
        text=True,
    )
    here = hashlib.blake2b(b"".join(map(msgspec.json.encode, [*map(verdict_of, ALL_CASES), FACTS]))).hexdigest()
    assert found.stdout == f"{here}\n"


def test_the_retracted_assumption_is_listed_as_such():
    text = GOOD.replace(f"## Retracted\n- {RETRACTED}\n\n", "")
    sealed = evaluate(text, FACTS, SOURCE, cap_tokens=CAP_TOKENS).sealed
    assert f"## Retracted\n- {RETRACTED}\n\n## Progress" in sealed
