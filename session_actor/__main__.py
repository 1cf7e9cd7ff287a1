"""The command line: `session-actor COMMAND`, or `python -m session_actor COMMAND`."""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` None: those of the process."""
    if arguments is None and "_SESSION_ACTOR_COMPLETE" in os.environ:
        from .cli.completion import complete

        return complete()
    from .cli.program import main as run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
