"""Where the parts of a store lie, and how its directory is made.

FORMAT        one line that names the format of the store; written last, so a store without it was never finished
LOCK          see lock
catalog.db    see catalog
log/          see log
journals/     see journal and names
snapshots/    see snapshot; made with the first of them
aside/        torn ends of the log, kept for whoever wants to look
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from .catalog.catalog_copy import JOURNAL
from .errors import LineDamaged, StoreCorrupt, StoreVersionTooNew
from .files.plain_file import NotPlain, open_plain
from .format.record import close_line, verify
from .reserve import is_full

if TYPE_CHECKING:
    import os

    from .catalog.catalog import Catalog
    from .files.storage import Disk

FORMAT: Final = "session-actor-store"
VERSION: Final = 1
_MAX_FORMAT_BYTES: Final = 4096


class Layout:
    """The paths of one store."""

    __slots__ = ("aside", "catalog", "format", "journals", "lock", "log", "root", "snapshots")

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """`root`: the store's directory."""
        self.root = str(Path(root).absolute())
        self.format = f"{self.root}/FORMAT"
        self.lock = f"{self.root}/LOCK"
        self.catalog = f"{self.root}/catalog.db"
        self.log = f"{self.root}/log"
        self.journals = f"{self.root}/journals"
        self.aside = f"{self.root}/aside"
        self.snapshots = f"{self.root}/snapshots"

    def open_catalog(self, disk: Disk, catalog: Catalog) -> None:
        """Check the format and open the catalog; make what was never finished. Blocks; the lock must be held.

        Raises `StoreVersionTooNew`, `StoreCorrupt`, OSError.
        """
        if self.is_finished(disk):
            catalog.open(create=False)
            if catalog.first_live_segment() == 1:  # whoever made it may have died before the names were on the disk
                self._name_again(disk)
            return
        for folder in (self.log, self.journals):
            disk.make_dir(folder)
        was_there = Path(self.catalog).name in disk.list(self.root)
        catalog.open(create=True)
        if was_there and catalog.first_live_segment() == 1:  # of who never finished: its name may be lost
            catalog.close()
            for file in (self.catalog, self.catalog + JOURNAL):
                disk.unlink(file)
            catalog.open(create=True)
        catalog.settle()  # whoever began to make it may have been told that its commit failed
        disk.sync_dir(self.root)  # FORMAT says that all of this is there
        self.write_format(disk)

    def write_format(self, disk: Disk) -> None:
        """Write FORMAT, in place of whatever it was. Blocks. Raises OSError."""
        line, _ = close_line(b'{"format":"%b","version":%d' % (FORMAT.encode(), VERSION))
        temporary = self.format + ".new"
        file = disk.open(temporary, create=True)
        try:
            file.truncate(0)
            file.write(line, 0)
            file.sync()
        finally:
            file.close()
        disk.rename(temporary, self.format)
        self._sync_names(disk)

    def _name_again(self, disk: Disk) -> None:
        """Have FORMAT on the disk: a sync that was refused may have lost its name, over which later ones say OK.

        On a full disk that cannot be done, and a sync must do.
        """
        try:
            self.write_format(disk)
        except OSError as error:
            if not is_full(error):
                raise
            self._sync_names(disk)

    def _sync_names(self, disk: Disk) -> None:
        disk.sync_dir(self.root)
        disk.sync_dir(str(Path(self.root).parent))

    def is_finished(self, disk: Disk) -> bool:
        """Whether FORMAT is there. Raises `StoreVersionTooNew`, `StoreCorrupt`, OSError."""
        try:
            file = open_plain(disk, self.format)
        except FileNotFoundError:
            if any(disk.list(self.log)) or any(disk.list(self.journals)):
                raise StoreCorrupt(self.format, "it is missing, though the store holds records") from None
            return False
        except NotPlain as error:
            raise StoreCorrupt(self.format, "it is not a regular file") from error
        try:
            line = file.read(0, _MAX_FORMAT_BYTES)
        finally:
            file.close()
        try:
            found = _parse(line)
        except LineDamaged as error:
            raise StoreCorrupt(self.format, str(error)) from error
        if found.format != FORMAT or found.version != VERSION:
            raise StoreVersionTooNew(self.format, f"version {found.version} of {found.format}", f"version {VERSION}")
        return True


class _Found(msgspec.Struct):
    format: str
    version: int


def _parse(line: bytes) -> _Found:
    if not verify(line):
        raise LineDamaged("its sum does not fit its bytes")
    try:
        return msgspec.json.decode(line, type=_Found)
    except msgspec.DecodeError:
        raise LineDamaged("it names no format") from None
