"""Ids and file names: any id has one place of its own inside the store."""

from __future__ import annotations

import enum
import re
import unicodedata
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.persistence.errors import PersistenceError, UnusableId
from session_actor.persistence.files.names import check_session_id, id_bytes, journal_path, new_birth

ids = st.text(alphabet=st.characters(exclude_categories=[]), min_size=1, max_size=512)
HOSTILE = [
    "../../etc/passwd", "/etc/passwd", "..", ".", "/", "\\\\server\\share", "C:\\x", "a/../../b", "~root", "-rf",
    "\x00", "a\x00b", "nul\x00.txt", "CON", "con", "NUL.txt", "aux", "COM1", "LPT9.", "a.", "a ", " ", "\n", "\r\n",
    "x" * 512, "\U0001f600" * 512, "\ud800", "\udfff\ud83d\ude00", "\U0001f600", "\u202egnp.exe", "\u00e9", "e\u0301",
    "\u00c5", "\u212b", "A\u030a", "User", "user", "USER", "\u0130", "i\u0307", "K", "\u212a", "\u00df", "ss", "\u1e9e",
    "%2e%2e%2f", "$esc", '{"$esc":"x"}', "LOCK", "FORMAT", "catalog.db",
]  # fmt: skip


@given(session=ids, number=st.integers(1, 10**9))
def test_a_journal_has_a_plain_name_in_a_folder_of_two_digits(session, number):
    path = journal_path(session, number)
    assert re.fullmatch(r"[0-9a-f]{2}/[a-z0-9_]{1,80}-[0-9a-f]{32}-[0-9]+\.ndjson", path)
    assert path.endswith(f"-{number}.ndjson")
    assert len(PurePosixPath(path).name) < 128


@given(one=ids, other=ids)
def test_two_ids_never_share_a_place_even_where_case_does_not_matter(one, other):
    assert (journal_path(one, 1).lower() == journal_path(other, 1).lower()) == (one == other)


def test_hostile_ids_stay_inside_and_apart_on_any_file_system():
    paths = [journal_path(session, 1) for session in HOSTILE]
    folded = {unicodedata.normalize("NFKC", path).casefold() for path in paths}
    assert len(folded) == len(HOSTILE)
    assert all(path.isascii() and ".." not in path and not path.startswith("/") for path in paths)
    assert all(PurePosixPath(path).name.split(".")[0].split("-")[0] != "" for path in paths)


def test_the_prefix_shows_the_id_where_it_can():
    assert journal_path("User-42", 3).split("/")[1].startswith("user_42-")
    assert journal_path("\U0001f600", 1).split("/")[1].startswith("session-")
    assert journal_path("user-42", 1) == "8a/user_42-8a305ce99630c52f2dafb1f1a55dafc2-1.ndjson"


def test_the_numbers_of_one_journal_lie_side_by_side():
    assert journal_path("user-42", 1)[:-8] == journal_path("user-42", 2)[:-8]


@given(st.lists(ids, min_size=2))
def test_ids_as_bytes_keep_the_order_of_code_points(sessions):
    assert sorted(sessions, key=id_bytes) == sorted(sessions)


@pytest.mark.parametrize("session", HOSTILE)
def test_any_non_empty_text_of_up_to_512_characters_is_an_id(session):
    assert check_session_id(session) == session


@pytest.mark.parametrize(
    ("session", "why"),
    [
        ("", "empty"),
        ("x" * 513, "at most 512 characters, this one has 513"),
        (None, "not NoneType"),
        (7, "not int"),
        (b"user", "not bytes"),
        (["user"], "not list"),
    ],
)
def test_an_unusable_id_is_refused_by_name(session, why):
    with pytest.raises(UnusableId, match=why) as caught:
        check_session_id(session)
    assert isinstance(caught.value, PersistenceError)


def test_an_id_of_a_subclass_of_str_is_taken_as_the_plain_text():
    found = check_session_id(enum.StrEnum("Name", {"USER": "user"}).USER)
    assert found == "user"
    assert type(found) is str


def test_births_are_new_every_time():
    births = {new_birth() for _ in range(1000)}
    assert len(births) == 1000
    assert all(re.fullmatch("[0-9a-f]{16}", birth) for birth in births)
