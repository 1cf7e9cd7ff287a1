"""docs/reference.md has every public name, each with its fields, arguments and methods, and no other."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import session_actor
from session_actor import ChangeFeed, Command, FileStore, Handover, MemoryStore, SessionRef, persistence, supervisors
from session_actor.supervisors import DynamicSupervisor, PendingReply, Supervisor, SupervisorBase

PAGE = (Path(__file__).parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
HOMES = (session_actor, supervisors, persistence)
PUBLIC: dict[str, Any] = {name: getattr(home, name) for home in reversed(HOMES) for name in home.__all__}
OF_THE_LIBRARY: dict[type, set[str]] = {
    ChangeFeed: {"finish", "put"},
    Handover: {"taken"},
    PendingReply: {"expire", "fail", "forget_in_queue", "succeed"},
    DynamicSupervisor: set(dir(SupervisorBase)),
    Supervisor: set(dir(SupervisorBase)),
    FileStore: set(dir(FileStore)),  # a store's
    MemoryStore: set(dir(MemoryStore)),
    SessionRef: set(dir(SessionRef)),  # a server's
}
"""Public in Python, and for other parts of the library; or told elsewhere."""


def rows(text: str) -> Iterator[list[str]]:
    """The cells of all rows of tables."""
    for row in re.findall(r"^\|([^-].*)\|$", text, re.MULTILINE):
        yield [cell.strip() for cell in row.split("|")]


def code_in(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def told() -> dict[str, str]:
    """By each name that a row is about, all code of its rows."""
    found: dict[str, list[str]] = defaultdict(list)
    for first, *rest in rows(PAGE):
        for code in code_in(first):
            found[re.match(r"[\w.]*", code)[0]] += code_in(" ".join([first, *rest]))
    return {name: " ".join(code) for name, code in found.items()}


TOLD = told()


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def fields_of(kind: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", None) or getattr(kind, "__struct_fields__", ())


def names_of(kind: type) -> set[str]:
    """The fields, methods and properties that are for whoever uses a class."""
    inherited = next((set(dir(base)) for base in (dict, tuple) if issubclass(kind, base)), set())
    left_out = inherited.difference(fields_of(kind)) | OF_THE_LIBRARY.get(kind, set())
    return {name for name in {*fields_of(kind), *dir(kind)} - left_out if not name.startswith("_")}


def default_of(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def test_every_public_name_has_a_row():
    assert sorted(PUBLIC.keys() - TOLD.keys()) == []


def test_no_row_is_about_what_is_not_public():
    arguments = {
        code for title in ("Stores", "Configuration") for first, *_ in rows(section(title)) for code in code_in(first)
    }
    classes = {name for name in TOLD if name[:1].isupper()}
    assert sorted(classes - PUBLIC.keys() - {"SessionService", "Session"}) == []
    functions = {name for name in TOLD if name.islower()} - arguments
    assert sorted(functions - PUBLIC.keys()) == []


@pytest.mark.parametrize("title", ["Objects", "Stores", "Servers"])
def test_every_field_and_method_of_a_class_is_in_its_row(title):
    names = {code for first, *_ in rows(section(title)) for code in code_in(first) if code in PUBLIC}
    untold = {
        name: missing
        for name in sorted(names)
        if isinstance(kind := PUBLIC[name], type)
        and not issubclass(kind, BaseException)
        and (missing := {each for each in names_of(kind) if not re.search(rf"\b{each}\b", TOLD[name])})
    }
    assert untold == {}


def test_functions_have_their_arguments_and_defaults():
    signatures = {code.partition("(")[0]: code for first, *_ in rows(PAGE) for code in code_in(first) if "(" in code}
    functions = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}
    assert {name: signatures.get(name) for name in functions} == {
        name: f"{name}({arguments_of(function)})" for name, function in functions.items()
    }


def arguments_of(function: Any) -> str:
    told: list[str] = []
    keywords = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            told.append("*")
            keywords = True
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is parameter.empty else f"={default_of(parameter.default)}"
        told.append(f"{star}{parameter.name}{default}")
    return ", ".join(told)


def test_messages_have_their_fields_and_defaults():
    cells = {name: fields for first, fields, *_ in rows(section("Messages")) for name in code_in(first)}
    for name, kind in PUBLIC.items():
        if isinstance(kind, type) and issubclass(kind, Command):
            told = {code for code in code_in(cells[name]) if code.partition("=")[0] in kind.__struct_fields__}
            assert told == set(fields_with_defaults(kind)), name


def fields_with_defaults(kind: type[Command]) -> Iterator[str]:
    """As a call has them: `name=default`, or the name alone where it must be given; but for those that all have."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    for name, default in zip(names, (*[msgspec.NODEFAULT] * (len(names) - len(defaults)), *defaults), strict=True):
        if kind is Command or name not in Command.__struct_fields__:
            yield name if default is msgspec.NODEFAULT else f"{name}={default_of(default)}"


def test_a_directory_has_its_options_and_defaults():
    table = {code_in(first)[0]: default for first, default, *_ in rows(section("Stores")) if code_in(first)}
    parameters = list(inspect.signature(FileStore).parameters.values())
    assert {p.name for p in parameters} <= table.keys()
    for parameter in parameters[1:]:
        (default,) = code_in(table[parameter.name])
        assert ast.literal_eval(default) == parameter.default, parameter.name
