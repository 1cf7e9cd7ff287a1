"""Keeping originals: what repair and salvage take out of use is copied or moved to the folder aside/, never removed.

Nothing that is kept is ever overwritten: another file of the same name gets a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .plain_file import NotPlain, open_plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from .storage import Disk, DiskFile

    Read = Callable[[int, int], bytes]

PIECE_BYTES: Final = 1024 * 1024
TEMPORARY: Final = ".new"
_ZEROS: Final = bytes(PIECE_BYTES)


class Aside:
    """The folder aside/ of a store. Methods block and raise OSError; what they return is the path of what is kept."""

    def __init__(self, disk: Disk, folder: str) -> None:
        """`folder`: made when something is kept."""
        self._disk = disk
        self.folder = folder

    def copy(self, path: str, name: str) -> str | None:
        """Keep a copy of the file at `path` as `name`, on the disk when this returns; None when there is no file.

        Not twice, if it is kept by that name already. What is no plain file is moved instead.
        """
        try:
            source = open_plain(self._disk, path)
        except FileNotFoundError:
            return None
        except NotPlain:
            return self.move(path, name)
        try:
            return self._keep(name, source.size(), source.read)
        finally:
            source.close()

    def keep(self, file: DiskFile, start: int, name: str) -> str:
        """Keep what `file` holds from offset `start` on as `name`, on the disk when this returns; not twice."""
        return self._keep(name, max(0, file.size() - start), lambda offset, length: file.read(start + offset, length))

    def add(self, data: bytes, name: str) -> str:
        """Keep these bytes as `name`, on the disk when this returns; not twice, as by `copy`."""
        return self._keep(name, len(data), lambda offset, length: data[offset : offset + length])

    def move(self, path: str, name: str) -> str | None:
        """Keep what is at `path` as `name`. None: there is nothing."""
        number, names = 1, self._names()
        while _numbered(name, number) in names:
            number += 1
        target = f"{self.folder}/{_numbered(name, number)}"
        try:
            self._disk.rename(path, target)
        except FileNotFoundError:
            return None
        self._disk.sync_dir(self.folder)
        self._disk.sync_dir(path.rpartition("/")[0])
        return target

    def _keep(self, name: str, size: int, read: Read) -> str:
        number, names = 1, self._names()
        while _numbered(name, number) in names:
            target = f"{self.folder}/{_numbered(name, number)}"
            if self._holds(target, size, read):
                self._disk.sync_dir(self.folder)  # who kept it may have died before
                return target
            number += 1
        target = f"{self.folder}/{_numbered(name, number)}"
        self._write(size, read, target)
        return target

    def _names(self) -> set[str]:
        """What is kept."""
        if self._disk.make_dir(self.folder):
            self._disk.sync_dir(self.folder.rpartition("/")[0])
        return set(self._disk.list(self.folder))

    def _holds(self, path: str, size: int, read: Read) -> bool:
        try:
            file = open_plain(self._disk, path)
        except NotPlain:
            return False
        try:
            places = range(0, size, PIECE_BYTES)
            return file.size() == size and all(file.read(at, PIECE_BYTES) == read(at, PIECE_BYTES) for at in places)
        finally:
            file.close()

    def _write(self, size: int, read: Read, target: str) -> None:
        temporary = target + TEMPORARY
        file = self._disk.open(temporary, create=True)
        try:
            file.truncate(0)
            for position in range(0, size, PIECE_BYTES):
                piece = read(position, PIECE_BYTES)
                if piece != _ZEROS[: len(piece)]:  # holes stay holes
                    file.write(piece, position)
            file.truncate(size)
            file.sync()
        finally:
            file.close()
        self._disk.rename(temporary, target)
        self._disk.sync_dir(self.folder)


def _numbered(name: str, number: int) -> str:
    name = name.replace("/", "_")
    return name if number == 1 else f"{name}.{number}"
