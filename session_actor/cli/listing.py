"""`session-actor list DIR`: which sessions there are. No journal is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from .asking import as_json, directory, named, opened
from .codes import counted, note, say
from .harmless import shown_id
from .lines import ListedSession
from .output import iso, size, styled, tell, when

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from session_actor.persistence import SessionInfo
    from session_actor.replay import Reader

_SORTS: Final[dict[str, Callable[[SessionInfo], int]]] = {
    "created": lambda info: info.created_at_us,
    "records": lambda info: info.seq,
    "size": lambda info: info.size_bytes,
}


@named(
    "list",
    "session-actor list conversations/",
    "session-actor list conversations/ --prefix chat/ --sort created --last 20",
    "session-actor list conversations/ --json | jq -r .id",
)
@directory
@click.option("--prefix", default="", metavar="TEXT", help="Only ids that begin so.")
@click.option(
    "--sort", type=click.Choice(["id", *_SORTS]), default="id", show_default=True, help="In which order, rising."
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N of them.")
@as_json
def command(directory: str, *, prefix: str, sort: str, last: int | None, as_json: bool) -> int:
    """List the sessions of a store: when each was made, its records, the size of its journals, its id.

    Nothing of what was said is read. What still waits in the log has no size.
    """
    with opened(directory) as reader:
        found: Iterable[SessionInfo] = own_sessions(reader, prefix)
        if sort != "id" or last:
            found = sorted(found, key=_SORTS[sort]) if sort != "id" else list(found)
            found = found[-last:] if last else found
        count = 0
        for info in found:
            if as_json:
                tell(listed(info))
            else:
                if not count:
                    say(styled(f"{'created':<20}  {'records':>9}  {'size':>9}  id", "bold"))
                say(f"{when(info.created_at_us)}  {info.seq:>9,}  {size(info.size_bytes):>9}  {shown_id(info.id)}")
            count += 1
    if not as_json:
        note(counted(count, "session"))
    return 0


def own_sessions(reader: Reader, prefix: str = "") -> Iterator[SessionInfo]:
    """The sessions of an embedder: none that the library keeps for itself."""
    from session_actor.service.reserved import is_reserved

    return (info for info in reader.sessions(prefix) if not is_reserved(info.id))


def listed(info: SessionInfo) -> ListedSession:
    """A session in a listing, for programs."""
    return ListedSession(
        id=info.id,
        birth=info.birth,
        created_at=iso(info.created_at_us) or "",
        records=info.seq,
        size_bytes=info.size_bytes,
    )
