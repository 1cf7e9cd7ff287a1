"""`verify` of what a test left: it must find no damage."""

from __future__ import annotations

import os
from pathlib import Path

from session_actor.persistence.checking.verify import check

from ..simulation.image import Image
from ..simulation.life import ROOT


def damage_in(folder: str | os.PathLike[str]) -> list[str]:
    """What `verify` finds in a store, but for notes."""
    return [str(finding) for finding in check(folder).list if finding.severity != "note"]


def damage_on(image: Image, place: Path) -> list[str]:
    """The same of a store on a simulated disk, whose files are written below `place`, which is new."""
    place.mkdir(mode=0o700)
    for path, inode in image.files().items():
        (place / path[1:]).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        (place / path[1:]).write_bytes(inode.data)
    return damage_in(place / ROOT[1:])
