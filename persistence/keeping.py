"""Keeping originals: what repair and salvage take out of use is copied or moved to the folder aside/, never removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .segment_file import NOT_REGULAR

if TYPE_CHECKING:
    from .storage import Disk, DiskFile

PIECE_BYTES: Final = 1024 * 1024
_ZEROS: Final = bytes(PIECE_BYTES)


class Aside:
    """The folder aside/ of a store. Methods block and raise OSError; what they return is the path of what is kept."""

    def __init__(self, disk: Disk, folder: str) -> None:
        """`folder`: made when something is kept."""
        self._disk = disk
        self.folder = folder

    def copy(self, path: str, name: str) -> str | None:
        """Keep a copy of the file at `path` as `name`, on the disk when this returns; None when there is no file.

        A copy of that name and size is taken for this one. What is no plain file is moved instead.
        """
        name = name.replace("/", "_")
        try:
            source = self._disk.open(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in NOT_REGULAR:
                raise
            return self.move(path, name)
        try:
            target = f"{self.folder}/{name}"
            if self._size(target) != source.size():
                self._make()
                self._write(source, target)
        finally:
            source.close()
        return target

    def move(self, path: str, name: str) -> str | None:
        """Keep what is at `path` as `name`; something else of that name is not overwritten. None: there is nothing."""
        name = name.replace("/", "_")
        self._make()
        taken = set(self._disk.list(self.folder))
        number, free = 1, name
        while free in taken:
            number, free = number + 1, f"{name}.{number + 1}"
        target = f"{self.folder}/{free}"
        try:
            self._disk.rename(path, target)
        except FileNotFoundError:
            return None
        self._disk.sync_dir(self.folder)
        self._disk.sync_dir(path.rpartition("/")[0])
        return target

    def new_file(self, name: str) -> DiskFile:
        """An empty file of that name, to be written, synced and closed."""
        self._make()
        file = self._disk.open(f"{self.folder}/{name}", create=True)
        file.truncate(0)
        return file

    def _make(self) -> None:
        if self._disk.make_dir(self.folder):
            self._disk.sync_dir(self.folder.rpartition("/")[0])

    def _size(self, path: str) -> int:
        try:
            file = self._disk.open(path)
        except OSError:
            return -1
        try:
            return file.size()
        finally:
            file.close()

    def _write(self, source: DiskFile, target: str) -> None:
        temporary, position = target + ".new", 0
        file = self._disk.open(temporary, create=True)
        try:
            file.truncate(0)
            while piece := source.read(position, PIECE_BYTES):
                if piece != _ZEROS[: len(piece)]:  # holes stay holes
                    file.write(piece, position)
                position += len(piece)
            file.truncate(position)
            file.sync()
        finally:
            file.close()
        self._disk.rename(temporary, target)
        self._disk.sync_dir(self.folder)
