"""What is wrong with a request, collected; and the reading of values that may be anything."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast, get_args

Rule: TypeAlias = Literal[
    "missing",  # a key that must be there is not
    "type",  # a value of a type that cannot stand there
    "unknown",  # a role, a type or a key that the dialect does not know in this place
    "empty",  # an empty text, or a list with nothing in it
    "blank",  # a text of nothing but whitespace
    "trailing-space",  # whitespace at the end of the last message, the assistant's
    "unicode",  # a text that UTF-8 cannot carry
    "limit",  # a number, a size or a length that cannot be
    "conflict",  # two arguments that cannot stand together
    "first",  # the conversation begins with somebody else than the user
    "last",  # the conversation ends where the model cannot go on
    "alternate",  # two turns of one side in a row
    "order",  # blocks in a wrong order inside one message
    "unanswered",  # a call without its result right after its turn
    "no-call",  # a result without its call in the turn before
    "answered-twice",  # two results for one call
    "call-id",  # a call id of a form that is refused
    "item-id",  # an item's own id of a form that is refused
    "duplicate-id",  # an id that is used again
    "arguments",  # arguments of a call that are no JSON object
    "name",  # a name of a speaker or of a format, of a form that is refused
    "tool-name",  # a tool's name of a form that is refused
    "duplicate-tool",  # two tools of one name
    "schema",  # a schema that is none, or that a provider does not take
    "no-tools",  # calls, results or a choice, and no tools
    "cache",  # a cache breakpoint too many, or where none may be
    "signature",  # thinking, or a call, without the signature that proves it
    "reasoning",  # a reasoning item alone, or without its encrypted content
    "count",  # not as many function responses as calls
    "source",  # media with no source, or with several
    "base64",  # data that is no base64
    "media-type",  # a type of media that the provider does not take
    "url",  # no address of the web
]
"""The short code of what is wrong, as it stands in the text of a problem."""

RULES: Final[tuple[Rule, ...]] = get_args(Rule)

_WORD: Final = re.compile(r"[\w.:/+-]{1,64}", re.ASCII)
_DEEPEST: Final = 200


def named(value: object) -> str:
    """A value in the words of a problem: a word as it is, else what kind of value it is; never a text of the user's."""
    if isinstance(value, str):
        return repr(str(value)) if _WORD.fullmatch(value) else f"a text of {len(value)} characters"
    return "None" if value is None else f"a value of type {type(value).__name__}"


class Problems:
    """The problems found so far. Each reader below returns the value, or None after it has said what is wrong."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        """None yet."""
        self.found: list[str] = []

    def add(self, path: str, rule: Rule, why: str) -> None:
        """Note that the value at `path` breaks `rule`."""
        self.found.append(f"{path}: {rule}: {why}")

    def mapping(self, path: str, value: object) -> Mapping[str, Any] | None:
        """An object: a dict, or a model of an SDK."""
        found = as_mapping(value)
        if found is None:
            self.add(path, "type", f"must be an object, got {named(value)}")
        return found

    def sequence(self, path: str, value: object, *, filled: bool = True) -> list[Any] | tuple[Any, ...] | None:
        """A list or a tuple; `filled`: it may not be empty."""
        if not isinstance(value, list | tuple):
            self.add(path, "type", f"must be a list, got {named(value)}")
            return None
        if filled and not value:
            self.add(path, "empty", "must not be an empty list: leave the key or the whole message out")
            return None
        return value  # pyright: ignore[reportUnknownVariableType] - of anything

    def text(self, path: str, value: object, *, blank: bool = True) -> str | None:
        """A text that is not empty; `blank`: it may be nothing but whitespace."""
        if not isinstance(value, str):
            self.add(path, "type", f"must be a str, got {named(value)}")
        elif not value:
            self.add(path, "empty", "must not be an empty text")
        elif not blank and value.isspace():
            self.add(path, "blank", "must not be only whitespace")
        elif not _sendable(value):
            self.add(path, "unicode", "holds half of a surrogate pair, which UTF-8 cannot carry")
        else:
            return value
        return None

    def required(self, path: str, holder: Mapping[str, Any], key: str) -> Any:
        """The value of `key`; None, and a problem, when it is missing or null."""
        value = holder.get(key)
        if value is None:
            self.add(f"{path}.{key}" if path else key, "missing", "must be given")
        return value

    def required_text(self, path: str, holder: Mapping[str, Any], key: str, *, blank: bool = True) -> str | None:
        """The text under `key`, which must be there and not empty."""
        value = self.required(path, holder, key)
        return None if value is None else self.text(f"{path}.{key}" if path else key, value, blank=blank)

    def positive(self, path: str, value: object, least: int = 1) -> int | None:
        """A count that is at least `least`."""
        if not isinstance(value, int) or isinstance(value, bool):
            self.add(path, "type", f"must be an int, got {named(value)}")
        elif value < least:
            self.add(path, "limit", f"must be at least {least}")
        else:
            return value
        return None

    def free_object(self, path: str, value: object, rule: Rule) -> Mapping[str, Any] | None:
        """An object of JSON values all the way down."""
        found = as_mapping(value)
        if found is None:
            self.add(path, rule, f"must be a JSON object, got {named(value)}")
        elif (stranger := _no_json(found)) is not None:
            self.add(path, rule, f"holds {stranger}, which JSON cannot hold")
        else:
            return found
        return None


def as_mapping(value: object) -> Mapping[str, Any] | None:
    """A dict as it is, a model of an SDK as the dict that it stands for; None: neither."""
    if value is None or isinstance(value, str):
        return None
    if isinstance(value, (dict, Mapping)):  # a dict first: asking the abstract class is slow
        return value  # pyright: ignore[reportUnknownVariableType] - of anything
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        return None
    try:
        dumped: object = dump(exclude_none=True)
    except (TypeError, ValueError):
        return None
    return dumped if isinstance(dumped, dict) else None  # pyright: ignore[reportUnknownVariableType] - of anything


def _sendable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_json(value: object) -> str | None:
    """What of a value is no JSON; None: nothing. Level by level, so that neither depth nor a circle breaks it."""
    level: dict[int, Any] = {0: value}
    for _ in range(_DEEPEST):
        below: dict[int, Any] = {}
        for item in level.values():
            if isinstance(item, (dict, Mapping)):
                inside = cast("Mapping[object, Any]", item)
                if not all(isinstance(key, str) for key in inside):
                    return "a key that is no text"
                below |= {id(inner): inner for inner in inside.values()}
            elif isinstance(item, (list, tuple)):
                below |= {id(inner): inner for inner in cast("list[Any]", item)}
            elif (stranger := _no_leaf(item)) is not None:
                return stranger
        if not below:
            return None
        level = below
    return f"more than {_DEEPEST} levels"


def _no_leaf(value: object) -> str | None:
    """What of a value that holds no others is no JSON."""
    if isinstance(value, float):
        return None if math.isfinite(value) else "a number without a value"
    if isinstance(value, str):
        return None if _sendable(value) else "half of a surrogate pair"
    return None if value is None or isinstance(value, int) else f"a value of type {type(value).__name__}"
