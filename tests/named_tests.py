"""The tests that a page names beside what they show, as `folder/test_file.py::test_name`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent


def named_in(page: str) -> list[tuple[str, str]]:
    """The file and the name of each."""
    return sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", page)))


def missing_of(page: str, folder: Path = TESTS) -> list[str]:
    """Those that are not there; their files are named from `folder` on."""
    named = named_in(page)
    assert named
    return [f"{path}::{name}" for path, name in named if name not in defined_in(folder / path)]


@cache
def defined_in(path: Path) -> set[str]:
    """What a file defines: functions, methods, and what is assigned at its top level."""
    text = path.read_text(encoding="utf-8")
    functions = re.findall(r"^ *(?:async )?def (\w+)\(", text, re.MULTILINE)
    return {*functions, *re.findall(r"^(\w+)(?:: [^=\n]+)? = ", text, re.MULTILINE)}
