"""The table of events says of every event what it is, and of no other.

What the code can tell is found twice: by reading it, and by lives in which everything happens.
"""

from __future__ import annotations

import ast
import asyncio
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import structlog

from session_actor import observing, telemetry

from .events_life import everything

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
SPANS = ("start", "stop", "exception")


class Row(NamedTuple):
    measurements: set[str]
    metadata: set[str]


def table() -> dict[str, Row]:
    """The rows by name; "the same" stands for the words of the row before it, of the same span."""
    rows: dict[str, Row] = {}
    before = Row(set(), set())
    for line in PAGE.splitlines():
        if not line.startswith("| `session_actor."):
            continue
        name, _, measurements, metadata = (cell.strip() for cell in line.strip("|").split(" |", 3))
        row = Row(words(measurements), words(metadata))
        if "the same" in metadata:
            row.metadata.update(before.metadata)
        name = name.strip("` ")
        assert name not in rows
        rows[name] = before = row
    return rows


def words(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", cell))


# --- by reading the code ---


@cache
def read_code(folder: str) -> list[tuple[Path, ast.Module]]:
    """The files of a floor that have to do with events: to read them all would take long."""
    skipped = {"supervisors", "persistence"} if folder == "session_actor" else set()
    paths = [path for path in (ROOT / folder).rglob("*.py") if not skipped & set(path.relative_to(ROOT / folder).parts)]
    sources = [(path, path.read_text(encoding="utf-8")) for path in sorted(paths)]
    return [
        (path, ast.parse(text))
        for path, text in sources
        if re.search(r"telemetry|observing|telling|events\.|_failed", text)
    ]


def callee(call: ast.Call) -> str:
    """The last word of what is called."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def texts(node: ast.expr) -> list[str]:
    """The texts that an expression may be."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp(body=body, orelse=other):
            return texts(body) + texts(other)
        case _:
            return []


@cache
def prefixes() -> dict[str, tuple[str, ...]]:
    """The constants that begin names of events, by what they are called, with their modules' names before them."""
    found: dict[str, tuple[str, ...]] = {}
    for path, tree in read_code("session_actor") * 2:  # one may be imported from a later file
        known: dict[str, tuple[str, ...]] = {}
        for node in tree.body:
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.Tuple() as value):
                    name_of = spelled(value, known | found)
                    if name_of is not None and name_of[:1] == ("session_actor",):
                        known[name] = name_of
                case ast.ImportFrom(names=names, module=module):
                    for alias in names:
                        key = f"{(module or '').rpartition('.')[2]}.{alias.name}"
                        if key in found:
                            known[alias.asname or alias.name] = found[key]
                case _:
                    pass
        found |= {f"{path.stem}.{name}": value for name, value in known.items()}
    return found


def spelled(node: ast.expr, known: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """The words of a name as the code spells it; None: some come from elsewhere."""
    match node:
        case ast.Name(id=name):
            return known.get(name)
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return known.get(f"{module}.{name}")
        case ast.Starred(value=value):
            return spelled(value, known)
        case ast.Constant(value=str(word)):
            return (word,)
        case ast.Tuple(elts=parts):
            spelt = [spelled(part, known) for part in parts]
            return None if None in spelt else tuple(word for part in spelt if part for word in part)
        case _:
            return None


class Helper(NamedTuple):
    """A function that is given the last word of a name."""

    prefix: tuple[str, ...]
    place: int
    """Which argument that word is."""


READ_ELSEWHERE = {"telemetry.py": "spans, and what stores tell", "observing.py": "what supervisors tell"}
"""Where names are put together of what is not in the code beside it; it is found by the functions below."""


def known_in(path: Path) -> dict[str, tuple[str, ...]]:
    """The constants that a module knows."""
    own = {key.partition(".")[2]: value for key, value in prefixes().items() if key.startswith(f"{path.stem}.")}
    return prefixes() | own


@cache
def helpers() -> tuple[dict[str, Helper], list[str]]:
    """The helpers by module and name, and where a name of an event cannot be read."""
    found: dict[str, Helper] = {}
    unread: list[str] = []
    for path, tree in read_code("session_actor"):
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            given = [argument.arg for argument in function.args.args if argument.arg != "self"]
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call) and callee(node) == "emit"):
                match call.args[0] if call.args else None:
                    case ast.Tuple(elts=[ast.Starred(value=prefix), ast.Name(id=word)]) if word in given:
                        spelt = spelled(prefix, known_in(path))
                        assert spelt is not None
                        found[f"{path.stem}.{function.name}"] = Helper(spelt, given.index(word))
                    case None:
                        pass
                    case name if spelled(name, known_in(path)) is None and path.name not in READ_ELSEWHERE:
                        unread.append(f"{path.name}:{call.lineno}")
                    case _:
                        pass
    return found, unread


def helpers_in(path: Path, tree: ast.Module) -> dict[str, Helper]:
    """Those that a module has, or imports, by what it calls them."""
    found = {name.partition(".")[2]: one for name, one in helpers()[0].items() if name.startswith(f"{path.stem}.")}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)):
        for alias in node.names:
            one = helpers()[0].get(f"{(node.module or '').rpartition('.')[2]}.{alias.name}")
            if one is not None:
                found[alias.asname or alias.name] = one
    return found


def emitted() -> set[str]:
    """All names that the code can tell."""
    assert helpers()[1] == [], "names that this test cannot read"
    found: set[tuple[str, ...]] = set()
    for path, tree in read_code("session_actor"):
        known, helping = known_in(path), helpers_in(path, tree)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args):
            name = spelled(call.args[0], known)
            if callee(call) == "emit" and name is not None:
                found.add(name)
            elif ast.unparse(call.func) in {"telemetry.span", "telemetry.Span"}:
                assert name is not None, f"{path.name}:{call.lineno}"
                found |= {(*name, phase) for phase in SPANS}
            elif helper := helping.get(callee(call)):
                found |= {(*helper.prefix, word) for word in texts(call.args[helper.place])}
    found |= {(*observing.SESSION, word) for word in observing._OF_SESSIONS}
    found |= {(*observing.WORKER, word) for word in observing._OF_WORKERS}
    return {".".join(name) for name in found | store_events()}


def store_events() -> set[tuple[str, ...]]:
    """What stores tell: by `tell` and `report` of their events, and what fails by its name."""
    found: set[str] = {"lost"}
    for _, tree in read_code("persistence"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and callee(node) in {"tell", "report"} and "events" in ast.unparse(node.func):
                found |= set(texts(node.args[0]))
            if isinstance(node, ast.Constant) and type(node.value) is str and re.fullmatch("[a-z]+_failed", node.value):
                found.add(node.value)
    return {(*telemetry.STORE, name) for name in found}


def test_every_event_that_the_code_can_tell_is_in_the_table_and_no_other():
    assert emitted() == set(table())


# --- by living ---


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory):
    """All that was told in lives in which everything happens: of each name, the words that came with it."""
    told: dict[str, Row] = {}

    def hear(name, measurements, metadata):
        row = told.setdefault(".".join(name), Row(set(), set()))
        row.measurements.update(measurements)
        row.metadata.update(metadata)
        assert all(isinstance(value, int | float) for value in measurements.values())

    detach = telemetry.attach(("session_actor",), hear)
    with structlog.testing.capture_logs():
        asyncio.run(everything(tmp_path_factory.mktemp("lives")))
    detach()
    return told


def test_every_event_of_the_table_is_told_in_a_life_and_no_other(life):
    assert set(life) == set(table())


def test_the_table_names_the_measurements_and_the_metadata_of_each_event(life):
    rows = table()
    assert {name: row for name, row in life.items() if not fits(row, rows[name], name)} == {}


def fits(told: Row, row: Row, name: str) -> bool:
    """What failed tells how far it came, which is not always the same."""
    if name.endswith(".exception"):
        return told.measurements <= row.measurements and told.metadata <= row.metadata
    return told == row
