"""What summarisers make of a conversation, and what the gate says of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from session_actor.compaction.gate import evaluate, judge
from session_actor.compaction.seal import seal
from session_actor.compaction.verdict import CODES, Verdict

from .summaries import CAP_TOKENS, CASES, FACTS, GOOD, NEVER, RETRACTED, SOURCE, Case


def verdict_of(case: Case) -> Verdict:
    return evaluate(case.text, FACTS, SOURCE, cap_tokens=CAP_TOKENS, stop_reason=case.stop_reason)


def test_the_good_summary_passes_without_a_word():
    verdict = evaluate(GOOD, FACTS, SOURCE, cap_tokens=CAP_TOKENS)
    assert verdict.ok
    assert verdict.reasons == ()
    assert verdict.sealed == GOOD


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
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
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    assert set(CODES) - {case.code for case in CASES} == {"no_gain"}


def test_nothing_of_the_conversation_is_in_a_repr():
    for case in CASES:
        verdict = verdict_of(case)
        assert "queue" not in repr(verdict)
        assert "queue" not in repr(verdict.reasons)


@pytest.mark.parametrize("case", [case for case in CASES if not case.is_refused], ids=lambda case: case.name)
def test_what_was_sealed_is_not_missing_any_more(case):
    sealed = verdict_of(case).sealed
    assert seal(sealed, FACTS) == sealed
    assert not [reason for reason in judge(sealed, FACTS, SOURCE, cap_tokens=CAP_TOKENS) if reason.severity == "error"]


def test_a_text_that_is_not_sealed_is_judged_as_it_is():
    text = GOOD.replace(f"- {NEVER}\n", "")
    assert [(reason.code, reason.severity) for reason in judge(text, FACTS, SOURCE, cap_tokens=CAP_TOKENS)] == [
        ("constraint_missing", "error")
    ]


def test_a_summary_that_saves_next_to_nothing_is_refused():
    small = SOURCE._replace(tokens=800, view_tokens=9_000)
    assert evaluate(GOOD, FACTS, small, cap_tokens=CAP_TOKENS).codes == ("no_gain",)


def test_every_verdict_is_the_same_in_another_process_with_another_hash_seed():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import importlib.util, hashlib, msgspec\n"
        "spec = importlib.util.spec_from_file_location('summaries', sys.argv[1] + '/summaries.py')\n"
        "made = importlib.util.module_from_spec(spec); spec.loader.exec_module(made)\n"
        "from session_actor.compaction.gate import evaluate\n"
        "done = [evaluate(c.text, made.FACTS, made.SOURCE, cap_tokens=made.CAP_TOKENS, stop_reason=c.stop_reason)"
        " for c in made.CASES]\n"
        "bytes_of = msgspec.json.encode\n"
        "print(hashlib.blake2b(b''.join(map(bytes_of, done)) + bytes_of(made.FACTS)).hexdigest())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(found) == 1


def test_the_retracted_assumption_is_listed_as_such():
    text = GOOD.replace(f"## Retracted\n- {RETRACTED}\n\n", "")
    sealed = evaluate(text, FACTS, SOURCE, cap_tokens=CAP_TOKENS).sealed
    assert f"## Retracted\n- {RETRACTED}\n\n## Progress" in sealed
