"""Fit the weights of the token estimate: `python -m bench.fit_tokens` writes them into the package.

Each family's weights make the relative error small over the part of the corpus that is for fitting: iteratively
reweighted least squares, so that the mean absolute error counts more than a few odd texts, with an under-estimate at
1.5 times its size. Weights are bounded, most of them by zero from below, so that no text, however odd, gets cheaper by
getting longer. Pure Python with exact sums: the same corpus gives the same file, byte by byte.
"""

from __future__ import annotations

import json
import sys
from math import fsum
from operator import mul
from pathlib import Path
from typing import NamedTuple

from bench.harness import percentile, say
from bench.token_corpus import CORPUS, Sample, read
from session_actor.tokens.estimate import FAMILIES
from session_actor.tokens.features import NAMES, SCRIPTS, features

TARGET = Path(__file__).parents[1] / "session_actor" / "data" / "token_weights.json"
UNDER_COSTS = 1.5
ROUNDS = 12
SWEEPS = 80
RIDGE = 1e-3
SMALL = 0.03  # errors below this are as good as none
DIGITS = 4

# What the corpus has too little of, or nothing: bounds from what tokenizers do with it.
AT_LEAST = {
    "letter 6-15": 0.02, "letter 16+": 0.25, "upper 3-5": 0.05, "upper 6+": 0.15,  # long words, random letters
    "digit 6+": 0.34,  # groups of three digits
    "space 4-15": 0.01, "space 16+": 0.01, "line 2+": 0.05, "control": 0.8,
    "mark 8+": 0.5, "same mark 8+": 0.02, "foreign letter 8+": 0.1, "wide 3+": 0.2,
    "armenian, hebrew": 0.6, "jamo to phonetic": 1.0, "old greek": 1.0, "enclosed to rare ideographs": 1.5,
    "yi to cham": 1.5, "private": 1.5, "arrows, mathematics": 0.5, "boxes, dingbats": 0.5,
    "vietnamese": -1.0, "arabic script, not arabic": -0.5,  # cheaper than their neighbours: they may take away
}  # fmt: skip
DIGITS_ALONE = {"gemma3", "qwen3", "mistral"}  # every digit is a token
AT_MOST = 6.0
SCRIPT_AT_MOST = 3.0  # a character of three bytes costs three tokens at most
DEAREST_OF = {
    "armenian, hebrew": ("greek", "cyrillic", "arabic"),
    "syriac to samaritan": ("greek", "cyrillic", "arabic"),
    "malayalam to georgian": ("devanagari, bengali", "gurmukhi, gujarati", "oriya, tamil", "telugu, kannada"),
}
"""A script that the corpus has no text in costs what the dearest of its like costs."""


class Problem(NamedTuple):
    """Columns of features over tokens, scaled to a mean square of 1, and the bounds of their weights."""

    columns: list[list[float]]
    scales: list[float]
    lows: list[float]
    highs: list[float]


def problem(rows: list[list[int]], tokens: list[int], family: str) -> Problem:
    """Return the fitting problem of one family."""
    columns = [
        [value / count for value, count in zip(column, tokens, strict=True)]
        for column in zip(*(row + [0] * (len(NAMES) - len(row)) for row in rows), strict=True)
    ]
    scales = [(fsum(map(mul, column, column)) / len(tokens)) ** 0.5 or 1.0 for column in columns]
    lows = {**AT_LEAST, **({"digit 6+": 0.9} if family in DIGITS_ALONE else {})}
    scripts = {name for name, _, _ in SCRIPTS}
    return Problem(
        [[value / scale for value in column] for column, scale in zip(columns, scales, strict=True)],
        scales,
        [lows.get(name, 0.0) * scale for name, scale in zip(NAMES, scales, strict=True)],
        [(SCRIPT_AT_MOST if name in scripts else AT_MOST) * scale for name, scale in zip(NAMES, scales, strict=True)],
    )


def fit(task: Problem) -> list[float]:
    """Return the weights that fit."""
    found = list(task.lows)
    importance = [1.0] * len(task.columns[0])
    for _ in range(ROUNDS):
        found = solve(task, importance, found)
        estimates = [fsum(map(mul, found, row)) for row in zip(*task.columns, strict=True)]
        importance = [
            (UNDER_COSTS if estimate < 1 else 1.0) * SMALL / max(abs(estimate - 1), SMALL) for estimate in estimates
        ]
    return [weight / scale for weight, scale in zip(found, task.scales, strict=True)]


def solve(task: Problem, importance: list[float], start: list[float]) -> list[float]:
    """Return the bounded weights with the least weighted squares, by descent along one coordinate after the other."""
    size, texts = len(task.columns), len(importance)
    weighted = [list(map(mul, column, importance)) for column in task.columns]
    products = [[0.0] * size for _ in range(size)]
    for row, column in enumerate(weighted):
        for other in range(row + 1):
            products[row][other] = products[other][row] = fsum(map(mul, column, task.columns[other]))
        products[row][row] += RIDGE * texts
    sums = [fsum(column) for column in weighted]
    found = list(start)
    for _ in range(SWEEPS):
        for place, line in enumerate(products):
            step = (sums[place] - fsum(map(mul, line, found))) / line[place]
            found[place] = min(task.highs[place], max(task.lows[place], found[place] + step))
    return found


def named(weights: list[float]) -> dict[str, float]:
    """Return rounded weights by name; a script that was not fitted takes the dearest weight of its like."""
    by_name = dict(zip(NAMES, weights, strict=True))
    for name, alike in DEAREST_OF.items():
        by_name[name] = max(by_name[name], *(by_name[one] for one in alike))
    return {name: round(weight, DIGITS) for name, weight in by_name.items() if round(weight, DIGITS)}


def errors(samples: list[Sample], rows: list[list[int]], family: str, weights: dict[str, float]) -> list[float]:
    """Return the sizes of the relative errors, sorted."""
    ordered = [weights.get(name, 0.0) for name in NAMES]
    return sorted(
        abs(fsum(map(mul, row, ordered)) / sample.tokens[family] - 1) for sample, row in zip(samples, rows, strict=True)
    )


def main() -> int:
    """Fit all families, say what came out and write the weights."""
    corpus = read()
    if corpus is None:
        say(f"nothing fitted: there is no corpus at {CORPUS}; set TOKEN_CORPUS to where it is")
        return 0
    seen, unseen = ([features(sample.text) for sample in part] for part in corpus)
    fitted: dict[str, dict[str, float]] = {}
    for family in FAMILIES:
        fitted[family] = named(fit(problem(seen, [sample.tokens[family] for sample in corpus.seen], family)))
        for label, samples, rows in (("fitted to", corpus.seen, seen), ("unseen", corpus.unseen, unseen)):
            sizes = errors(samples, rows, family, fitted[family])
            mean, high = 100 * fsum(sizes) / len(sizes), 100 * percentile(sizes, 95)
            say(f"{family:9} {label:9} {len(sizes)} texts: mean {mean:.2f}%, p95 {high:.1f}%")
    lines = (f"{json.dumps(family)}: {json.dumps(weights)}" for family, weights in fitted.items())
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
