"""The commands, and which module has each. Nothing else is imported for a list of them."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from .codes import CANNOT, CLEAN, INTERRUPTED, UNREAD, Stop, excuse, note, say

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import click

NAME: Final = "session-actor"
_EXTRA: Final = "needs click and rich, which come with the extra `cli`: pip install 'session-actor[cli]'"


class About(NamedTuple):
    """A command: where it is, and what it does."""

    module: str
    what: str
    plain: bool = False
    """Whether it works without the extra `cli`."""


COMMANDS: Final[dict[str, About]] = {
    "list": About("listing", "which sessions there are"),
    "show": About("show", "a session: what was said, frame by frame"),
    "tree": About("tree", "its branches, checkpoints and head, and how full the window is"),
    "replay": About("replay", "go through its past; why a turn was in a request, or was not"),
    "diff": About("diff", "what is different between two moments of a session"),
    "tail": About("tail", "follow a store: records as they come"),
    "verify": About("verify", "read a whole store and tell what is damaged", plain=True),
    "repair": About("repair", "mend a damaged store (only tells what it would do, unless --write)", plain=True),
    "export": About("exporting", "write sessions out: to be imported again, or for people"),
    "import": About("importing", "take in transcripts: Pi, Claude Code, OpenAI, Anthropic, our own export"),
    "stats": About("stats", "figures of a store, or of one session"),
    "doctor": About("doctor", "check this machine, and a store's directory, and say what to do"),
    "demo": About("demo", "feed a transcript to a process that is killed again and again", plain=True),
    "completion": About("completion", "completion of commands, options and ids for bash, zsh or fish"),
    "schema": About("schemas", "the JSON schema of what a command prints with --json", plain=True),
}
"""All commands, in the order in which they are shown."""

_HELP: Final = """\
usage: {name} COMMAND [ARGUMENTS]

Looks into the directory where session-actor keeps conversations. All but `import`, `repair` and `demo` change nothing,
and take no lock (`verify` does): a store that a server has open can be read.

commands:
{commands}

`{name} COMMAND --help` tells more, with examples. `--json` prints JSON lines; data goes to stdout, notes to stderr.
An ID may be any text; one with odd characters is given as a JSON string in double quotes, as `list` shows it.

exit codes: 0 done; 1 something was found; 2 could not run; 3 damaged; 4 of a newer version; 5 in use by a process;
130 Ctrl-C; 141 whoever read the output stopped.

example:
  {name} list conversations/
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` None: those of the process.

    Raises SystemExit for arguments that do not fit, and for --help.
    """
    given = sys.argv[1:] if arguments is None else arguments
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed: what would be printed goes nowhere
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - as long as the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _hush()
        return UNREAD
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:  # the last of it could not be printed
        _hush()
        return excuse(error)


def _hush() -> None:
    """Let nothing be written any more: Python flushes stdout once more when it ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # it is no file
        return


def _run(given: list[str]) -> int:
    if not given or given[0] in {"--help", "-h", "help"}:
        return _help()
    if given[0] == "--version":
        from session_actor import __version__

        say(f"{NAME} {__version__}")
        return CLEAN
    about = COMMANDS.get(given[0])
    if about is None:
        return _unknown(given[0])
    try:
        return _run_plain(about, given) if about.plain else _run_click(about, given)
    except BrokenPipeError:
        raise
    except (Stop, OSError) as error:
        return excuse(error)
    except Exception as error:
        from session_actor.errors import SessionActorError
        from session_actor.persistence.errors import PersistenceError

        if isinstance(error, SessionActorError | PersistenceError):
            return excuse(error)
        raise


def _help() -> int:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about.what}" for name, about in COMMANDS.items()]
    sys.stdout.write(_HELP.format(name=NAME, commands="\n".join(lines)))
    return CLEAN


def _unknown(name: str) -> int:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    note(f"there is no command {name!r}{meant} (`{NAME} --help` lists them)")
    return CANNOT


def module_of(about: About) -> ModuleType:
    """The module of a command."""
    return import_module(f".{about.module}", __package__)


def _run_plain(about: About, given: list[str]) -> int:
    parser = module_of(about).parser(f"{NAME} {given[0]}")
    options = parser.parse_args(given[1:])
    return cast("int", options.run(options))


def _run_click(about: About, given: list[str]) -> int:
    try:
        import click
    except ImportError:
        raise Stop(f"`{NAME} {given[0]}` {_EXTRA}") from None
    command = cast("click.Command", module_of(about).command)
    try:
        with command.make_context(f"{NAME} {given[0]}", list(given[1:])) as context:
            run = cast("Callable[[click.Context], int | None]", command.invoke)
            return run(context) or CLEAN
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        context_of = error.ctx if isinstance(error, click.UsageError) else None
        more = "" if context_of is None else f" (`{context_of.command_path} --help` tells more)"
        note(f"{error.format_message()}{more}")
        return CANNOT
