"""Exporting a session to a file."""

from __future__ import annotations

import io
from contextlib import aclosing
from typing import TYPE_CHECKING, BinaryIO, Final, cast

import anyio.to_thread
import msgspec

from session_actor.given.given_paths import path_of

from .errors import unknown_form
from .markdown import lines_of_markdown
from .ndjson import lines_of_export
from .new_file import NewFile
from .source import history_in

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator

    from session_actor.replay import Reader
    from session_actor.service.service import SessionService

    from .source import SessionReader

EXPORT_FORMS: Final = ("ndjson", "markdown")

_BUFFER_BYTES: Final = 1 << 18


class ExportReport(msgspec.Struct, frozen=True):
    """What an export wrote."""

    session: str
    size_bytes: int
    damage: str | None = None
    """Where the session's records are damaged: what came later is not in the export. None: nothing is."""


async def export_session(
    reader: SessionService | SessionReader | Reader,
    session_id: str,
    out: str | os.PathLike[str] | BinaryIO,
    form: str = "ndjson",
) -> ExportReport:
    """Write a session as it is now, whatever is pushed to it meanwhile; it goes on.

    Args:
        reader: a running service; or what `read_store` gives, for a store that another process holds, one that is
            closed, a copy, or a damaged one (up to the damage); or any `SessionReader`.
        session_id: the session; a service loads it.
        out: a path, which has the whole export or what was there before, also when the machine loses power; behind a
            link, the file that it names. Or a binary file, which is written to in pieces off the loop, flushed, and
            stays open.
        form: `ndjson`, from which `import_transcript` makes an equal session; or `markdown`, for people.

    Raises:
        InvalidArgument: the form is none of these; or `out` is neither a path of a file nor a binary file.
        SessionNotFound: there is no such session; and what else loading one raises.
        StoreCorrupt, FrameUnreadable: a frame cannot be read.
        OSError: the file cannot be written.

    Cancelling leaves a path as it was.
    """
    if form not in EXPORT_FORMS:
        raise unknown_form(form, EXPORT_FORMS)
    path = None if hasattr(out, "write") else path_of(out, "out")
    history = await history_in(reader, session_id)
    parts = lines_of_export(history) if form == "ndjson" else lines_of_markdown(history)
    if path is None:
        file = cast("BinaryIO", out)
        size_bytes = await _write(parts, file)
        await anyio.to_thread.run_sync(file.flush)
    else:
        async with NewFile(path) as file:
            size_bytes = await _write(parts, file)
    return ExportReport(history.session, size_bytes, history.damage)


async def _write(parts: AsyncGenerator[bytes], file: BinaryIO) -> int:
    waiting: list[bytes] = []
    size = written = 0
    async with aclosing(parts):
        async for part in parts:
            waiting.append(part)
            size += len(part)
            if size >= _BUFFER_BYTES:
                await anyio.to_thread.run_sync(_put, file, b"".join(waiting))
                written += size
                waiting, size = [], 0
    await anyio.to_thread.run_sync(_put, file, b"".join(waiting))
    return written + size


def _put(file: BinaryIO, data: bytes) -> None:
    """Write all of it: a file without a buffer may take less at once."""
    if not isinstance(file, io.RawIOBase):
        file.write(data)
        return
    rest = memoryview(data)
    while rest:
        taken = file.write(rest)
        if not taken:
            raise BlockingIOError("the file takes nothing now, and it is one that does not wait: give one that does")
        rest = rest[taken:]
