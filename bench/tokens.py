"""How far the estimated numbers of tokens are from the real ones, on texts that no weight was fitted to, and the time.

The texts are those of the corpus that `bench.token_corpus` keeps from the fitting; without it only the time is
measured, on texts cut from the transcript that the package brings. Beside: characters / 4 and bytes / 4, as most count,
and the exact counters where they are installed.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from statistics import fmean
from time import perf_counter_ns
from typing import TYPE_CHECKING, NamedTuple

from bench.harness import OURS, Options, Report, percentile, shown, table
from bench.prose import some_passages
from bench.targets import limit
from bench.token_corpus import CORPUS, read
from session_actor.tokens.estimate import FAMILIES, estimate_tokens
from session_actor.tokens.exact import CounterUnavailable, exact_counter

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.token_corpus import Sample

    Count = Callable[[str], int]

CHARACTERS, BYTES, EXACT = "characters / 4", "bytes / 4", "exact"
MEAN_PERCENT, P95_PERCENT, CATEGORY_PERCENT, UNDER_PERCENT = 6.0, 20.0, 12.0, 15.0
LLAMA_MEAN_PERCENT, LLAMA_P95_PERCENT = 8.0, 28.0
CATEGORY_TEXTS = 10
SCRIPTS = ("zh", "ja", "ko", "hi", "ru", "ar")
US_PER_KB = 30.0
ROUNDS = 15
# Errors are counts in the lines of this bench: hundredths of a percent.
MEAN, P95, SIGNED = "mean error [0.01%]", "p95 of errors [0.01%]", "mean signed error [0.01%]"
PER_KB = "count 1 kB"
ALL = "all"


class Errors(NamedTuple):
    """Relative errors of the texts of one category, in percent."""

    signed: list[float]

    @property
    def mean(self) -> float:
        """Mean absolute error."""
        return fmean(map(abs, self.signed))

    @property
    def p95(self) -> float:
        """95th percentile of the absolute errors."""
        return percentile(sorted(map(abs, self.signed)), 95)


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("tokens")
    corpus = read()
    if corpus is None:
        report.notes.append(f"no errors: there is no corpus at {CORPUS} (TOKEN_CORPUS names another place)")
        texts = some_passages(options.pick(200, 10), 2_000)
    else:
        for family in FAMILIES:
            accuracy(report, family, corpus.unseen)
        texts = [sample.text for sample in corpus.unseen]
    speed(report, texts, options.pick(ROUNDS, 1))
    return report


def accuracy(report: Report, family: str, samples: list[Sample]) -> None:
    """Add the errors of all counters for a family, by category, and judge ours."""
    ours = errors(report, OURS, family, samples, partial(estimate_tokens, family=family))
    errors(report, CHARACTERS, family, samples, lambda text: max(1, len(text) // 4))
    errors(report, BYTES, family, samples, lambda text: max(1, len(text.encode()) // 4))
    try:
        errors(report, EXACT, family, samples, exact_counter(family))
    except CounterUnavailable as reason:
        report.notes.append(str(reason))
    judge(report, family, ours)


def errors(report: Report, peer: str, family: str, samples: list[Sample], count: Count) -> dict[str, Errors]:
    """Count all texts, add the errors by category and return them."""
    found: defaultdict[str, Errors] = defaultdict(lambda: Errors([]))
    for sample in samples:
        error = 100 * (count(sample.text) / sample.tokens[family] - 1)
        for category in (ALL, sample.category):
            found[category].signed.append(error)
    for category, each in sorted(found.items()):
        variant, texts = f"{family}, {category}", len(each.signed)
        report.count(peer, MEAN, variant, texts, round(100 * each.mean))
        report.count(peer, P95, variant, texts, round(100 * each.p95))
        report.count(peer, SIGNED, variant, texts, round(100 * fmean(each.signed)))
    return found


def judge(report: Report, family: str, found: dict[str, Errors]) -> None:
    """Judge the errors of a family: over all texts, by category, and the under-estimates of some scripts."""
    llama = family == "llama3"
    mean, p95 = (LLAMA_MEAN_PERCENT, LLAMA_P95_PERCENT) if llama else (MEAN_PERCENT, P95_PERCENT)
    report.judge(limit(f"{family}, mean error of unseen texts", found[ALL].mean, at_most=mean, unit="%"))
    report.judge(limit(f"{family}, p95 of errors of unseen texts", found[ALL].p95, at_most=p95, unit="%"))
    large = {name: each.mean for name, each in found.items() if len(each.signed) >= CATEGORY_TEXTS}
    worst = max(large, key=lambda name: large[name])
    name = f"{family}, mean error of the worst category of {CATEGORY_TEXTS} texts or more ({worst})"
    report.judge(limit(name, large[worst], at_most=CATEGORY_PERCENT, unit="%"))
    under = {name: -fmean(found[name].signed) for name in SCRIPTS if name in found}
    if under:
        lowest = max(under, key=lambda name: under[name])
        name = f"{family}, mean under-estimate of the worst script ({lowest})"
        report.judge(limit(name, under[lowest], at_most=UNDER_PERCENT, unit="%"))


def speed(report: Report, texts: list[str], rounds: int) -> None:
    """Add the microseconds per kilobyte of all counters, each over all texts, in turns."""
    sides: dict[tuple[str, str], Count] = {
        (OURS, "o200k"): estimate_tokens,
        (OURS, "llama3"): partial(estimate_tokens, family="llama3"),
        (CHARACTERS, ALL): lambda text: max(1, len(text) // 4),
        (BYTES, ALL): lambda text: max(1, len(text.encode()) // 4),
    }
    for family in FAMILIES:
        try:
            sides[EXACT, family] = exact_counter(family)
        except CounterUnavailable:
            continue
    ascii_texts, others = ([text for text in texts if text.isascii() is plain] for plain in (True, False))
    for variant, part in (("ASCII texts", ascii_texts), ("other texts", others), ("all texts", texts)):
        if not part:
            continue
        taken = take_turns(sides, part, rounds)
        kilobytes = sum(len(text.encode()) for text in part) / 1_000
        for (peer, family), seconds in taken.items():
            report.rate(peer, PER_KB, f"{family}, {variant}", len(part), n=round(kilobytes), seconds=seconds)
        slowest = max(seconds for (peer, _), seconds in taken.items() if peer == OURS) * 1e6 / kilobytes
        report.judge(limit(f"us per kB, {variant}", slowest, at_most=US_PER_KB, unit=" us"))


def take_turns(sides: dict[tuple[str, str], Count], texts: list[str], rounds: int) -> dict[tuple[str, str], float]:
    """Let all counters count all texts in turns and return the smallest time of each, in seconds.

    A text is timed by itself, and its smallest time counts: the processor changes its speed within a round.
    """
    least = {side: [float("inf")] * len(texts) for side in sides}
    for _ in range(rounds):
        for side, count in sides.items():
            times = least[side]
            for place, text in enumerate(texts):
                start = perf_counter_ns()
                count(text)
                times[place] = min(times[place], perf_counter_ns() - start)
    return {side: sum(times) / 1e9 for side, times in least.items()}


def tables(report: Report) -> str:
    """Return the errors by family, ours by category, and the times."""
    found = {(one.peer, one.op, one.variant): one for one in report.results}

    def cell(peer: str, op: str, variant: str) -> str:
        one = found.get((peer, op, variant))
        return "-" if one is None else f"{one.n / 100:.1f}"

    def both(variant: str) -> str:
        return f"{cell(OURS, MEAN, variant)} ({cell(OURS, SIGNED, variant)})"

    peers = (OURS, CHARACTERS, BYTES, EXACT)
    heads = [f"{peer}{what}" for peer in peers for what in ("", ", p95")]
    by_family = [
        [family, *(cell(peer, op, f"{family}, {ALL}") for peer in peers for op in (MEAN, P95))] for family in FAMILIES
    ]
    texts = {one.variant.split(", ")[1]: one.depth for one in report.results if one.op == MEAN}
    by_category = [
        [category, str(count), *(both(f"{family}, {category}") for family in FAMILIES)]
        for category, count in texts.items()
    ]
    times = [[one.peer, one.variant, shown(one.mean_us)] for one in report.results if one.op == PER_KB]
    parts = [table("tokens: time", ["counter", "of", "us per kB"], times)]
    if texts:
        parts.insert(0, table("tokens: errors of unseen texts [%]", ["family", *heads], by_family))
        title = "tokens: mean error (mean signed error) by category [%]"
        parts.insert(1, table(title, ["category", "texts", *FAMILIES], by_category))
    return "\n".join(parts)
