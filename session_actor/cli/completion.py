"""`session-actor completion SHELL`: what a shell needs to complete commands, options and ids."""

from __future__ import annotations

import os
from typing import Any, Final

import click
from click.shell_completion import get_completion_class, shell_complete

from .asking import named
from .codes import Stop, say
from .program import COMMANDS, NAME, module_of

VARIABLE: Final = "_SESSION_ACTOR_COMPLETE"
"""The shells' scripts set it; click's completion names it so."""


@named(
    "completion",
    'eval "$(session-actor completion bash)"     # in ~/.bashrc',
    'eval "$(session-actor completion zsh)"      # in ~/.zshrc',
    "session-actor completion fish > ~/.config/fish/completions/session-actor.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="bash|zsh|fish")
def command(shell: str) -> int:
    """Print the script by which a shell completes commands, options and the ids of sessions."""
    found = get_completion_class(shell)
    if found is None:
        raise Stop(f"click knows no completion for {shell}")
    say(found(Program(), {}, NAME, VARIABLE).source())
    return 0


class Program(click.Group):
    """All commands as one of click's groups, for its completion."""

    def __init__(self) -> None:
        """Nothing is imported yet."""
        super().__init__(NAME)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """One command; those that argparse reads get their options from it."""
        about = COMMANDS.get(cmd_name)
        if about is None:
            return None
        module = module_of(about)
        if not about.plain:
            found: click.Command = module.command
            return found
        parser = module.parser(cmd_name)
        options = [word for word in parser.format_usage().replace("[", " ").replace("]", " ").split() if word[0] == "-"]
        params: list[click.Parameter] = [click.Option([word], is_flag=True) for word in options if word[:2] == "--"]
        return click.Command(cmd_name, params=[*params, click.Argument(["directory"], type=click.Path())])


def complete() -> int:
    """Answer a shell that completes a line; returns the exit code."""
    nothing: dict[str, Any] = {}
    return shell_complete(Program(), nothing, NAME, VARIABLE, os.environ[VARIABLE])
