"""How far quoted lengths of requests are from the real ones: in simulated conversations, and in a real session.

Simulated: conversations of texts whose tokens are known for each tokenizer, in which the provider counts what surrounds
them otherwise than we do (`bench.calibration_model`). Beside the quotes: the estimate alone, which is what there is
without calibration. The texts are those of the corpus that no weight was fitted to; without the corpus, texts cut from
the package's sample transcript, their real lengths drawn around the estimate.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from bench import real_calls
from bench.calibration_model import FORK, INSTRUCTIONS, TRIM, TURNS, Conversation, Count
from bench.harness import OURS, Options, Report, percentile, table
from bench.prose import some_passages
from bench.targets import limit
from bench.token_corpus import CORPUS, read
from session_actor.tokens.estimate import FAMILIES, estimate_tokens

if TYPE_CHECKING:
    from bench.calibration_model import Call
    from bench.token_corpus import Corpus

CONVERSATIONS, FROM_TURN = 200, 5
CATEGORIES = 4
MEAN_PERCENT, P95_PERCENT, TRIM_PERCENT = 1.0, 2.5, 2.0
ESTIMATE, REPRICED = "estimate alone", "measured frames alone"
WRONG = {"claude47": "cl100k"}
"""A model whose tokenizer is not known is taken for one of another family."""
SPREAD = 0.06
# Errors are counts in the lines of this bench: hundredths of a percent.
MEAN, P95, HIGHEST, COVERED = "mean error [0.01%]", "p95 of errors [0.01%]", "largest [0.01%]", "within upper [0.01%]"
ALL, REAL = f"from turn {FROM_TURN}", f"real session, from call {FROM_TURN}"


class Errors(NamedTuple):
    """Of some requests: the absolute errors in percent, sorted."""

    each: list[float]

    @property
    def mean(self) -> float:
        """Mean."""
        return fmean(self.each)

    @property
    def p95(self) -> float:
        """95th percentile."""
        return percentile(self.each, 95)


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("calibration")
    corpus = read()
    if corpus is None:
        report.notes.append(f"texts of our own: there is no corpus at {CORPUS} (TOKEN_CORPUS names another place)")
    simulated(report, simulate(corpus, options.pick(CONVERSATIONS, 9)))
    for real, taken in WRONG.items():
        calls = simulate(corpus, options.pick(CONVERSATIONS, 9), family=real, taken_for=taken)
        add(report, f"{real} taken for {taken}, {ALL}", [call for call in calls if call.turn >= FROM_TURN])
    real_session(report)
    return report


def simulate(corpus: Corpus | None, count: int, family: str | None = None, taken_for: str | None = None) -> list[Call]:
    """Let so many conversations happen, each of texts of a few categories; all of one family, or of all in turns."""
    calls: list[Call] = []
    for number in range(count):
        random = Random(number)
        real = family or FAMILIES[number % len(FAMILIES)]
        calls += Conversation(random, texts(corpus, random, real, taken_for or real)).run()
    return calls


def texts(corpus: Corpus | None, random: Random, real: str, taken_for: str) -> list[Count]:
    """What is said in a conversation, counted by one family's tokenizer and estimated as another's."""
    if corpus is None:
        estimates = [estimate_tokens(text, taken_for) for text in some_passages(40, random.randint(100, 5_000))]
        bias = random.gauss(1, SPREAD)
        return [Count(each, each * bias * random.gauss(1, SPREAD)) for each in estimates]
    categories = random.sample(sorted({sample.category for sample in corpus.unseen}), CATEGORIES)
    return [
        Count(estimate_tokens(sample.text, taken_for), sample.tokens[real])
        for sample in corpus.unseen
        if sample.category in categories
    ]


def simulated(report: Report, calls: list[Call]) -> None:
    """Add the errors of simulated calls, by turn and by what came before, and judge them."""
    cases: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.turn >= FROM_TURN:
            cases[ALL].append(call)
            cases[f"after {call.after}" if call.after else "as before, with more"].append(call)
        if call.turn in {1, 2, 3, 5, 10, 20, TURNS}:
            cases[f"turn {call.turn:2}"].append(call)
    found = {name: add(report, name, cases[name]) for name in order(cases)}
    report.judge(limit(f"mean error of whole requests {ALL}", found[ALL].mean, at_most=MEAN_PERCENT, unit="%"))
    report.judge(limit(f"p95 of errors of whole requests {ALL}", found[ALL].p95, at_most=P95_PERCENT, unit="%"))
    trim = found[f"after {TRIM}"]
    for name, value in (("mean error", trim.mean), ("p95 of errors", trim.p95)):
        report.judge(limit(f"{name} after a trim that drops most", value, at_most=TRIM_PERCENT, unit="%"))


def order(cases: dict[str, list[Call]]) -> list[str]:
    """The cases in the order of the table."""
    after = [f"after {what}" for what in (TRIM, FORK, INSTRUCTIONS)]
    first = [name for name in (ALL, "as before, with more", *after) if name in cases]
    return [*first, *sorted(name for name in cases if name not in first)]


def add(report: Report, name: str, calls: list[Call]) -> Errors:
    """Add the errors of some simulated calls, ours and those of the estimate alone; return ours."""
    add_errors(report, ESTIMATE, name, [call.raw_error for call in calls])
    report.count(OURS, COVERED, name, len(calls), round(1e4 * fmean(call.real <= call.upper for call in calls)))
    return add_errors(report, OURS, name, [call.error for call in calls])


def add_errors(report: Report, peer: str, name: str, signed: list[float]) -> Errors:
    """Add the errors of one side and return them."""
    found = Errors(sorted(map(abs, signed)))
    for op, value in ((MEAN, found.mean), (P95, found.p95), (HIGHEST, found.each[-1])):
        report.count(peer, op, name, len(signed), round(100 * value))
    return found


def real_session(report: Report) -> None:
    """Add the errors of every call of the real session."""
    calls = real_calls.read()
    if calls is None:
        report.notes.append(f"no real errors: there is no session at {real_calls.SESSION} (REAL_SESSION names another)")
        return
    calls = calls[FROM_TURN - 1 :]

    def errors(lengths: list[int]) -> list[float]:
        return [100 * (length / call.real - 1) for length, call in zip(lengths, calls, strict=True)]

    add_errors(report, ESTIMATE, REAL, errors([call.estimated for call in calls]))
    add_errors(report, REPRICED, REAL, errors([call.repriced for call in calls]))
    report.count(OURS, COVERED, REAL, len(calls), round(1e4 * fmean(call.real <= call.upper for call in calls)))
    ours = add_errors(report, OURS, REAL, errors([call.quoted for call in calls]))
    report.judge(limit(f"mean error of the {REAL}", ours.mean, at_most=MEAN_PERCENT, unit="%"))
    report.judge(limit(f"p95 of errors of the {REAL}", ours.p95, at_most=P95_PERCENT, unit="%"))


def tables(report: Report) -> str:
    """Return the errors by case."""
    found = {(one.peer, one.op, one.variant): one for one in report.results}

    def cell(peer: str, op: str, variant: str) -> str:
        one = found.get((peer, op, variant))
        return "-" if one is None else f"{one.n / 100:.2f}"

    heads = ["requests", "calls", "mean", "p95", "largest", "within upper"]
    heads += [f"{ESTIMATE}: mean", "p95", f"{REPRICED}: mean", "p95"]
    rows = [
        [
            one.variant,
            str(one.depth),
            *(cell(OURS, op, one.variant) for op in (MEAN, P95, HIGHEST, COVERED)),
            *(cell(peer, op, one.variant) for peer in (ESTIMATE, REPRICED) for op in (MEAN, P95)),
        ]
        for one in report.results
        if (one.peer, one.op) == (OURS, MEAN)
    ]
    return table("calibration: errors of whole requests [%]", heads, rows)
