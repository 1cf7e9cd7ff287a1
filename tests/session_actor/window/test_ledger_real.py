"""A real session: every prefix of the shared transcript makes valid entries in every dialect."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from session_actor.commands import Push
from session_actor.demo.transcript import Transcript
from session_actor.frames import Frame, Turn
from session_actor.ledger.entries import AssistantEntry, ResultsEntry
from session_actor.ledger.fold import Fold, folded, tail

from .ledger_talk import DIALECTS, Talk, calls_of, check, check_entry, chunks_of, entries_of, target, words

SHARED = Path(__file__).parents[4] / "shared"
REAL = Path(os.environ.get("REAL_SESSION", SHARED / "transcripts" / "pi_large_session.jsonl"))

pytestmark = pytest.mark.skipif(not REAL.exists(), reason="the shared transcript is not here")
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@cache
def imported() -> tuple[Frame, ...]:
    """A frame for each turn."""
    import asyncio

    async def turns() -> list[Turn]:
        return [entry.content async for entry in Transcript(REAL) if isinstance(entry.content, Turn)]

    talk = Talk()
    for turn in asyncio.run(turns()):
        talk.do(Push(turns=(turn,)))
    return talk.frames


@every_dialect
def test_every_prefix_of_a_real_session_keeps_what_the_entries_promise(dialect):
    to = target(dialect, result_cap_tokens=25_000)
    fold, finished = Fold(to), 0
    for frame in imported():
        fold.add(frame)
        new, finished = fold.chunks[finished:], len(fold.chunks)
        entries = entries_of([*new, tail(fold.open_chunk(), to)])
        for entry, after in zip(entries, [*entries[1:], None], strict=True):
            assert type(entry) is not type(after)
            check_entry(entry, after, to)
        assert not isinstance(entries[-1], AssistantEntry)


@every_dialect
def test_prefixes_of_a_real_session_are_valid_requests_and_do_not_depend_on_how_they_were_folded(dialect):
    to, frames = target(dialect, result_cap_tokens=25_000), imported()
    fold = Fold(to)
    for number, frame in enumerate(frames, 1):
        fold.add(frame)
        if number % 300 == 0 or number == len(frames):
            chunks = chunks_of(fold)
            check(chunks, to)
            assert chunks == chunks_of(folded(frames[:number], to))


@every_dialect
def test_the_calls_of_a_real_session_are_shown_or_broke_off_and_those_without_a_result_say_so(dialect):
    chunks = chunks_of(folded(imported(), target(dialect, result_cap_tokens=25_000)))
    entries = entries_of(chunks)
    results = [result for entry in entries if isinstance(entry, ResultsEntry) for result in entry.results]
    broke_off = words(chunks, "omitted").count("call")
    assert broke_off == 3
    assert len(calls_of(entries)) == len(results) == 391 - broke_off
    assert Counter(result.why for result in results)["interrupted"] == 18 - broke_off
