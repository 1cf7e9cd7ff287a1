"""The estimate's targets on the texts of the corpus that no weight was fitted to; where the corpus is not, no test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the benches are not installed

from bench import fit_tokens, tokens  # noqa: E402
from bench.harness import Options, Report  # noqa: E402
from bench.token_corpus import Sample, read  # noqa: E402
from session_actor.tokens.estimate import FAMILIES  # noqa: E402
from session_actor.tokens.features import features  # noqa: E402

CORPUS = read()
needs_corpus = pytest.mark.skipif(CORPUS is None, reason="the corpus is not there; TOKEN_CORPUS names its place")


@needs_corpus
def test_no_source_is_in_both_parts():
    seen, unseen = ({(sample.category, sample.source) for sample in part} for part in CORPUS)
    assert seen & unseen == set()
    assert 0.15 <= len(CORPUS.unseen) / (len(CORPUS.seen) + len(CORPUS.unseen)) <= 0.35


@needs_corpus
@pytest.mark.parametrize("family", FAMILIES)
def test_unseen_texts_are_estimated_within_the_targets(family):
    report = Report("tokens")
    tokens.accuracy(report, family, CORPUS.unseen)
    assert len(report.verdicts) == 4
    assert [verdict.line() for verdict in report.verdicts if not verdict.passed] == []


@needs_corpus
def test_fitting_again_gives_the_same_weights():
    family = "gemma3"
    rows = [features(sample.text) for sample in CORPUS.seen]
    task = fit_tokens.problem(rows, [sample.tokens[family] for sample in CORPUS.seen], family)
    assert fit_tokens.named(fit_tokens.fit(task)) == json.loads(fit_tokens.TARGET.read_text("utf-8"))[family]


def test_the_solution_of_a_fitting_problem_keeps_its_bounds():
    task = fit_tokens.Problem([[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]], [1.0, 1.0], [0.0, 0.1], [6.0, 6.0])
    first, second = fit_tokens.fit(task)
    assert second == pytest.approx(0.1)
    assert 0.8 <= first <= 1.0


def test_without_the_corpus_the_bench_measures_time_and_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(tokens, "read", lambda: None)
    report = tokens.run(Options(quick=True))
    assert any("no corpus" in note for note in report.notes)
    assert {result.op for result in report.results} == {tokens.PER_KB}
    assert "us per kB" in tokens.tables(report)


def test_without_the_corpus_nothing_is_fitted(monkeypatch, capsys):
    before = fit_tokens.TARGET.read_bytes()
    monkeypatch.setattr(fit_tokens, "read", lambda: None)
    assert fit_tokens.main() == 0
    assert "nothing fitted" in capsys.readouterr().out
    assert fit_tokens.TARGET.read_bytes() == before


def test_the_command_prints_the_lines_of_every_bench():
    command = [sys.executable, "-m", "bench", "tokens", "--quick", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    keys = ["bench", "peer", "op", "variant", "depth", "n", "p50_us", "mean_us", "p99_us", "ops_per_s"]
    assert all(list(line) == keys for line in lines)
    assert {"session-actor", "characters / 4", "bytes / 4"} <= {line["peer"] for line in lines}
    assert "us per kB" in done.stderr


def test_errors_are_kept_by_category():
    samples = [tokens_sample(category, 10) for category in ("a", "a", "b")]
    found = tokens.errors(Report("tokens"), "peer", "o200k", samples, lambda _text: 11)
    assert {name: len(each.signed) for name, each in found.items()} == {"all": 3, "a": 2, "b": 1}
    assert fmean(found["all"].signed) == pytest.approx(10.0)


def tokens_sample(category, count):
    return Sample(category, "source", "text", defaultdict(lambda: count))
