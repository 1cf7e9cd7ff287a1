"""Exporting a session to a file."""

from __future__ import annotations

import os
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

import anyio
import anyio.to_thread
import msgspec

from .errors import unknown_form
from .markdown import lines_of_markdown
from .ndjson import lines_of_export
from .source import history_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from session_actor.replay import Reader
    from session_actor.service import SessionService

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
        out: a path, which has the whole export or what was there before; or a binary file, which is written to in
            pieces off the loop and stays open.
        form: `ndjson`, from which `import_transcript` makes an equal session; or `markdown`, for people.

    Raises:
        InvalidArgument: the form is none of these.
        SessionNotFound: there is no such session; and what else loading one raises.
        StoreCorrupt, FrameUnreadable: a frame cannot be read.
        OSError: the file cannot be written.

    Cancelling leaves a path as it was.
    """
    if form not in EXPORT_FORMS:
        raise unknown_form(form, EXPORT_FORMS)
    history = await history_in(reader, session_id)
    parts = lines_of_export(history) if form == "ndjson" else lines_of_markdown(history)
    if not isinstance(out, (str, os.PathLike)):
        return ExportReport(history.session, await _write(parts, out), history.damage)
    path = os.fspath(out)
    unfinished = f"{path}.{os.getpid()}.part"
    file = await anyio.to_thread.run_sync(open, unfinished, "wb")
    try:
        try:
            size_bytes = await _write(parts, cast("BinaryIO", file))
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(file.close)
        await anyio.to_thread.run_sync(os.replace, unfinished, path)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_remove, unfinished)
        raise
    return ExportReport(history.session, size_bytes, history.damage)


async def _write(parts: AsyncGenerator[bytes], file: BinaryIO) -> int:
    waiting: list[bytes] = []
    size = written = 0
    async with aclosing(parts):
        async for part in parts:
            waiting.append(part)
            size += len(part)
            if size >= _BUFFER_BYTES:
                await anyio.to_thread.run_sync(file.write, b"".join(waiting))
                written += size
                waiting, size = [], 0
    await anyio.to_thread.run_sync(file.write, b"".join(waiting))
    return written + size


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)
