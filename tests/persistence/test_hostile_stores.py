"""Stores that somebody made to do harm: bounded memory and typed errors, in opening, loading, verifying, repairing."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import msgspec
import pytest

from session_actor.persistence import FileStore, StoreCorrupt
from session_actor.persistence.catalog.catalog import Catalog
from session_actor.persistence.checking.verify import check
from session_actor.persistence.format.record import close_line
from session_actor.persistence.log.segment_file import MAX_SEGMENT_BYTES
from session_actor.persistence.repair.repair import repair

from .conformance_tools import opened
from .stores import SMALL, fill, journals, kinds, loaded, segments

GIGABYTE = 1 << 30
LONG = 100 * 1024 * 1024
"""Longer than any valid line."""
LIMIT_BYTES = 900 * 1024 * 1024
CHILD = """
import asyncio, json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]), int(sys.argv[3])))
from session_actor.persistence import FileStore, PersistenceError
from session_actor.persistence.repair.repair import repair
from session_actor.persistence.checking.verify import check

async def use(root):
    told = {}
    store = FileStore(root, segment_bytes=20000, journal_bytes=2000, cut_at_close=0)
    try:
        await store.open()
    except PersistenceError as error:
        return {"open": type(error).__name__}
    for session in "abc":
        try:
            lease = await store.acquire(session, create=False)
            told[session] = len((await store.load(lease, snapshots=False)).records)
        except PersistenceError as error:
            told[session] = type(error).__name__
    await store.close()
    return told

def do(what):
    if what == "open":
        return asyncio.run(use(root))
    if what == "verify":
        return [[finding.kind, finding.session] for finding in check(root).list]
    try:
        repairs = repair(root, write=True, salvage="readable")
    except PersistenceError as error:
        return type(error).__name__
    return [len(repairs.steps), [finding.kind for finding in repairs.left]]

root = sys.argv[1]
told = [do(what) for what in sys.argv[2].split()]
print(json.dumps({"told": told, "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    await fill(tmp_path / "store")
    return tmp_path / "store"


def in_child(root: Path, *jobs: str) -> list[object]:
    """What a process with little memory is told, job by job; it must not need more, nor die."""
    command = [sys.executable, "-c", CHILD, str(root), " ".join(jobs), str(LIMIT_BYTES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    assert answer["peak_kb"] * 1024 < LIMIT_BYTES
    return answer["told"]


def lengthen(path: Path, size: int = LONG) -> None:
    """Make the last line as long as that, without a byte of it on the disk."""
    with path.open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 1)
        file.truncate(size)


def change_rows(root: Path, table: str, **values: object) -> None:
    """Change all rows of a table of the catalog, sums included."""
    catalog = Catalog(root / "catalog.db")
    catalog.open(create=False)
    connection = catalog._access._connection
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    connection.execute(f"DELETE FROM {table}")
    for row in rows:
        fields = {**dict(zip(names, row, strict=True)), **values}
        del fields["row_sum"]
        stored = [*fields.values(), crc32(msgspec.json.encode(list(fields.values())))]
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(stored))})", stored)
    catalog.close()


async def test_lines_of_a_gigabyte(root):
    """One in a journal and one in the log."""
    for path in (journals(root, "a")[-1], segments(root)[-1]):
        lengthen(path, GIGABYTE)
    change_rows(root, "journals", bytes=GIGABYTE)
    told, findings = in_child(root, "open", "verify")
    assert set(told.values()) == {"LogCorrupt"}
    assert {"log", "journal"} <= {kind for kind, _ in findings}


@pytest.mark.parametrize("counted", [False, True])
async def test_a_journal_line_that_is_too_long(root, counted):
    path = journals(root, "a")[-1]
    lengthen(path)
    if counted:
        change_rows(root, "journals", bytes=LONG)
    told, findings, (steps, left) = in_child(root, "open", "verify", "repair")
    if counted:
        assert told["a"] == "JournalCorrupt"
        assert {told["b"], told["c"]} <= {"JournalTruncated"}
        assert ["journal", "a"] in findings
    else:
        assert told == {"a": "JournalCorrupt", "b": 45, "c": 45}
        assert sorted(findings) == [["journal", "a"], ["tail", "a"]]
    assert (steps > 0, left) == (True, [])
    assert not check(root).damaged


async def test_a_segment_that_is_too_long(root):
    lengthen(segments(root)[-1], MAX_SEGMENT_BYTES + 1)
    told, findings, (steps, left) = in_child(root, "open", "verify", "repair")
    assert set(told.values()) <= {"LogCorrupt", 40}
    assert "log" in [kind for kind, _ in findings]
    assert (steps > 0, left) == (True, [])
    assert not check(root).damaged


async def test_other_files_that_are_too_long(root):
    for path in (root / "snapshots").glob("*/a-*.ndjson"):
        lengthen(path)
    told, findings = in_child(root, "open", "verify")
    assert told == {"a": 45, "b": 45, "c": 45}
    assert findings == [["snapshot", "a"], ["snapshot", "a"]]
    (root / "FORMAT").write_bytes(b"")
    lengthen(journals(root, "b")[0])
    with (root / "FORMAT").open("r+b") as file:
        file.truncate(LONG)
    told, findings, (_, left) = in_child(root, "open", "verify", "repair")
    assert told == {"open": "StoreCorrupt"}
    assert ["format", None] in findings
    assert left == []
    assert not check(root).damaged


def nest(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


async def test_nesting_of_a_hundred_thousand(root):
    deep = nest(100_000)
    line, total = close_line(
        b'{"seq":1,"at":"2026-01-31T09:30:00.000001Z","kind":"pushed","data":%b,"prev":"00000000"' % deep
    )
    path = journals(root, "a")[-1]
    header = path.read_bytes().splitlines(keepends=True)[0]
    deep_header, _ = close_line(b'{"format":"session-actor-journal","version":1,"session":%b' % deep)
    for content in (header + line, deep_header, line):
        path.write_bytes(content)
        change_rows(root, "journals", bytes=len(content), sum=total, crc=crc32(content))
        for job in (check, repair):
            job(root)
        async with opened(FileStore(root, **SMALL), working=False) as store:
            with pytest.raises(StoreCorrupt):
                await store.load(await store.acquire("a", create=False), snapshots=False)
    assert repair(root, write=True, salvage="readable").left == []
    assert not check(root).damaged


async def test_nesting_in_the_log_and_in_a_snapshot(root):
    deep = nest(100_000)
    record, _ = close_line(
        b'{"seq":46,"at":"2026-01-31T09:30:00.000001Z","kind":"pushed","data":%b,"prev":"00000000"' % deep
    )
    path = segments(root)[-1]
    lines = path.read_bytes().rstrip(b"\0").splitlines(keepends=True)
    last = lines[-1][-11:-3]
    birth = journals(root, "a")[0].read_bytes().split(b'"birth":"')[1][:16]
    line, _ = close_line(
        b'{"w":%d,"p":"%b","s":"a","birth":"%b","r":%b' % (len(b"".join(lines)), last, birth, record[:-1])
    )
    path.write_bytes(b"".join(lines) + line)
    for slot in (root / "snapshots").glob("*/a-*.ndjson"):
        header = slot.read_bytes().splitlines(keepends=True)[0]
        slot.write_bytes(header + close_line(b'{"p":"%b","data":%b' % (header[-11:-3], deep))[0])
    check(root)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("b", create=False)
        assert len((await store.load(lease)).records) > 0
        with pytest.raises(StoreCorrupt):
            await store.load(await store.acquire("a", create=False))
    assert repair(root, write=True, salvage="readable").left == []
    assert not check(root).damaged
    assert (await loaded(root, "a"))["a"][:45] == list(range(1, 46))


@pytest.mark.parametrize("kind", ["symlink", "fifo", "folder"])
@pytest.mark.parametrize("what", ["journal", "segment", "snapshot", "catalog", "format"])
async def test_something_else_in_the_place_of_a_file(root, kind, what, tmp_path):
    path = {
        "journal": journals(root, "a")[0],
        "segment": segments(root)[-1],
        "snapshot": next((root / "snapshots").glob("*/a-*.ndjson")),
        "catalog": root / "catalog.db",
        "format": root / "FORMAT",
    }[what]
    secret = tmp_path / "secret"
    secret.write_bytes(path.read_bytes())
    path.unlink()
    match kind:
        case "symlink":
            path.symlink_to(secret)
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    assert "not_a_file" in kinds(check(root))
    try:
        async with opened(FileStore(root, **SMALL), working=False) as store:
            lease = await store.acquire("b", create=False)
            await store.load(lease, snapshots=False)
    except StoreCorrupt:
        assert what != "journal"
    else:
        assert what in {"journal", "snapshot"}
    before = secret.read_bytes()
    assert repair(root, write=True, salvage="readable").left == []
    assert not check(root).damaged
    assert secret.read_bytes() == before
    assert (await loaded(root, "b"))["b"][:40] == list(range(1, 41))


async def test_folders_that_are_links_are_not_followed(root, tmp_path):
    outside = tmp_path / "outside"
    (root / "log").rename(outside)
    (root / "log").symlink_to(outside)
    inside = journals(root, "a")[0].parent
    inside.rename(tmp_path / "shelf")
    inside.symlink_to(tmp_path / "shelf")
    before = sorted(path.name for path in [*outside.iterdir(), *(tmp_path / "shelf").iterdir()])
    assert kinds(check(root)).count("not_a_folder") == 2
    repair(root, write=True, salvage="readable")
    assert sorted(path.name for path in [*outside.iterdir(), *(tmp_path / "shelf").iterdir()]) == before
    assert not check(root).damaged


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("journals", {"bytes": 1 << 62}),
        ("journals", {"bytes": -1}),
        ("journals", {"bytes": "many"}),
        ("journals", {"journal": (1 << 63) - 1}),
        ("journals", {"journal": 0}),
        ("journals", {"seq": (1 << 63) - 1}),
        ("journals", {"seq": -5}),
        ("journals", {"sum": "x" * 100_000}),
        ("journals", {"birth": "../../../../etc/passwd"}),
        ("files", {"bytes": 1 << 62}),
        ("files", {"index_offset": 1 << 62}),
        ("files", {"index_offset": -1}),
        ("files", {"first_seq": (1 << 63) - 1}),
        ("files", {"last_seq": (1 << 63) - 1}),
        ("files", {"last_frame": (1 << 63) - 1}),
        ("files", {"crc": "text"}),
        ("bases", {"seq": (1 << 63) - 1}),
        ("numbers", {"value": (1 << 63) - 1}),
        ("numbers", {"value": -1}),
        ("numbers", {"value": "one"}),
    ],
)
async def test_huge_and_odd_numbers_in_the_catalog(root, table, values):
    change_rows(root, table, **values)
    check(root)
    try:
        async with opened(FileStore(root, **SMALL), working=False) as store:
            for session in "abc":
                try:
                    await store.load(await store.acquire(session, create=False), snapshots=False)
                except StoreCorrupt:
                    continue
    except StoreCorrupt:
        pass
    repair(root, write=True, salvage="readable")
    assert not check(root).damaged


@pytest.mark.parametrize("number", [10**12 - 1, 10**18])
async def test_huge_numbers_in_names_and_headers(root, number):
    header, _ = close_line(
        b'{"format":"session-actor-log","version":1,"number":%d,"continues":{"segment":%d,"offset":%d}'
        % (number, number - 1, 1 << 62)
    )
    path = root / "log" / f"{number:08d}.ndjson"
    path.write_bytes(header)
    path.chmod(0o600)
    check(root)
    try:
        async with opened(FileStore(root, **SMALL), working=False) as store:
            await store.flush("synced")
    except StoreCorrupt:
        pass
    repair(root, write=True, salvage="readable")
    assert not check(root).damaged


async def test_a_catalog_that_holds_more_than_tables(root):
    connection = sqlite3.connect(root / "catalog.db", isolation_level=None)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    connection.execute("DROP TABLE numbers")
    connection.execute(f"CREATE VIEW numbers (name) AS {endless}")
    connection.execute("CREATE TRIGGER t AFTER INSERT ON journals BEGIN DELETE FROM journals; END")
    connection.close()
    assert kinds(check(root)) == ["catalog"]
    with pytest.raises(StoreCorrupt):
        await FileStore(root).open()
    assert repair(root, write=True).left == []
    assert (await loaded(root, "a"))["a"] == list(range(1, 46))


@pytest.mark.parametrize(
    "values",
    [
        {"first_frame": 0, "last_frame": 0},
        {"first_frame": 0, "last_frame": 1 << 54},
        {"first_frame": 1 << 54, "last_frame": 1},
        {"first_frame": 20, "last_frame": 20},
        {"last_frame": -1},
        {"index_offset": 0},
        {"bytes": 1},
        {"dropped": 1},
    ],
)
async def test_rows_that_lie_about_frames_neither_hang_nor_crash_the_archive(root, values):
    change_rows(root, "files", **values)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        await store.load(lease)
        archive = store.archive(lease)
        for ids in ([1], [20], range(1, 46), [1 << 53]):
            try:
                found = archive.read(ids)
            except StoreCorrupt:
                continue
            assert {record.seq for record in found} <= set(ids)
    assert repair(root, write=True, salvage="readable").left == []
    assert not check(root).damaged


async def test_an_index_that_lies_about_places_is_refused(root):
    path = journals(root, "a")[0]
    data = path.read_bytes()
    at = data.index(b'{"index":')
    for places in (b"[[0,1,[%d]]]" % (1 << 62), b"[[-5,1,[100]]]", b"[[0,1,[-1,-1]]]", b"[]", b"[[0,1,[99999]]]"):
        body = data[at : data.index(b'"frames":', at)] + b'"frames":' + places + b',"copied":[]'
        line, _ = close_line(body)
        path.write_bytes(data[:at] + line)
        content = path.read_bytes()
        rows = {"bytes": len(content), "index_offset": at, "crc": crc32(content)}
        change_rows(root, "files", **rows)
        async with opened(FileStore(root, **SMALL), working=False) as store:
            lease = await store.acquire("a", create=False)
            try:
                found = store.archive(lease).read([1, 2, 3])
            except StoreCorrupt:
                continue
            assert {record.seq for record in found} <= {1, 2, 3}
    assert repair(root, write=True, salvage="readable").left == []
    assert not check(root).damaged
