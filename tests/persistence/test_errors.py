"""The errors of the store: one tree, and each can be copied, pickled and read."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from session_actor.persistence import errors
from session_actor.persistence.errors import PersistenceError

EXAMPLES = [
    errors.StoreLocked("/data", 17),
    errors.StoreLocked("/data", None),
    errors.StoreLocked("/data", 1, here=True),
    errors.NetworkFileSystem("/data", "nfs4"),
    errors.NotAStore("/data", "there is no such directory"),
    errors.StoreVersionTooNew("/data/log/1.ndjson", "version 2", "versions 1 to 1"),
    errors.StoreClosed("the store is closed: open it"),
    errors.LineDamaged("its sum does not fit its bytes"),
    errors.ValueUnreadable("a tag that this version does not know"),
    errors.StoreCorrupt("/data/x", "why"),
    errors.CatalogCorrupt("/data/catalog.db", "why"),
    errors.LogCorrupt("/data/log/1.ndjson", 4096),
    errors.JournalCorrupt("/data/journals/ab/x.ndjson", 4096, 12),
    errors.JournalTruncated("/data/journals/ab/x.ndjson", 100, 0),
    errors.UnusableId("a session id must not be empty"),
    errors.ValueNotStorable("$.tools[2]", "tuple would come back as list"),
    errors.RecordTooLarge(100, 10),
    errors.BacklogFull(3, 300),
    errors.StoreDegraded("No space left on device"),
    errors.LevelUnreachable("synced", ("async",)),
    errors.NotDurable(7, "synced", "Input/output error"),
    errors.Fenced("user-42"),
    errors.SessionUnknown("user-42"),
    errors.SessionTombstoned("user-42"),
]


def test_every_error_derives_from_one_root_and_is_shown_here():
    defined = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__}
    assert all(issubclass(kind, PersistenceError) for kind in defined)
    assert defined - {PersistenceError} == {type(error) for error in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_keeps_its_text_and_its_attributes_in_a_copy_and_a_pickle(error, again):
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert vars(other) == vars(error)


def test_errors_about_files_name_the_path_and_the_place():
    error = errors.JournalCorrupt("/data/journals/ab/x.ndjson", 4096, 12)
    assert (error.path, error.offset, error.seq) == ("/data/journals/ab/x.ndjson", 4096, 12)
    assert "/data/journals/ab/x.ndjson" in str(error)
    assert "4096" in str(error)
    assert "record 12" in str(error)


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/var/log/app store/journals/ab/x-1.ndjson", "'/var/log/app store'"),
        ("/data/log/00000001.ndjson", "/data"),
        ("/var/log/FORMAT", "/var/log"),
        ("/data", "/data"),
        ("memory", "DIR"),
    ],
)
def test_errors_about_damage_give_the_whole_line_to_type(path, root):
    assert f"`python -m session_actor repair {root} --write` mends" in str(errors.StoreCorrupt(path, "why"))
    error = errors.JournalCorrupt(path, 7, 0)
    assert f"`python -m session_actor verify {root}`" in str(error)
    assert f"`python -m session_actor repair {root} --salvage readable --write`" in str(error)
    assert "record" not in str(error).partition(";")[0]
