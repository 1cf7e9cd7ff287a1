"""The catalog: what is committed is there, what is damaged is refused."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_actor.persistence.catalog.catalog import Catalog, CatalogRow
from session_actor.persistence.catalog.catalog_files import VERSION
from session_actor.persistence.errors import CatalogCorrupt, StoreClosed, StoreVersionTooNew

BIRTH, LATER = "5e0f5e0f5e0f5e0f", "6a6a6a6a6a6a6a6a"


def a_row(session: str = "user-42", birth: str = BIRTH, seq: int = 12) -> CatalogRow:
    return CatalogRow(session, birth, 1_769_851_800_000_001, 1, 4096, seq, "9ae0daaf", 2**32 - 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "catalog.db"


@pytest.fixture
def catalog(path):
    catalog = Catalog(path)
    catalog.open(create=True)
    yield catalog
    catalog.close()


def test_a_new_catalog_is_empty_and_private(catalog, path):
    assert catalog.rows() == []
    assert catalog.get("user-42") is None
    assert catalog.first_live_segment() == 1
    assert not catalog.deleted("user-42")
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


def page_bytes(path):
    """How large the pages of a database are, by its header."""
    return int.from_bytes(path.read_bytes()[16:18], "big")


def test_a_new_catalog_is_small_and_an_older_one_keeps_its_pages(catalog, path, tmp_path):
    assert page_bytes(path) == 1024
    assert path.stat().st_size == 4096
    older = tmp_path / "older.db"
    with closing(sqlite3.connect(path)) as ours, closing(sqlite3.connect(older)) as theirs:
        theirs.executescript(f"PRAGMA page_size = 4096; {''.join(ours.iterdump())}")
        theirs.execute("PRAGMA user_version = 1")

    found = Catalog(older)
    found.open(create=True)
    found.commit_cut([a_row()], [], 7)
    assert (found.rows(), found.first_live_segment(), page_bytes(older)) == ([a_row()], 7, 4096)
    found.close()


def test_what_a_cut_committed_is_there_after_reopening(catalog, path):
    catalog.commit_cut([a_row(), a_row("other", seq=1)], [], 5)
    catalog.close()
    again = Catalog(path)
    again.open(create=False)
    assert again.get("user-42") == a_row()
    assert again.rows() == [a_row("other", seq=1), a_row()]
    assert again.first_live_segment() == 5
    again.close()


def test_a_later_cut_replaces_a_row(catalog):
    catalog.commit_cut([a_row()], [], 2)
    catalog.commit_cut([a_row(seq=20)], [], 3)
    assert catalog.rows() == [a_row(seq=20)]


def test_a_deleted_session_is_known_as_such_until_it_is_made_again(catalog):
    catalog.commit_cut([a_row()], [], 2)
    catalog.commit_cut([], [("user-42", BIRTH)], 3)
    assert catalog.get("user-42") is None
    assert catalog.deleted("user-42")
    catalog.commit_cut([a_row(birth=LATER, seq=1)], [], 4)
    assert not catalog.deleted("user-42")
    assert catalog.dead_births("user-42") == {BIRTH}


def test_a_deleted_birth_never_returns(catalog):
    catalog.commit_cut([a_row()], [("user-42", BIRTH)], 2)
    assert catalog.get("user-42") is None
    catalog.commit_cut([a_row(seq=99)], [], 3)
    assert catalog.get("user-42") is None
    assert catalog.deleted("user-42")


def test_deleting_an_older_birth_leaves_the_newer_one(catalog):
    catalog.commit_cut([a_row(birth=LATER)], [("user-42", BIRTH)], 2)
    assert catalog.get("user-42") == a_row(birth=LATER)


@settings(max_examples=30)
@given(
    ids=st.lists(
        st.text(alphabet=st.characters(exclude_categories=[]), min_size=1, max_size=5), unique=True, max_size=20
    ),
    prefix=st.text(alphabet=st.characters(exclude_categories=[]), max_size=2),
    limit=st.integers(1, 4),
)
def test_a_listing_in_pages_gives_each_id_with_the_prefix_once_and_in_order(tmp_path_factory, ids, prefix, limit):
    catalog = Catalog(tmp_path_factory.mktemp("listing") / "catalog.db")
    catalog.open(create=True)
    catalog.commit_cut([a_row(session) for session in ids], [], 1)
    found: list[str] = []
    while page := catalog.rows(prefix, found[-1] if found else None, limit):
        found += [row.session for row in page]
    catalog.close()
    assert found == sorted(session for session in ids if session.startswith(prefix))


def test_a_cut_that_fails_in_the_middle_changes_nothing(catalog):
    catalog.commit_cut([a_row()], [], 2)

    def rows():
        yield a_row(seq=99)
        raise RuntimeError("the cut was cancelled")

    with pytest.raises(RuntimeError, match="cancelled"):
        catalog.commit_cut(rows(), [], 3)
    assert catalog.rows() == [a_row()]
    assert catalog.first_live_segment() == 2


def test_a_process_killed_after_a_commit_has_committed(path):
    script = f"""
import os, signal
from session_actor.persistence.catalog.catalog import Catalog, CatalogRow
catalog = Catalog({str(path)!r})
catalog.open(create=True)
catalog.commit_cut([CatalogRow("user-42", "5e0f", 1, 1, 4096, 12, "9ae0daaf", 7)], [], 9)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    catalog = Catalog(path)
    catalog.open(create=False)
    assert [row.seq for row in catalog.rows()] == [12]
    assert catalog.first_live_segment() == 9
    catalog.close()


def test_commits_are_synced_and_no_commit_hangs_on_a_deleted_journal(catalog):
    connection = catalog._access._connection
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("truncate",)


def test_threads_take_turns(catalog):
    def work(thread: int) -> None:
        for seq in range(1, 11):
            catalog.commit_cut([a_row(f"user-{thread}", seq=seq)], [], seq)
            assert catalog.get(f"user-{thread}").seq == seq

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(row.session, row.seq) for row in catalog.rows()] == [(f"user-{thread}", 10) for thread in range(4)]


# --- damage ---------------------------------------------------------------------------------------------------------


def test_a_missing_catalog_is_damage_unless_it_is_to_be_made(path):
    with pytest.raises(CatalogCorrupt, match="missing"):
        Catalog(path).open(create=False)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"\x00" * 4096, b"not a database" * 100])
def test_a_file_that_is_no_catalog_is_damage_and_stays_untouched(path, content):
    path.write_bytes(content)
    with pytest.raises(CatalogCorrupt):
        Catalog(path).open(create=False)
    assert path.read_bytes() == content


def test_a_first_creation_that_was_interrupted_is_done_again(path):
    path.touch()
    catalog = Catalog(path)
    catalog.open(create=True)
    assert catalog.first_live_segment() == 1
    catalog.close()


def test_another_database_is_not_made_into_a_catalog(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(CatalogCorrupt, match="holds no catalog"):
        Catalog(path).open(create=True)
    assert path.read_bytes() == before


def test_a_newer_catalog_is_refused_by_name_and_stays_untouched(catalog, path):
    catalog.close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreVersionTooNew, match=f"catalog version {VERSION + 1}"):
        Catalog(path).open(create=False)
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to("elsewhere")])
def test_something_else_in_the_place_of_the_catalog_is_refused_at_once(path, make):
    make(path)
    with pytest.raises((CatalogCorrupt, OSError)):
        Catalog(path).open(create=True)
    assert not (path.parent / "elsewhere").exists()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE journals SET bytes = bytes + 1",
        "UPDATE journals SET seq = seq - 1",
        "UPDATE journals SET seq = 12.5",
        "UPDATE journals SET birth = CAST(birth AS BLOB)",
        "UPDATE journals SET birth = CAST(x'ff' AS TEXT)",
        "UPDATE tombstones SET birth = x'00'",
        "UPDATE numbers SET value = 'x'",
        "UPDATE journals SET session = x'43'",
        "UPDATE journals SET birth = 'x'",
        "UPDATE journals SET created_us = 0",
        "UPDATE journals SET journal = 2",
        "UPDATE journals SET sum = '00000000'",
        "UPDATE journals SET crc = 1",
        "UPDATE journals SET row_sum = 1",
        "UPDATE tombstones SET session = x'43'",
        "UPDATE tombstones SET birth = 'x'",
        "UPDATE numbers SET value = value + 1",
        "DELETE FROM numbers",
        "DROP TABLE journals",
    ],
)
def test_a_changed_number_is_never_believed(catalog, path, change):
    catalog.commit_cut([a_row("A")], [("B", BIRTH)], 5)
    catalog.check()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(CatalogCorrupt):
        catalog.check()
    with pytest.raises(CatalogCorrupt):
        (catalog.rows(), catalog.dead_births("B"), catalog.dead_births("C"), catalog.first_live_segment())


@pytest.mark.parametrize("change", ["UPDATE journals SET session = 'A'", "UPDATE tombstones SET session = 7"])
def test_a_row_that_no_id_can_find_is_found_by_a_check(catalog, path, change):
    catalog.commit_cut([a_row("A")], [("B", BIRTH)], 5)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(CatalogCorrupt):
        catalog.check()


def test_a_flipped_bit_anywhere_in_the_file_is_found_or_changes_nothing(catalog, path):
    catalog.commit_cut([a_row(f"user-{number}") for number in range(20)], [("gone", BIRTH)], 5)
    expected = (catalog.rows(), catalog.dead_births("gone"), catalog.first_live_segment())
    catalog.close()
    whole = path.read_bytes()
    wrong = []
    used = [index for index, byte in enumerate(whole) if byte]
    for index in used[::7]:
        path.write_bytes(bytes([*whole[:index], whole[index] ^ (1 << index % 8), *whole[index + 1 :]]))
        damaged = Catalog(path)
        try:
            damaged.open(create=False)
            damaged.check()
            if (damaged.rows(), damaged.dead_births("gone"), damaged.first_live_segment()) != expected:
                wrong.append(index)
        except (CatalogCorrupt, StoreVersionTooNew, OSError):
            pass
        finally:
            damaged.close()
    assert wrong == []


def test_a_closed_catalog_says_so(catalog):
    catalog.close()
    catalog.close()
    with pytest.raises(StoreClosed):
        catalog.get("user-42")
    with pytest.raises(StoreClosed):
        catalog.commit_cut([], [], 1)


def test_a_disk_that_refuses_is_an_os_error_and_leaves_the_catalog_usable(catalog):
    catalog.commit_cut([a_row()], [], 2)
    pages = catalog._access._connection.execute("PRAGMA page_count").fetchone()[0]
    catalog._access._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(OSError, match="full"):
        catalog.commit_cut([a_row(f"{'x' * 500}{number}") for number in range(100)], [], 3)
    assert catalog.rows() == [a_row()]
    catalog._access._connection.execute("PRAGMA max_page_count = 1000000")
    catalog.commit_cut([a_row(seq=13)], [], 3)
    assert catalog.rows() == [a_row(seq=13)]
