"""The system calls of a real disk."""

from __future__ import annotations

from session_actor.persistence.files.storage import OsDisk


class NotingDisk(OsDisk):
    def __init__(self) -> None:
        self.synced: list[str] = []

    def sync_dir(self, path):
        self.synced.append(path)
        super().sync_dir(path)


def test_directories_that_are_made_above_a_store_outlive_a_power_loss_too(tmp_path):
    disk = NotingDisk()
    disk.make_root(str(tmp_path / "a" / "b" / "store"))
    assert disk.synced == [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    assert (tmp_path / "a" / "b" / "store").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_is_there_is_left_as_it_is(tmp_path):
    disk = NotingDisk()
    tmp_path.chmod(0o750)
    disk.make_root(str(tmp_path))
    assert disk.synced == []
    assert tmp_path.stat().st_mode & 0o777 == 0o750
