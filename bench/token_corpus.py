"""Texts with the numbers of tokens that the tokenizers give them, and which of them no weight was fitted to."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

CORPUS = Path(os.environ.get("TOKEN_CORPUS", Path(__file__).parents[2] / "shared" / "tokens" / "corpus_train.jsonl.gz"))
"""A line of JSON a text: category, source, text, tokens (by family). The variable TOKEN_CORPUS names another place."""

UNSEEN_ONE_IN = 4


class Sample(NamedTuple):
    """A text, where it comes from, and its tokens by family."""

    category: str
    source: str
    text: str
    tokens: dict[str, int]


class Corpus(NamedTuple):
    """The two parts of the corpus; no source is in both."""

    seen: list[Sample]
    unseen: list[Sample]


def read(path: Path = CORPUS) -> Corpus | None:
    """Return the corpus, None where it is not.

    Of each category every fourth source, in the order of the hashes of their names, is not for fitting.
    """
    if not path.exists():
        return None
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        samples = [Sample(**json.loads(line)) for line in lines]
    unseen: set[tuple[str, str]] = set()
    for category in {sample.category for sample in samples}:
        sources = sorted({sample.source for sample in samples if sample.category == category}, key=_hash)
        unseen |= {(category, source) for source in sources[UNSEEN_ONE_IN - 1 :: UNSEEN_ONE_IN]}
    parts = Corpus([], [])
    for sample in samples:
        (parts.unseen if (sample.category, sample.source) in unseen else parts.seen).append(sample)
    return parts


def _hash(source: str) -> bytes:
    return hashlib.sha256(source.encode()).digest()
