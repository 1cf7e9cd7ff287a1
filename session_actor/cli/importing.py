"""`session-actor import DIR FILE…`: transcripts of others, and our own export, into sessions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .asking import ID, as_json, directory, named
from .codes import FOUND, Stop, counted, note, say
from .harmless import one_line, shown_id
from .logs import logs_as_notes
from .output import busy, tell
from .parts import NotWholePart, UnreadPart
from .store_lines import ImportFile

if TYPE_CHECKING:
    from session_actor.transfer import ImportReport

_FORMS = ("ndjson", "pi", "claude-code", "openai-chat", "anthropic")


@named(
    "import",
    "session-actor import conversations/ transcript.jsonl",
    "session-actor import conversations/ user-42.ndjson --session user-42-copy",
    "session-actor import conversations/ *.jsonl --form claude-code --json",
)
@directory
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--form", type=click.Choice(_FORMS), help="What the file is. Default: as it looks.")
@click.option("--session", type=ID, metavar="ID", help="The session to import into. Default: as the file calls it.")
@click.option("--create", is_flag=True, help="Make the store when the directory is none yet.")
@as_json
def command(
    directory: str, files: tuple[str, ...], *, form: str | None, session: str | None, create: bool, as_json: bool
) -> int:
    """Take in transcripts: each file becomes a session, or several. This opens the store, so no server may have it.

    The same file again adds only what is new in it. Exit code 1: lines of a file could not be read, or an export is not
    whole; the rest is in.
    """
    if session is not None and len(files) > 1:
        raise click.UsageError("--session goes with one FILE", click.get_current_context())
    if not create:
        _check_store(directory)
    findings = 0
    with logs_as_notes():
        for path in files:
            with busy(f"importing {path}"):
                report = asyncio.run(_import(directory, path, form, session))
            (_tell if as_json else _say)(path, report)
            findings += report.unread_count + report.not_whole_count
    return FOUND if findings else 0


def _check_store(directory: str) -> None:
    from session_actor.persistence.errors import NotAStore
    from session_actor.persistence.foreign import check_store_there
    from session_actor.persistence.layout import Layout

    try:
        check_store_there(Layout(directory))
    except NotAStore as error:
        raise Stop(f"{error}; --create makes one") from None


async def _import(directory: str, path: str, form: str | None, session: str | None) -> ImportReport:
    from session_actor import SessionService
    from session_actor.transfer import import_transcript

    async with SessionService.open(Path(directory), durability="async") as service:
        report = await import_transcript(service, path, form, session)
        for each in report.sessions:
            await (await service.session(each)).flush("synced", timeout_s=None)
    return report


def _tell(path: str, report: ImportReport) -> None:
    tell(
        ImportFile(
            path=path,
            form=report.form,
            sessions=tuple(report.sessions),
            added=report.added,
            skipped=report.skipped,
            passed=report.passed,
            unread=tuple(UnreadPart(offset, why) for offset, why in report.unread),
            unread_count=report.unread_count,
            not_whole=tuple(NotWholePart(one.offset, one.lack, one.frames, one.what) for one in report.not_whole),
            not_whole_count=report.not_whole_count,
            left_out=report.left_out,
        )
    )


def _say(path: str, report: ImportReport) -> None:
    where = ", ".join(map(shown_id, report.sessions)) or "no session"
    told = f"{counted(report.added, 'frame')} added, {report.skipped:,} there already"
    say(f"{one_line(path)} ({report.form}): {told}: {where}")
    findings = [*report.unread, *((one.offset, one.what) for one in report.not_whole)]
    for offset, why in findings:
        note(f"{path}, byte {offset}: {why}")
    more = report.unread_count + report.not_whole_count - len(findings)
    if more:
        note(f"{path}: {more:,} more like these")
    if report.left_out:
        told = ", ".join(f"{name} ({count:,})" for name, count in sorted(report.left_out.items()))
        note(f"{path}: a frame has no place for this, and it was left out: {told}")
