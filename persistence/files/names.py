"""Names of files for ids of any content: readable at a glance, one place per id, nothing outside the store.

The name of a journal file is a prefix that is safe on every file system, the BLAKE2b-128 of the id, and a number; that
of a snapshot has a letter in the number's place. The prefix is only for people; two ids that differ anywhere (in case
or Unicode normal form, too) have different hashes, and the name has no letter whose case matters.
"""

from __future__ import annotations

import re
import secrets
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from session_actor.persistence.errors import UnusableId

MAX_ID_CHARACTERS: Final = 512
_PREFIX_CHARACTERS: Final = 24
_UNSAFE: Final = re.compile("[^a-z0-9]+")


def check_session_id(session: object) -> str:
    """Return `session` as a plain str. Raises `UnusableId` unless it is a non-empty str of at most 512 characters."""
    if not isinstance(session, str):
        raise UnusableId(f"a session id must be a str, not {type(session).__name__}")
    if not session:
        raise UnusableId("a session id must not be empty")
    if len(session) > MAX_ID_CHARACTERS:
        raise UnusableId(f"a session id has at most {MAX_ID_CHARACTERS} characters, this one has {len(session)}")
    return str.__str__(session)


def id_bytes(session: str) -> bytes:
    """The id as bytes, different for different ids, in the order of code points, lone surrogates included."""
    return session.encode("utf-8", "surrogatepass")


def journal_path(session: str, number: int) -> str:
    """Where file `number` of the session's journal stands in the journals' folder: `xx/prefix-hash-n.ndjson`."""
    return f"{_stem(session)}-{number}.ndjson"


def snapshot_path(session: str, slot: str) -> str:
    """Where the snapshot in a slot stands in the snapshots' folder: `xx/prefix-hash-slot.ndjson`."""
    return f"{_stem(session)}-{slot}.ndjson"


@lru_cache(256)
def _stem(session: str) -> str:
    digest = blake2b(id_bytes(session), digest_size=16).hexdigest()
    prefix = _UNSAFE.sub("_", session[:_PREFIX_CHARACTERS].lower()).strip("_") or "session"
    return f"{digest[:2]}/{prefix}-{digest}"


def new_birth() -> str:
    """A fresh name for one creation of an id: 16 hex digits."""
    return secrets.token_hex(8)
