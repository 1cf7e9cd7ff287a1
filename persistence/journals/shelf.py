"""The journal files of one session that are there, whoever counts them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from session_actor.persistence.files.names import journal_path

if TYPE_CHECKING:
    from session_actor.persistence.files.storage import Disk

_NUMBER: Final = re.compile(r"([1-9][0-9]{0,17})\.ndjson")


def journal_numbers(disk: Disk, folder: str, session: str) -> list[int]:
    """Their numbers, in order; `folder`: of the journals. Blocks. Raises OSError."""
    shelf, _, name = journal_path(session, 0).rpartition("/")
    stem = name.removesuffix("0.ndjson")
    ends = [name[len(stem) :] for name in disk.list(f"{folder}/{shelf}") if name.startswith(stem)]
    return sorted(int(match[1]) for end in ends if (match := _NUMBER.fullmatch(end)))
