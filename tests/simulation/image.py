"""What one machine's disk holds: the files and names that processes see, and what of them a loss of power leaves.

A file's bytes are on the disk when they were synced, its name is when its folder was synced. Of everything else a
crash keeps any part: writes are dropped, reordered and torn at sector bounds, what was never on the disk before may
come back as zeros or garbage, sizes may or may not have grown, names may or may not have changed. A sector that holds
synced bytes is not damaged by writing other bytes of it, and a rename is never half done: disks and file systems
promise that much.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from random import Random

SECTOR_BYTES = 512


class Inode:
    """One file. Changes that are not synced are kept in order, as (offset, bytes) or (new length, None)."""

    __slots__ = ("_data", "alternative", "changes", "deaf", "durable", "lossy")

    def __init__(self, durable: bytes = b"") -> None:
        self._data: bytearray | None = None
        self.durable = durable
        """What the disk holds."""
        self.changes: list[tuple[int, bytes | None]] = []
        self.lossy = False
        """A sync failed and lost something: from then on the disk may hold less than processes see."""
        self.deaf = False
        """Later syncs say OK and do nothing, whatever is written, until what was lost is cut off.

        So does ext4: room that was taken for what could not be written stays unwritten, though it is written again.
        """
        self.alternative: bytes | None = None
        """What the disk may hold instead: a commit failed, and nobody knows how far it came."""

    @property
    def data(self) -> bytearray:
        """What processes see."""
        found = self._data
        if found is None:
            found = self._data = bytearray(self.durable)
        return found

    def content(self) -> bytes:
        """The same, as bytes: of a file that nobody changed, those that the disk holds."""
        return self.durable if self._data is None else bytes(self._data)

    def read(self, offset: int, length: int) -> bytes:
        if self._data is None:
            return self.durable[offset : offset + length]
        return bytes(self._data[offset : offset + length])

    def size(self) -> int:
        return len(self.durable if self._data is None else self._data)

    def change(self, offset: int, data: bytes | None) -> None:
        apply(self.data, offset, data)
        self.changes.append((offset, data))
        if data is None and offset <= len(self.durable):
            self.deaf = False

    def replace(self, data: bytes) -> None:
        """Change all of it at once, for good."""
        self._data, self.durable, self.alternative = None, data, None
        self.changes.clear()

    def sync(self) -> None:
        if self.changes and not self.deaf:
            data = self.data  # before it is taken for what the disk holds
            self.durable = all_changed(self) if self.lossy else bytes(data)
        self.changes.clear()

    def lose(self, rng: Random) -> None:
        """A sync fails: part of what was to be synced is lost, and later syncs know nothing of it."""
        _ = self.data  # processes see all of it still
        self.durable = survivors(self, rng, rng.choice(("none", "all", "some")))
        self.changes.clear()
        self.lossy = True
        self.deaf = rng.random() < 0.5

    def crashed(self, rng: Random, style: str) -> Inode:
        if self.alternative is not None and rng.random() < 0.5:
            return Inode(self.alternative)
        return Inode(survivors(self, rng, style) if self.changes else self.durable)

    def copy(self) -> Inode:
        twin = Inode(self.durable)
        twin._data = None if self._data is None else bytearray(self._data)
        twin.changes, twin.lossy, twin.deaf = list(self.changes), self.lossy, self.deaf
        twin.alternative = self.alternative
        return twin


def apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
    else:
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(data)] = data


def all_changed(inode: Inode) -> bytes:
    content = bytearray(inode.durable)
    for offset, data in inode.changes:
        apply(content, offset, data)
    return bytes(content)


def survivors(inode: Inode, rng: Random, style: str) -> bytes:
    """The bytes of a file after a crash."""
    if style == "none":
        return inode.durable
    if style == "all":
        return all_changed(inode)
    content = bytearray(inode.durable)
    solid, shortest = len(inode.durable.rstrip(b"\0")), len(inode.durable)
    kept = rng.choice((0.2, 0.5, 0.8, 0.95))
    for offset, data in inode.changes:
        if data is not None:
            _tear(content, offset, data, solid, kept, rng)
        elif rng.random() < kept:
            apply(content, offset, None)
            solid, shortest = min(solid, offset), min(shortest, offset)
        elif offset < len(content):
            break  # what was written after it went into room that the file does not have yet
    if len(content) > shortest and rng.random() < 0.3:
        del content[rng.randint(shortest, len(content)) :]
    return bytes(content)


def _tear(content: bytearray, offset: int, data: bytes, solid: int, kept: float, rng: Random) -> None:
    """Write some sectors of `data`. Behind `solid` nothing was on the disk before: there it may be anything."""
    for start, end in sectors(offset, offset + len(data)):
        fate = rng.random()
        if fate < kept:
            apply(content, start, data[start - offset : end - offset])
        elif fate > 0.97 and end > solid:
            first = max(start, solid)
            apply(content, first, rng.choice((bytes, rng.randbytes))(end - first))


def sectors(start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        stop = min(end, start - start % SECTOR_BYTES + SECTOR_BYTES)
        yield start, stop
        start = stop


class Folder:
    """One directory. Changes that are not synced are kept in order, as (name, node or None, name it had before)."""

    __slots__ = ("changes", "durable", "lossy", "names")

    def __init__(self) -> None:
        self.names: dict[str, Inode | Folder] = {}
        self.durable: dict[str, Inode | Folder] = {}
        self.changes: list[tuple[str, Inode | Folder | None, str | None]] = []
        self.lossy = False
        """A sync failed and lost something: that stays lost, though later syncs say OK, until it is done again."""

    def put(self, name: str, node: Inode | Folder, before: str | None = None) -> None:
        assert before is None or isinstance(node, Inode), "the store renames no folders"
        self._change((name, node, before))

    def drop(self, name: str) -> None:
        assert isinstance(self.names[name], Inode), "the store drops no folders"
        self._change((name, None, None))

    def _change(self, change: tuple[str, Inode | Folder | None, str | None]) -> None:
        rename(self.names, *change)
        self.changes.append(change)

    def sync(self) -> None:
        if self.changes:
            self.durable = self.all_changed() if self.lossy else dict(self.names)
            self.changes.clear()

    def all_changed(self) -> dict[str, Inode | Folder]:
        """What the disk would hold after a sync."""
        names = dict(self.durable)
        for change in self.changes:
            rename(names, *change)
        return names

    def lose(self, rng: Random) -> None:
        """A sync fails: part of what was to be synced is lost, but no folder, and later syncs know nothing of it."""
        made = {name: node for name, node, _ in self.changes if isinstance(node, Folder)}
        self.durable = {**self.survivors(rng, rng.choice(("none", "all", "some"))), **made}
        self.changes.clear()
        self.lossy = True

    def survivors(self, rng: Random, style: str) -> dict[str, Inode | Folder]:
        if style == "none" or not self.changes:
            return self.durable
        if style == "all":
            return self.all_changed() if self.lossy else self.names
        names, changes = dict(self.durable), self.changes
        if rng.random() < 0.5:
            changes = changes[: rng.randint(0, len(changes))]
        else:
            changes = [change for change in changes if rng.random() < 0.6]
        for change in changes:
            rename(names, *change)
        return names


def rename(names: dict[str, Inode | Folder], name: str, node: Inode | Folder | None, before: str | None) -> None:
    if before is not None:
        names.pop(before, None)
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


class Image:
    """A disk, and the files of a store on it at `root`."""

    def __init__(self, top: Folder | None = None) -> None:
        self.top = Folder() if top is None else top
        self.locks: set[str] = set()
        self._folders: dict[str, Folder] = {}
        """Those that were asked for. None is ever dropped or renamed."""

    def crash(self, rng: Random) -> Image:
        """Another disk: what a loss of power at this moment may leave of this one, which is not changed."""
        styles = rng.choices((("none",), ("all",), ("none", "all", "some", "some", "some")), (1, 1, 6))[0]
        count, chance = len(styles), rng.random
        copies: dict[Inode, Inode] = {}

        def copy(folder: Folder) -> Folder:
            twin = Folder()
            names = twin.names
            for name, node in folder.survivors(rng, styles[int(chance() * count)]).items():
                if isinstance(node, Folder):
                    names[name] = copy(node)
                    continue
                found = copies.get(node)
                if found is None:
                    found = copies[node] = node.crashed(rng, styles[int(chance() * count)])
                names[name] = found
            twin.durable = dict(names)
            return twin

        return Image(copy(self.top))

    def copy(self) -> Image:
        """The same disk once more, with all that is not yet synced: what the death of a process leaves."""
        copies: dict[int, Inode | Folder] = {}

        def twin(node: Inode | Folder) -> Inode | Folder:
            found = copies.get(id(node))
            if found is None:
                found = copies[id(node)] = node.copy() if isinstance(node, Inode) else Folder()
                if isinstance(node, Folder) and isinstance(found, Folder):
                    found.names = {name: twin(inner) for name, inner in node.names.items()}
                    found.durable = {name: twin(inner) for name, inner in node.durable.items()}
                    found.changes = [(name, new and twin(new), old) for name, new, old in node.changes]
                    found.lossy = node.lossy
            return found

        top = twin(self.top)
        assert isinstance(top, Folder)
        return Image(top)

    # --- paths --------------------------------------------------------------------------------------------------------

    def find(self, path: str) -> Inode | Folder | None:
        known = self._folders.get(path)
        if known is not None:
            return known
        if path in {"", "/"}:
            return self.top
        above, _, name = path.rpartition("/")
        folder = self.find(above)
        node = folder.names.get(name) if isinstance(folder, Folder) else None
        if isinstance(node, Folder):
            self._folders[path] = node
        return node

    def folder(self, path: str) -> Folder:
        node = self.find(path)
        if not isinstance(node, Folder):
            raise missing(path)
        return node

    def parent(self, path: str) -> tuple[Folder, str]:
        above, _, name = path.rpartition("/")
        return self.folder(above), name

    def file(self, path: str) -> Inode:
        folder, name = self.parent(path)
        node = folder.names.get(name)
        if not isinstance(node, Inode):
            raise missing(path)
        return node

    def files(self, path: str = "") -> dict[str, Inode]:
        """All files below a folder, by path."""
        found: dict[str, Inode] = {}
        _add_files(found, self.folder(path), path)
        return found

    def size_bytes(self) -> int:
        return sum(inode.size() for inode in self.files().values())


def _add_files(found: dict[str, Inode], folder: Folder, path: str) -> None:
    for name, node in sorted(folder.names.items()):
        if isinstance(node, Inode):
            found[f"{path}/{name}"] = node
        else:
            _add_files(found, node, f"{path}/{name}")


def missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
