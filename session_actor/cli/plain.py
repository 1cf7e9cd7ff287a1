"""What the commands without click share: arguments by argparse, and a help that ends with examples."""

from __future__ import annotations

import argparse
import textwrap
from typing import Final

_WIDTH: Final = 100


def parser_of(prog: str, what: str, *examples: str) -> argparse.ArgumentParser:
    """A parser for one command. `what`: what the command does."""
    lines = "\n".join(f"  {line}" for line in examples)
    return argparse.ArgumentParser(
        prog,
        description=textwrap.fill(what, _WIDTH),
        epilog=f"Examples:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
