"""One tree: whatever this package raises is a `SessionActorError`, and still the floor's own class."""

from __future__ import annotations

import inspect

import pytest

from session_actor import errors
from session_actor.errors import ActorError, Refused, SessionActorError, StoreError, translate
from session_actor.persistence import errors as store
from session_actor.service_errors import SessionBusy, SessionExists, SessionNotFound
from session_actor.supervisors import errors as actors

SAMPLES = [
    store.StoreLocked("/x", 7),
    store.NetworkFileSystem("/x", "nfs"),
    store.NotAStore("/x", "why"),
    store.StoreVersionTooNew("/x", "2", "1"),
    store.StoreClosed("closed"),
    store.CatalogCorrupt("/x", "why"),
    store.LogCorrupt("/x", 9),
    store.JournalCorrupt("/x", 9, 3),
    store.JournalTruncated("/x", 9, 3),
    store.UnusableId("empty"),
    store.ValueNotStorable("$.a", "why"),
    store.RecordTooLarge(9, 3),
    store.BacklogFull(9, 3),
    store.StoreDegraded("why"),
    store.LevelUnreachable("synced", ("async",)),
    store.NotDurable(9, "synced", "why"),
    store.Fenced("user-42"),
    actors.CallTimeout("late"),
    actors.MailboxFull("full"),
    actors.WrongLoop("wrong"),
    actors.UnknownMessage("unknown"),
    actors.AsyncioOnly("trio"),
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_of_a_floor_becomes_the_one_of_the_same_name(error):
    error.__cause__ = OSError(5, "broken")
    ours = translate(error)

    assert type(ours) is getattr(errors, type(error).__name__)
    assert isinstance(ours, SessionActorError)
    assert isinstance(ours, type(error))
    assert str(ours) == str(error)
    assert vars(ours) == vars(error)
    assert ours.__cause__ is error.__cause__


def test_every_error_of_the_floors_is_caught_as_one_of_ours():
    for module, ours in ((store, StoreError), (actors, ActorError)):
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, store.PersistenceError | actors.SupervisorError):
                translated = translate(kind.__new__(kind))
                assert isinstance(translated, ours | Refused), kind
                assert isinstance(translated, SessionActorError)


def test_an_error_of_ours_is_left_as_it_is():
    error = errors.EmptyStack("fork")

    assert translate(errors.StoreClosed("x")).args == ("x",)
    assert translate(error) is error


def test_every_translation_is_a_new_object():
    error = store.StoreDegraded("why")

    assert translate(error) is not translate(error)


@pytest.mark.parametrize("error", [sample for sample in SAMPLES if isinstance(sample, store.PersistenceError)], ids=str)
def test_whatever_the_store_says_is_an_answer_that_a_server_survives(error):
    assert isinstance(translate(error), actors.Refusal)


def test_a_refusal_of_the_package_means_that_nothing_was_changed():
    for kind in (errors.BacklogFull, errors.StoreDegraded, errors.HeadMoved, errors.KeyConflict):
        assert issubclass(kind, Refused)
    assert not issubclass(errors.NotDurable, Refused)


def test_every_error_says_what_it_is():
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, SessionActorError):
            assert kind.__doc__, kind


def test_a_session_that_is_not_there_is_told_without_asking_to_make_it():
    assert "was never made here, or it was deleted" in str(SessionNotFound("user-42"))


@pytest.mark.parametrize(("waited_s", "says"), [(None, "exchange(wait_s=seconds)"), (0.2, "within 0.2 s")])
def test_a_busy_session_says_how_long_it_was_waited_for(waited_s, says):
    assert says in str(SessionBusy("user-42", waited_s))


def test_damage_advises_what_can_be_done_today():
    for error in (store.JournalCorrupt("/x", 9, 3), errors.ReplayError("push", 3, "why")):
        assert "python -m session_actor verify" in str(error)
        assert "repair" in str(error)


def test_what_a_service_refuses_is_a_refusal():
    for kind in (SessionNotFound, SessionExists, SessionBusy):
        assert issubclass(kind, Refused)
