"""The table of README.md and the tests of this folder name each other correctly."""

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_every_test_that_the_table_names_exists_and_every_test_is_in_the_table() -> None:
    named = set(re.findall(r"`(test_\w+)`", (HERE / "README.md").read_text(encoding="utf-8")))
    defined: set[str] = set()
    for path in HERE.glob("test_*.py"):
        if path.name != Path(__file__).name:
            defined |= set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert named == defined
