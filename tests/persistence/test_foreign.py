"""A directory that is no store is refused by whatever is to open, verify or repair it, and nothing in it is touched."""

from __future__ import annotations

import shutil

import pytest

from session_actor.persistence import FileStore, NotAStore
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import repair

from .conformance_tools import opened
from .stores import copied, image, kinds

FOREIGN = [["x"], ["LOCK", "x"], ["log/app.log"], ["journals/2026/day.txt"], ["log/app.log", "LOCK"], ["log"]]


@pytest.fixture
async def store(tmp_path):
    root = tmp_path / "store"
    async with opened(FileStore(root), working=False):
        pass
    return root


def foreign(root, names):
    root.mkdir(mode=0o755)
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine")
    return root


@pytest.mark.parametrize("names", FOREIGN, ids=" ".join)
async def test_a_directory_of_somebody_else_s_is_refused_and_left_as_it_is(tmp_path, names):
    root = foreign(tmp_path / "other", names)
    before = image(root)
    for use in (check, repair, lambda root: repair(root, write=True)):
        with pytest.raises(NotAStore, match="is no session-actor store"):
            use(root)
    with pytest.raises(NotAStore, match="what is not a store's"):
        await FileStore(root).open()
    assert image(root) == before


@pytest.mark.parametrize("use", [check, repair, lambda root: repair(root, write=True)])
def test_an_empty_directory_and_none_at_all_cannot_be_verified_or_repaired(tmp_path, use):
    with pytest.raises(NotAStore, match="missing is no session-actor store: there is no such directory"):
        use(tmp_path / "missing")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotAStore, match="it is not a directory"):
        use(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotAStore, match="it has no FORMAT"):
        use(tmp_path / "empty")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "file"]


@pytest.mark.parametrize(
    "left", [["LOCK"], ["log"], ["LOCK", "log", "journals"], ["LOCK", "log", "journals", "catalog.db"], ["catalog.db"]]
)
@pytest.mark.parametrize("beside", [[], ["lost+found"]])
async def test_what_a_first_creation_that_died_left_is_verified_repaired_and_opened(store, left, beside):
    half = copied(store, "half")
    for path in half.iterdir():
        if path.name not in left:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if "log" in left:
        shutil.rmtree(half / "log")
        (half / "log").mkdir(mode=0o700)
    for name in beside:
        (half / name).mkdir()
    assert kinds(check(half)) == []
    assert repair(half, write=True).left == []
    async with opened(FileStore(half), working=False):
        pass
    assert (half / "FORMAT").exists()


async def test_the_root_of_a_new_file_system_takes_a_store(tmp_path):
    (tmp_path / "lost+found").mkdir()
    async with opened(FileStore(tmp_path), working=False):
        pass
    assert (tmp_path / "FORMAT").exists()


async def test_a_link_to_a_store_is_one(store, tmp_path):
    (tmp_path / "link").symlink_to(store)
    assert check(tmp_path / "link").list == []
    assert repair(tmp_path / "link", write=True).left == []
