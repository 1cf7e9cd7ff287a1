"""What the commands with click share: examples in the help, the directory, the id, the moment; and opening a store."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from .codes import CORRUPT, Stop, note
from .harmless import given_id, shown_id
from .logs import logs_as_notes
from .output import busy

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from session_actor.replay import Moment, Reader, Replay
    from session_actor.replay.reading import Records

Function = TypeVar("Function", bound="Callable[..., Any]")

MOMENTS: Final = (
    "a record's number, `first`, `last`, `frame:7`, `checkpoint:NAME`, or a time such as 2026-11-30T16:00 (UTC)"
)
_DIGITS: Final = 18
_WORD: Final = re.compile(r"\w[\w.@%+=:,/-]*")
"""What no shell reads as anything but a word."""
_OFFERED: Final = 50
"""So many ids are offered for completion."""


class Command(click.Command):
    """A command whose help ends with examples."""

    def __init__(self, *arguments: Any, examples: tuple[str, ...] = (), **options: Any) -> None:
        """`examples`: lines to type."""
        options.setdefault("context_settings", {"help_option_names": ["-h", "--help"], "max_content_width": 110})
        super().__init__(*arguments, **options)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog and the examples."""
        super().format_epilog(ctx, formatter)
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"  {line}\n")


def named(name: str, *examples: str) -> Callable[[Callable[..., Any]], Command]:
    """Makes a command of a function, with examples for its help."""
    return click.command(name, cls=Command, examples=examples)


if TYPE_CHECKING:
    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # no generic in the oldest version that will do


class Id(_Text):
    """The id of a session, as it is or as a JSON string."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """See `given_id`."""
        try:
            return given_id(value)
        except ValueError:
            self.fail("an id that begins and ends with a double quote is a JSON string, and this is none", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002 - click's
        """The ids that begin so, but for those of which a shell would make more than a word.

        Ids are often those of strangers, and bash puts in what is offered as it is: `a$(reboot)` would be run.
        """
        from click.shell_completion import CompletionItem

        from session_actor.service.reserved import is_reserved

        with contextlib.suppress(Exception), opened(ctx.params["directory"]) as reader:
            found: list[Any] = []
            for info in reader.sessions(incomplete):
                if not is_reserved(info.id) and _WORD.fullmatch(info.id) and shown_id(info.id) == info.id:
                    found.append(CompletionItem(info.id))
                if len(found) == _OFFERED:
                    break
            return found
        return []


ID: Final = Id()
directory: Final = click.argument("directory", metavar="DIR", type=click.Path(), is_eager=True)
session: Final = click.argument("session", metavar="ID", type=ID)
as_json: Final = click.option(
    "--json", "as_json", is_flag=True, help="JSON lines; `session-actor schema` describes them."
)


profiles: Final = click.option(
    "--profiles",
    metavar="FILE",
    type=click.Path(),
    help="Profiles of models of your own, TOML or JSON, as the service has them (models=read_profiles(FILE)).",
)


def at_option(what: str = "the session as it was then") -> Callable[[Function], Function]:
    """The option --at."""
    return click.option("--at", "at", metavar="WHEN", help=f"{what}: {MOMENTS}. Default: last.")


@contextlib.contextmanager
def opened(path: str) -> Generator[Reader]:
    """A store, without its lock."""
    from session_actor.replay.reading import read_store

    with read_store(path) as reader:
        yield reader


@contextlib.contextmanager
def replayed(path: str, session_id: str, profiles: str | None = None) -> Generator[Replay]:
    """The past of a session in a store. `profiles`: a file with profiles of models; None: the library's alone."""
    from session_actor.models import read_profiles
    from session_actor.replay import MomentUnknown, Replay

    check_own(session_id)
    models = None if profiles is None else read_profiles(profiles)
    with opened(path) as reader:
        check_there(reader, session_id)
        with busy(f"reading {shown_id(session_id)}"):
            try:
                replay = Replay.of(reader, session_id, models)
            except MomentUnknown as error:
                raise stopped(reader, session_id, error) from error
        with logs_as_notes(), replay:
            yield replay


def stopped(reader: Reader, session_id: str, error: Exception) -> Exception:
    """What to raise for a session of which nothing can be gone to: with the code of damage, if that is why."""
    records = reader.records(session_id)
    for _ in records:
        pass
    return error if records.damage is None else Stop(str(error), CORRUPT)


def check_there(reader: Reader, session_id: str) -> None:
    """Refuse what is no session of the store, and say how to find those that are. Raises Stop, SessionDeleted."""
    from session_actor.service_errors import SessionNotFound

    try:
        reader.session(session_id)
    except SessionNotFound:
        raise Stop(
            f"there is no session {shown_id(session_id)} here; `session-actor list` shows those that are"
        ) from None


def check_own(session_id: str) -> None:
    """Refuse ids that are the library's own. Raises Stop."""
    from session_actor.service.reserved import is_reserved

    if is_reserved(session_id):
        raise Stop(f"{shown_id(session_id)} is no session: the library keeps its hooks there")


def ended_by(damaged: Replay | Records) -> int:
    """The exit code of what was read: whether it is damaged, which is told."""
    if damaged.damage is None:
        return 0
    note(f"{damaged.damage}; what was before it was read")
    return CORRUPT


def number_in(text: str) -> int | None:
    """The number of a record or a frame that somebody typed; None: it is none, or has more digits than any can have."""
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def moment_at(replay: Replay, text: str | None) -> Moment:
    """The moment that somebody typed. Raises Stop, MomentUnknown, FrameUnknown, CheckpointUnknown."""
    seqs = replay.seqs()
    if text is None or text == "last":
        return replay.at(seq=seqs[-1])
    if text == "first":
        return replay.at(seq=seqs[0])
    kind, colon, rest = text.partition(":")
    if colon and kind == "frame" and (frame := number_in(rest)) is not None:
        return replay.at(frame=frame)
    if colon and kind == "checkpoint":
        return replay.at(checkpoint=rest)
    if (seq := number_in(text)) is not None:
        return replay.at(seq=seq)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise Stop(f"{text!r} is no moment: give {MOMENTS}") from None
    return replay.at(time=time if time.tzinfo else time.replace(tzinfo=UTC))
