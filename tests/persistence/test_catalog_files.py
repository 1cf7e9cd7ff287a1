"""The catalog's tables of sealed files and of pruned records, and the upgrade of a catalog without them."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from session_actor.persistence.catalog import catalog_files
from session_actor.persistence.catalog.catalog import Catalog, CatalogRow
from session_actor.persistence.catalog.catalog_files import NO_INDEX, VERSION, FileRow
from session_actor.persistence.errors import CatalogCorrupt
from session_actor.persistence.format.header import RecordRef

GOLDEN = Path(__file__).parent / "golden" / "store-v1"
BIRTH = "5e0f5e0f5e0f5e0f"


def sealed(number: int, frames: tuple[int, int], seqs: tuple[int, int], session: str = "a") -> FileRow:
    return FileRow(session, BIRTH, number, *seqs, *frames, 1000 + number, 900, "9ae0daaf", 2**32 - 1)


ROWS = [
    sealed(1, (1, 90), (1, 100)),
    sealed(2, (95, 200), (101, 200)),
    sealed(3, (0, 0), (201, 300)),
    sealed(4, (201, 2**53 - 1), (301, 400)),
]


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog(tmp_path / "catalog.db")
    catalog.open(create=True)
    row = CatalogRow("a", BIRTH, 1, 5, 4096, 500, "9ae0daaf", 7)
    catalog.commit_cut([row], [], 3, [*ROWS, sealed(1, (1, 5), (1, 5), "b")])
    yield catalog
    catalog.close()


def test_sealed_files_come_back_in_order_and_by_the_records_behind(catalog):
    files = catalog.files
    assert files.of("a", BIRTH) == ROWS
    assert files.of("a", BIRTH, after_seq=200) == ROWS[2:]
    assert files.of("a", "another birth") == []
    assert (files.newest("a", BIRTH), files.newest("c", BIRTH)) == (ROWS[3], None)
    assert files.numbers("a", BIRTH) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("frame", "number"), [(1, 1), (90, 1), (91, None), (95, 2), (200, 2), (201, 4), (2**53 - 1, 4)]
)
def test_the_file_of_a_frame_is_found(catalog, frame, number):
    row = catalog.files.with_frame("a", BIRTH, frame)
    assert (row.number if row else None) == number


def test_finding_the_file_of_a_frame_reads_no_other_rows(catalog):
    query = "EXPLAIN QUERY PLAN SELECT * FROM files WHERE session = ? AND birth = ? AND last_frame >= ?"
    with catalog._reading() as connection:
        plan = connection.execute(query + " AND dropped = 0 ORDER BY last_frame LIMIT 1", (b"a", BIRTH, 1)).fetchall()
    assert [step[3] for step in plan] == [
        "SEARCH files USING INDEX files_by_frame (session=? AND birth=? AND last_frame>?)"
    ]


def test_files_whose_frames_are_not_known_are_found_by_themselves(catalog):
    unknown = sealed(5, (0, NO_INDEX), (401, 500))
    catalog.commit_cut([], [], 3, [unknown])
    assert catalog.files.without_index("a", BIRTH, 6) == [unknown]
    assert not catalog.files.without_index("a", BIRTH, 5)
    assert catalog.files.newest_frame("a", BIRTH, 9) == 2**53 - 1
    assert catalog.files.newest_frame("a", BIRTH, 2) == catalog.files.of("a", BIRTH)[0].last_frame
    assert catalog.files.newest_frame("c", BIRTH, 9) == 0


def test_dropped_files_count_no_more_and_are_forgotten_later(catalog):
    files = catalog.files
    assert files.base("a", BIRTH) == RecordRef()
    files.drop("a", BIRTH, ROWS[:2], forgotten=[], base=RecordRef(200, "11111111"))
    assert files.of("a", BIRTH) == ROWS[2:]
    assert files.with_frame("a", BIRTH, 100) is None
    assert (files.numbers("a", BIRTH), files.numbers("a", BIRTH, dropped=True)) == ([1, 2, 3, 4], [1, 2])
    assert files.base("a", BIRTH) == RecordRef(200, "11111111")
    assert files.sizes("a", "b") == {("a", BIRTH): 2007, ("b", BIRTH): 1001}
    files.drop("a", BIRTH, [ROWS[2]], forgotten=[1, 2, 4], base=RecordRef(300, "22222222"))
    assert (files.numbers("a", BIRTH), files.numbers("a", BIRTH, dropped=True)) == ([3, 4], [3])
    catalog.check()
    files.check()


def test_a_deleted_birth_loses_its_files_and_gets_none_again(catalog):
    catalog.files.drop("a", BIRTH, ROWS[:1], forgotten=[], base=RecordRef(100, "11111111"))
    catalog.commit_cut([], [("a", BIRTH)], 4)
    catalog.commit_cut([], [], 4, ROWS)
    assert catalog.files.numbers("a", BIRTH) == []
    assert catalog.files.base("a", BIRTH) == RecordRef()
    assert catalog.files.numbers("b", BIRTH) == [1]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE files SET last_frame = 91 WHERE number = 1",
        "UPDATE files SET dropped = 1 WHERE number = 1",
        "UPDATE files SET crc = 5 WHERE number = 1",
        "UPDATE files SET birth = X'ff' WHERE number = 1",
        "UPDATE bases SET seq = 5",
    ],
)
def test_damaged_rows_are_not_believed(catalog, tmp_path, change):
    catalog.files.drop("b", BIRTH, [], forgotten=[], base=RecordRef(1, "11111111"))
    catalog.close()
    connection = sqlite3.connect(tmp_path / "catalog.db")
    connection.execute(change)
    connection.commit()
    connection.close()
    catalog.open(create=False)
    with pytest.raises(CatalogCorrupt):
        catalog.files.check()


def version_of(path: Path) -> int:
    """By the header of the database."""
    return int.from_bytes(path.read_bytes()[60:64], "big")


def test_a_catalog_of_version_1_is_read_as_it_is(tmp_path):
    path = Path(shutil.copy(GOLDEN / "catalog.db", tmp_path))
    before = path.read_bytes()
    for _ in range(2):
        catalog = Catalog(path)
        catalog.open(create=False)
        assert [(row.session, row.journal, row.seq) for row in catalog.rows()] == [
            ("lone \ud800", 1, 27),
            ("user-42", 1, 27),
        ]
        assert (catalog.deleted("gone"), catalog.first_live_segment()) == (True, 4)
        row = catalog.rows()[1]
        assert catalog.files.of("user-42", row.birth) == []
        catalog.check()
        catalog.files.check()
        catalog.close()
    assert path.read_bytes() == before


@pytest.fixture(params=["new", "golden"])
def unsealed(request, tmp_path):
    """A catalog without the tables of sealed files."""
    if request.param == "golden":
        shutil.copy(GOLDEN / "catalog.db", tmp_path)
    catalog = Catalog(tmp_path / "catalog.db")
    catalog.open(create=True)
    yield catalog
    catalog.close()


def test_without_a_sealed_file_nothing_is_known_of_any(unsealed, tmp_path):
    files = unsealed.files
    unsealed.commit_cut([CatalogRow("a", BIRTH, 1, 1, 4096, 500, "9ae0daaf", 7)], [("b", BIRTH)], 5)
    assert (files.of("a", BIRTH), files.whole("a", BIRTH), files.base("a", BIRTH)) == (
        [],
        (RecordRef(), []),
        RecordRef(),
    )
    assert (files.newest("a", BIRTH), files.with_frame("a", BIRTH, 1), files.newest_frame("a", BIRTH, 9)) == (
        None,
        None,
        0,
    )
    assert (files.without_index("a", BIRTH, 9), files.numbers("a", BIRTH), files.sizes("a", "b")) == ([], [], {})
    assert version_of(tmp_path / "catalog.db") == 1


def seal(catalog: Catalog) -> None:
    catalog.commit_cut([], [], 5, ROWS)


def prune(catalog: Catalog) -> None:
    catalog.files.drop("a", BIRTH, [], forgotten=[], base=RecordRef(7, "9ae0daaf"))


@pytest.mark.parametrize("change", [seal, prune])
def test_the_first_sealed_file_or_pruning_makes_the_tables_and_a_catalog_of_the_newest_version(
    unsealed, change, tmp_path
):
    assert unsealed.files.of("a", BIRTH) == []
    change(unsealed)
    wanted = (RecordRef(), ROWS) if change is seal else (RecordRef(7, "9ae0daaf"), [])
    for _ in range(2):
        assert unsealed.files.whole("a", BIRTH) == wanted
        unsealed.check()
        unsealed.files.check()
        assert version_of(tmp_path / "catalog.db") == VERSION
        unsealed.close()
        unsealed.open(create=False)


@pytest.mark.parametrize("change", [seal, prune])
def test_tables_whose_making_is_cut_short_are_not_there(unsealed, change, tmp_path, monkeypatch):
    schema = catalog_files.SCHEMA
    monkeypatch.setattr(catalog_files, "SCHEMA", (*schema, "this is no SQL"))
    before = (tmp_path / "catalog.db").read_bytes()
    with pytest.raises(CatalogCorrupt):
        change(unsealed)
    assert unsealed.files.whole("a", BIRTH) == (RecordRef(), [])
    assert (tmp_path / "catalog.db").read_bytes() == before
    monkeypatch.setattr(catalog_files, "SCHEMA", schema)
    change(unsealed)
    assert unsealed.files.whole("a", BIRTH) != (RecordRef(), [])


def test_a_deleted_session_needs_no_tables_of_sealed_files(unsealed, tmp_path):
    unsealed.commit_cut([], [("a", BIRTH)], 5)
    assert unsealed.deleted("a")
    assert version_of(tmp_path / "catalog.db") == 1


def test_a_catalog_that_says_that_it_has_no_such_tables_and_has_them_is_damaged(catalog, tmp_path):
    catalog.close()
    connection = sqlite3.connect(tmp_path / "catalog.db")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    with pytest.raises(CatalogCorrupt, match="no catalog"):
        catalog.open(create=False)


def test_a_database_of_version_1_without_the_tables_is_no_catalog(tmp_path):
    connection = sqlite3.connect(tmp_path / "catalog.db")
    connection.executescript("CREATE TABLE journals (x); PRAGMA user_version = 1")
    connection.close()
    with pytest.raises(CatalogCorrupt, match="no catalog"):
        Catalog(tmp_path / "catalog.db").open(create=False)
