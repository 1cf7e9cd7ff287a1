"""Valid requests, and small changes each of which breaks one rule."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from session_actor import validate_request

from .sdk_shapes import shape_problems

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # a PNG
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
Change = Callable[[dict[str, Any]], None]


class Case(NamedTuple):
    """A change to a valid request, the rule that it breaks and where."""

    sentence: str
    rule: str
    path: str
    change: Change
    structural: bool = False
    """Whether the SDK's types accept it."""


def defect(sentence: str, rule: str, path: str, change: Change) -> Case:
    """One that the SDK's types accept."""
    return Case(sentence, rule, path, change, structural=True)


def put(*steps: str | int, value: Any) -> Change:
    """Put a value at a place."""

    def change(request: dict[str, Any]) -> None:
        _at(request, steps[:-1])[steps[-1]] = copy.deepcopy(value)

    return change


def drop(*steps: str | int) -> Change:
    """Take a key or an item away."""

    def change(request: dict[str, Any]) -> None:
        del _at(request, steps[:-1])[steps[-1]]

    return change


def insert(*steps: str | int, value: Any) -> Change:
    """Put an item before the one at a place; one place after the last: at the end."""

    def change(request: dict[str, Any]) -> None:
        _at(request, steps[:-1]).insert(steps[-1], copy.deepcopy(value))

    return change


def all_of(*changes: Change) -> Change:
    """Several changes, one after the other."""

    def change(request: dict[str, Any]) -> None:
        for one in changes:
            one(request)

    return change


class Pair(NamedTuple):
    """A change that breaks a rule, and one beside it that does not."""

    dialect: str
    sentence: str
    rule: str
    path: str
    bad: Change
    good: Change


def check_pair(base: dict[str, Any], pair: Pair) -> None:
    """The bad change breaks its rule at its place and no other rule; the good one none."""
    request = copy.deepcopy(base)
    pair.good(request)
    assert validate_request(pair.dialect, request) == []
    request = copy.deepcopy(base)
    pair.bad(request)
    problems = validate_request(pair.dialect, request)
    assert {problem.split(": ")[1] for problem in problems} == {pair.rule}, problems
    assert pair.path in {problem.split(": ")[0] for problem in problems}, problems


def check_case(dialect: str, base: dict[str, Any], case: Case) -> None:
    """The change breaks its rule at its place and no other rule; the SDK's types say nothing to a structural one."""
    assert validate_request(dialect, base) == []
    request = copy.deepcopy(base)
    case.change(request)
    problems = validate_request(dialect, request)
    assert problems, "the change broke nothing"
    assert {problem.split(": ")[1] for problem in problems} == {case.rule}, problems
    assert case.path in {problem.split(": ")[0] for problem in problems}, problems
    if case.structural:
        assert shape_problems(dialect, request) == []


def _at(request: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        request = request[step]
    return request
