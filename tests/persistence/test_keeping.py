"""What is kept aside stays: nothing there is overwritten, and nothing is kept twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from session_actor.persistence.files.keeping import PIECE_BYTES, Aside
from session_actor.persistence.files.storage import OsDisk


@pytest.fixture
def aside(tmp_path: Path) -> Aside:
    return Aside(OsDisk(), str(tmp_path / "aside"))


def kept(tmp_path: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (tmp_path / "aside").iterdir()}


@pytest.mark.parametrize("second", [b"two", b"longer"], ids=["of the same size", "of another size"])
def test_a_copy_never_overwrites_an_earlier_original(tmp_path, aside, second):
    source = tmp_path / "catalog.db"
    for content in (b"one", second, b"one", second):
        source.write_bytes(content)
        place = aside.copy(str(source), "catalog.db.damaged")
        assert Path(place).read_bytes() == content
    assert kept(tmp_path) == {"catalog.db.damaged": b"one", "catalog.db.damaged.2": second}


def test_bytes_and_what_is_moved_overwrite_nothing_either(tmp_path, aside):
    for content in (b"one", b"two", b"one"):
        aside.add(content, "7.torn")
    for content in (b"three", b"three"):
        (tmp_path / "file").write_bytes(content)
        aside.move(str(tmp_path / "file"), "7.torn")
    assert kept(tmp_path) == {"7.torn": b"one", "7.torn.2": b"two", "7.torn.3": b"three", "7.torn.4": b"three"}


def test_something_else_of_that_name_is_left_alone(tmp_path, aside):
    (tmp_path / "aside").mkdir()
    os.mkfifo(tmp_path / "aside" / "7.torn")
    (tmp_path / "aside" / "7.torn.2").symlink_to(tmp_path / "elsewhere")
    assert aside.add(b"one", "7.torn").endswith("7.torn.3")
    assert not (tmp_path / "elsewhere").exists()


def test_a_long_file_with_holes_is_kept_as_it_is(tmp_path, aside):
    content = bytes(3 * PIECE_BYTES) + b"end" + bytes(PIECE_BYTES + 5)
    (tmp_path / "file").write_bytes(content)
    assert aside.copy(str(tmp_path / "file"), "file") == aside.copy(str(tmp_path / "file"), "file")
    assert kept(tmp_path) == {"file": content}


def test_what_is_not_there_is_not_kept(tmp_path, aside):
    assert aside.copy(str(tmp_path / "file"), "file") is None
    assert aside.move(str(tmp_path / "file"), "file") is None
