"""`session-actor export DIR ID…`: sessions as lines to be imported again, or as Markdown for people."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

import click

from .asking import ID, as_json, check_own, check_there, directory, named, opened, stopped
from .codes import CORRUPT, Stop, counted, note
from .harmless import shown_id
from .listing import own_sessions
from .output import busy, size, tell
from .store_lines import ExportFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from session_actor.replay import Reader
    from session_actor.transfer.exporting import ExportReport


@named(
    "export",
    "session-actor export conversations/ user-42 -o user-42.ndjson",
    "session-actor export conversations/ user-42 --form markdown | less",
    "session-actor export conversations/ --all -o all.ndjson",
)
@directory
@click.argument("sessions", metavar="ID...", type=ID, nargs=-1)
@click.option("--all", "every", is_flag=True, help="All sessions of the store.")
@click.option(
    "--form",
    type=click.Choice(["ndjson", "markdown"]),
    default="ndjson",
    show_default=True,
    help="Lines to be imported again, or for people.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Default: stdout. A file has the whole export, or what was there before.",
)
@as_json
def command(
    directory: str, sessions: tuple[str, ...], *, every: bool, form: str, output: str | None, as_json: bool
) -> int:
    """Write sessions out as they are now; the store may be in use, a copy, or damaged (up to the damage, exit code 3).

    Several sessions stand one after the other; `session-actor import` reads them all. With --json, which needs a file,
    stdout tells what was written.
    """
    context = click.get_current_context()
    if bool(sessions) == every:
        raise click.UsageError("give one ID or more, or --all", context)
    if as_json and output is None:
        raise click.UsageError("--json tells what was written: give a file with --output", context)
    with opened(directory) as reader:
        if every:
            sessions = tuple(info.id for info in own_sessions(reader))
        for session in sessions:
            check_own(session)
            check_there(reader, session)
        if output is not None:
            _check_outside(reader.root, output)
        reports = asyncio.run(_export(reader, sessions, form, output))
    damage = tuple(report.damage for report in reports if report.damage is not None)
    total = sum(report.size_bytes for report in reports)
    if as_json:
        tell(ExportFile(path=output or "-", form=form, sessions=sessions, size_bytes=total, damage=damage))
    elif output is not None:
        note(f"{counted(len(reports), 'session')}, {size(total)}: {output}")
    for told in damage:
        note(f"{told}; what was before it is in the export")
    return CORRUPT if damage else 0


def _check_outside(root: str, output: str) -> None:
    """Refuse to write among the files of the store. Raises Stop."""
    if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(root)):  # which takes links in a circle, too
        raise Stop(f"{output} is inside the store, where nothing but its own files may be: give another place")


async def _export(reader: Reader, sessions: tuple[str, ...], form: str, output: str | None) -> list[ExportReport]:
    from session_actor.replay.errors import MomentUnknown
    from session_actor.transfer import export_session

    found: list[ExportReport] = []
    async with _written(output) as file:
        for session in sessions:
            with contextlib.nullcontext() if output is None else busy(f"exporting {shown_id(session)}"):
                try:
                    found.append(await export_session(reader, session, file, form))
                except MomentUnknown as error:
                    raise stopped(reader, session, error) from error
    return found


class ForTerminal:
    """Takes the bytes of an export, and writes them as text that does nothing to a terminal.

    In lines of JSON every other character is inside a string, so an escape says the same.
    """

    def __init__(self, stream: TextIO) -> None:
        """`stream`: the terminal."""
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes) -> int:
        """Write a piece, which may end within a character."""
        text = self._decoder.decode(data)
        self._stream.write("".join(each if each.isprintable() or each == "\n" else _escape(each) for each in text))
        return len(data)

    def flush(self) -> None:
        """Have what was written shown."""
        self._stream.flush()


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


@contextlib.asynccontextmanager
async def _written(output: str | None) -> AsyncGenerator[BinaryIO]:
    """A file that has all of it in the end, or is what it was; None: stdout."""
    if output is None:
        sys.stdout.flush()
        yield cast("BinaryIO", ForTerminal(sys.stdout)) if sys.stdout.isatty() else sys.stdout.buffer
        sys.stdout.flush()
        return
    from session_actor.transfer.new_file import NewFile

    device = _device(output)
    if device is not None:
        with device:
            yield device
        return
    async with NewFile(output) as file:
        yield file


def _device(output: str) -> BinaryIO | None:
    """A device or a pipe, which is written to, and not replaced by a file; None: it is neither."""
    target = Path(output)
    return target.open("wb") if target.exists() and not target.is_file() else None
