"""The figures that the library promises, in one table: changing one is a decision and not a slip."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from session_actor import Session, SessionService
from session_actor.persistence import FileStore
from session_actor.supervisors import Backoff, ChildSpec, DynamicSupervisor, Intensity, MailboxSpec, ServerRef

MB = 1024 * 1024

CONSTANTS = {
    "session_actor.state.keys.KEYS_KEPT": 1_024,  # a retry is known by its key among so many
    "session_actor.state.apply.CALLS_KEPT": 1_024,  # and a tool's result by the id of its call
    "session_actor.state.grow.KEYFRAMES": 32,  # so many frames are read for one that is cold
    "session_actor.window.requests_made.REQUESTS_KEPT": 32,  # a request is known by its key or its number among so many
    "session_actor.window.request_options.RESULT_CAP": 25_000,  # tokens of a result that are shown at most
    "session_actor.budget.report.YELLOW": 0.75,
    "session_actor.budget.report.RED": 0.95,
    "session_actor.budget.readings.LIMIT": 32,  # real lengths are remembered
    "session_actor.budget.reserves.SMALL_WINDOW": 64_000,  # below it a window is divided by shares alone
    "session_actor.budget.trim.TARGET": 0.6,  # of the allowance are left by a trim
    "session_actor.budget.trim.WHOLE_STEPS": 3,  # so many steps keep their results whole
    "session_actor.budget.trim.WHOLE_SHARE": 0.25,  # and so does this part of the allowance
    "session_actor.budget.trim.WORTH": 0.15,  # of the allowance is what stubs must save
    "session_actor.budget.trim.LARGE_SHARE": 0.25,  # an exchange that takes more goes step by step
    "session_actor.window.marks.ARTIFACTS_KEPT": 200,
    "session_actor.window.marks.ARTIFACTS_SHARE": 0.02,
    "session_actor.window.marks.MARKS_KEPT": 64,
    "session_actor.window.marks.ROOMIER": 1.25,
    "session_actor.tokens.images.UNKNOWN_SIZES": ((4_096, 3_072), (2_048, 768)),
    "session_actor.tokens.images.PAGE_BYTES": 20_000,
    "session_actor.tokens.images.MOST_PAGES": 100,
    "session_actor.tokens.images.UNKNOWN_PAGES": 20,
    "session_actor.compaction.ranges.TAIL_TOKENS": 20_000,  # of what was said last are never summed up
    "session_actor.compaction.ranges.TAIL_SHARE": 4,  # of the window, where that is less
    "session_actor.compaction.planning.CAP_TOKENS": 8_000,  # has a summary at most
    "session_actor.compaction.planning.CAP_SHARE": 10,
    "session_actor.compaction.gate.LEAST_TOKENS": 64,
    "session_actor.compaction.gate.GAIN_TOKENS": 2_000,
    "session_actor.compaction.gate.GAIN_SHARE": 10,
    "session_actor.compaction.merge.IDENTIFIERS_KEPT": 64,
    "session_actor.compaction.merge.ROUNDS_KEPT": 2,
    "session_actor.compaction.overlays.OVERLAYS_KEPT": 32,
    "session_actor.compaction.automatic.ROUNDS": 2,
    "session_actor.server.snapshots.EVERY_RECORDS": 1_000,
    "session_actor.server.snapshots.RESTING_RECORDS": 250,
    "session_actor.persistence.files.names.MAX_ID_CHARACTERS": 512,
    "session_actor.persistence.format.record.MAX_RECORD_BYTES": 64 * MB,
    "session_actor.persistence.writing.writer.INLINE_RECORDS": 32,  # who asks for `written` writes so short a queue
    "session_actor.persistence.writing.syncer.UNSYNCED_BYTES": 8 * MB,  # or a second, whichever comes first
    "session_actor.persistence.writing.syncer.IDLE_S": 1.0,  # then a watermark tells what is synced
    "session_actor.persistence.file_store.SYNC_INTERVAL_S": 1.0,
    "session_actor.persistence.file_store.SEGMENT_BYTES": 8 * MB,
    "session_actor.persistence.file_store.BACKLOG_BYTES": 64 * MB,
    "session_actor.persistence.file_store.JOURNAL_BYTES": MB,  # a file of a journal is sealed with an index then
    "session_actor.persistence.file_store.CUT_AT_CLOSE": 64,  # closing cuts the log when it has so few sessions
}


@pytest.mark.parametrize("path", CONSTANTS)
def test_a_figure_is_what_was_decided(path):
    module, name = path.rsplit(".", 1)
    assert getattr(import_module(module), name) == CONSTANTS[path]


def defaults(function: object) -> dict[str, object]:
    """The arguments that have a default, with it."""
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}


def test_the_defaults_of_a_service_are_what_was_decided():
    assert defaults(SessionService.open) == {
        "durability": "async",
        "retention": "all",  # nothing is dropped unless somebody says so
        "recovery": "strict",  # and nothing that is lost is passed over
        "lock_timeout_s": 0.0,  # a second process is told at once
        "idle_timeout_s": 900.0,
        "max_live": None,
        "mailbox_limit": 10_000,
        "max_restarts": 5,
        "restart_window_s": 30.0,
        "close_timeout_s": 10.0,
        "models": None,
        "summarizer": None,  # nothing asks a model unless somebody says how
        "summarizer_window": None,
        "rule_words": (),
        "compaction_timeout_s": 120.0,
        "hooks": (),
    }


def test_the_defaults_of_a_store_are_what_was_decided():
    found = defaults(FileStore)
    assert (found["segment_bytes"], found["sync_interval_s"], found["lock_timeout_s"]) == (8 * MB, 1.0, 0.0)


@pytest.mark.parametrize("function", [ServerRef.call, ServerRef.dispatch, ServerRef.stop, Session.push, Session.stack])
def test_a_call_waits_five_seconds_unless_it_says_otherwise(function):
    assert defaults(function)["timeout_s"] == 5.0


def test_the_defaults_of_supervision_are_what_was_decided():
    assert Intensity() == Intensity(max_restarts=3, max_seconds=5.0)
    assert Backoff() == Backoff(initial_s=0.01, factor=2.0, max_s=10.0, jitter=0.2)
    assert MailboxSpec() == MailboxSpec(limit=10_000, overflow="block")
    assert defaults(ChildSpec)["restart"] == "permanent"
    assert defaults(ChildSpec)["shutdown_s"] == 5.0
    assert defaults(DynamicSupervisor)["max_children"] is None
