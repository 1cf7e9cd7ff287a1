"""Verifying: a sound store gives nothing, every damage is told with its place, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, StoreLocked
from session_actor.persistence.checking.verify import check

from .conformance_tools import opened
from .stores import SMALL, copied, cut_all, fill, flip, image, journals, kinds, push, segments


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    await fill(tmp_path / "store")
    return tmp_path / "store"


async def test_a_sound_store_gives_no_finding(root):
    findings = check(root)
    assert findings.list == []
    assert (findings.sessions, findings.records) == (3, 3 * 45)
    assert len(journals(root, "a")) > 2
    await cut_all(root)
    assert check(root).list == []


async def test_verifying_changes_nothing_at_all(root):
    flip(journals(root, "a")[0], 300)
    before = image(root)
    assert check(root).damaged
    assert image(root) == before


async def test_a_store_in_use_is_refused(root):
    async with opened(FileStore(root), working=False):
        with pytest.raises(StoreLocked, match=str(os.getpid())):
            check(root)


async def test_a_store_that_was_never_finished_is_a_note(tmp_path):
    (tmp_path / "new" / "log").mkdir(mode=0o700, parents=True)
    (tmp_path / "new").chmod(0o700)
    findings = check(tmp_path / "new")
    assert (kinds(findings), kinds(findings, "note")) == ([], ["unfinished"])


async def test_every_journal_line_is_checked(root):
    path = journals(root, "a")[0]
    data = path.read_bytes()
    offset = 0
    for line in data.splitlines(keepends=True):
        flip(path, offset + len(line) // 2)
        findings = check(root)
        assert findings.damaged, offset
        assert {finding.session for finding in findings.list} == {"a"}
        assert {finding.path for finding in findings.list} == {str(path)}
        assert findings.list[0].offset == offset
        path.write_bytes(data)
        offset += len(line)


async def test_a_damaged_index_is_told_from_a_damaged_record(root):
    path = journals(root, "a")[0]
    data = path.read_bytes()
    flip(path, len(data) - 40)
    assert kinds(check(root)) == ["index"]


@pytest.mark.parametrize("which", [0, 1, -1])
async def test_a_missing_journal_file_is_damage(root, which):
    journals(root, "b")[which].unlink()
    findings = check(root)
    assert set(kinds(findings)) <= {"journal", "snapshot"}
    assert "journal" in kinds(findings)
    assert {finding.session for finding in findings.list} == {"b"}


async def test_a_journal_that_is_too_short_is_damage(root):
    path = journals(root, "b")[-1]
    path.write_bytes(path.read_bytes()[:-50])
    assert "journal" in kinds(check(root))


async def test_swapped_files_are_damage(root):
    first, second = journals(root, "a")[0], journals(root, "b")[0]
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    assert {finding.session for finding in check(root).list} == {"a", "b"}


async def test_what_an_unfinished_cut_left_is_a_note(root):
    path = journals(root, "a")[-1]
    path.write_bytes(path.read_bytes() + b"half a line")
    number = int(path.stem.rpartition("-")[2])
    header = journals(root, "a")[0].read_bytes().splitlines(keepends=True)[0]
    after = path.with_name(path.name.replace(f"-{number}.", f"-{number + 1}."))
    after.write_bytes(header)
    after.chmod(0o600)
    findings = check(root)
    assert (kinds(findings), sorted(kinds(findings, "note"))) == ([], ["leftover", "tail"])


async def test_a_journal_that_nobody_knows_is_damage(root):
    path = journals(root, "a")[-1]
    shutil.copy2(path, path.with_name(path.name.replace("a-", "zz-")))
    assert "orphan" in kinds(check(root))


async def test_damage_in_the_log_names_its_session(root):
    path = segments(root)[-1]
    data = path.read_bytes()
    offset = data.index(b'"s":"b"')
    flip(path, data.index(b'"user_input"', offset) + 3)
    findings = check(root)
    assert kinds(findings) == ["log"]
    assert (findings.list[0].session, findings.list[0].path) == ("b", str(path))
    assert findings.list[0].offset == data.rindex(b"\n", 0, offset) + 1


async def test_damage_in_the_log_whose_owner_is_lost_is_told_so(root):
    path = segments(root)[-1]
    data = path.read_bytes()
    flip(path, data.index(b'"s":"b"') + 1)
    findings = check(root)
    assert "log" in kinds(findings)
    assert "any session" in findings.list[0].what


async def test_a_torn_end_is_a_note(root):
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        await store.load(lease)
        push(store, lease, 3)
        await store.flush("written")
        torn = copied(root, "torn")
    path = segments(torn)[-1]
    path.write_bytes(path.read_bytes().rstrip(b"\0")[:-20])
    findings = check(torn)
    assert (kinds(findings), set(kinds(findings, "note")) - {"leftover"}) == ([], {"torn"})


async def test_a_lost_segment_is_damage(root):
    segments(root)[-1].unlink()
    assert kinds(check(root)) == ["log"]  # the catalog says that it was there
    await fill(root.with_name("long"), in_log=150)
    segments(root.with_name("long"))[0].unlink()
    assert "log" in kinds(check(root.with_name("long")))


@pytest.mark.parametrize("damage", ["missing", "garbage", "flipped"])
async def test_a_damaged_catalog_is_told_and_the_rest_is_checked_all_the_same(root, damage):
    path = root / "catalog.db"
    if damage == "missing":
        path.unlink()
    elif damage == "garbage":
        path.write_bytes(b"garbage" * 1000)
    else:
        birth = journals(root, "a")[0].read_bytes().split(b'"birth":"')[1][:16]
        flip(path, path.read_bytes().index(birth) + 3)
    findings = check(root)
    assert kinds(findings) == ["catalog"]
    assert findings.records == 3 * 45
    flip(journals(root, "a")[0], 300)
    assert set(kinds(check(root))) == {"catalog", "journal"}


@pytest.mark.parametrize("content", [None, b"", b"nonsense\n"])
async def test_a_damaged_format_is_told(root, content):
    path = root / "FORMAT"
    path.unlink() if content is None else path.write_bytes(content)
    assert kinds(check(root)) == ["format"]


async def test_damaged_snapshots_are_told(root):
    first, second = sorted((root / "snapshots").glob("*/a-*.ndjson"))
    flip(first, 30)
    flip(second, second.stat().st_size - 30)
    findings = check(root)
    assert kinds(findings) == ["snapshot", "snapshot"]
    assert {finding.path for finding in findings.list} == {str(first), str(second)}


async def test_modes_links_and_pipes_are_told(root):
    (root / "log").chmod(0o755)
    journals(root, "a")[0].chmod(0o644)
    path = journals(root, "b")[0]
    path.unlink()
    path.symlink_to(journals(root, "a")[0])
    other = journals(root, "c")[0]
    other.unlink()
    os.mkfifo(other)
    findings = check(root)
    assert kinds(findings, "note") == ["mode", "mode"]
    assert kinds(findings).count("not_a_file") == 2
    assert {finding.session for finding in findings.list if finding.kind == "journal"} == {"b", "c"}


async def test_each_finding_says_where_and_what_to_do(root):
    flip(journals(root, "a")[0], 300)
    told = []
    findings = check(root, tell=told.append)
    assert told == findings.list
    for finding in told:
        text = str(finding)
        assert finding.path in text
        assert "python -m session_actor repair" in text
        assert "xxx" not in text


async def test_a_transaction_that_was_not_finished_is_rolled_back_in_a_copy_only(root):
    """The process died in a commit: SQLite's journal is hot, and opening the catalog would change both files."""
    connection = sqlite3.connect(root / "catalog.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE journals SET seq = seq + 1")
    connection.execute("CREATE TABLE big AS SELECT hex(randomblob(100000))")
    hot = copied(root, "hot")
    connection.execute("ROLLBACK")
    connection.close()
    assert (hot / "catalog.db-journal").stat().st_size > 0
    assert (hot / "catalog.db").read_bytes() != (root / "catalog.db").read_bytes()
    before = image(hot)
    assert check(hot).list == []
    assert image(hot) == before
