"""The commands that errors and findings advise, as they are to be typed."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath
from shlex import quote
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_MODULE: Final = "python -m session_actor"
_FILE: Final = re.compile(r"(.*)/(?:log/[^/]*|(?:journals|snapshots)/[^/]*/[^/]*|FORMAT|catalog\.db)")


def verify_command(root: str) -> str:
    """What verifies the store at `root`."""
    return f"{_MODULE} verify {quote(root)}"


def repair_command(root: str, *, salvage: str | None = None, sessions: Iterable[str] = (), write: bool = True) -> str:
    """What repairs the store at `root`; `salvage` and `sessions` as `repair` has them."""
    parts = [f"{_MODULE} repair {quote(root)}"]
    parts += [] if salvage is None else [f"--salvage {salvage}"]
    parts += [f"--session {quote(session)}" for session in sessions]
    return " ".join([*parts, "--write"] if write else parts)


@lru_cache(64)
def root_of(path: str) -> str:
    """The directory of the store that a file of it is in; of what is no path: `DIR`."""
    if not path.startswith("/"):
        return "DIR"
    match = _FILE.fullmatch(path)
    return str(PurePosixPath(match[1])) if match else path
