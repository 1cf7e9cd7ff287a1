"""Profiles of models from a file, so that a server and the command line can share them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from session_actor.errors import InvalidArgument
from session_actor.given.given_paths import must_be_file, path_of
from session_actor.given.plain import shown

from .profile import ModelProfile

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

_FIELD: Final = re.compile(r"\$\.(\w+)")
_MOST_BYTES: Final = 1_000_000
_MOST_TOLD: Final = 300
_MOST_PARTS: Final = 16
"""So many parts a key of TOML may have, with dots between them: its reader takes their square in time."""
_PART: Final = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY: Final = re.compile(rf"(?<![\w\\-])(?:{_PART}[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}{_PART}")


def read_profiles(path: str | os.PathLike[str]) -> dict[str, ModelProfile]:
    """The profiles of models in a file, by the models' names, as `SessionService.open(models=…)` takes them. Blocks.

    The file is TOML, or JSON when it begins with a brace: a table a model, whose fields are those of `ModelProfile`;
    `name`, where it is not given, is the table's own.

        [house-model]
        window = 64_000
        max_output = 8_192
        family = "o200k"

    Args:
        path: the file.

    Raises:
        InvalidArgument: it is neither, it has more than a million bytes, a key of more than 16 parts or is no file, or
            a field of a profile cannot be right: it says where and why.
        OSError: the file cannot be read.
    """
    place = path_of(path, "path")
    must_be_file(place, "path")
    with Path(place).open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InvalidArgument(place, f"is no file of profiles: it has more than {_MOST_BYTES:,} bytes")
    return {name: _profile(place, name, table) for name, table in _tables(place, data).items()}


def _tables(place: str, data: bytes) -> Mapping[str, object]:
    import tomllib

    try:
        text = data.decode("utf-8-sig")
        found: Any = _json(text) if text.lstrip().startswith("{") else tomllib.loads(_short_keys(place, text))
    except UnicodeDecodeError as error:
        raise InvalidArgument(place, f"is no text in UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise InvalidArgument(place, "is nested too deeply") from None
    except ValueError as error:  # of both parsers, and of numbers with too many digits
        raise InvalidArgument(place, f"is neither TOML nor JSON that can be read: {_brief(error)}") from None
    return cast("Mapping[str, object]", found)


def _short_keys(place: str, text: str) -> str:
    long = _LONG_KEY.search(text)
    if long is not None:
        line = text.count("\n", 0, long.start()) + 1
        raise InvalidArgument(place, f"is no file of profiles: a key of more than {_MOST_PARTS} parts in line {line}")
    return text


def _json(text: str) -> Any:
    """JSON, in which a key that stands twice is an error, as it is in TOML."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key stands twice in one object")
        return found

    return json.loads(text, object_pairs_hook=once)


def _brief(error: Exception) -> str:
    """What a parser says, in one line, with nothing that a terminal would obey, and not at length."""
    told = "".join(each if each.isprintable() else "?" for each in str(error))
    return told if len(told) <= _MOST_TOLD else f"{told[:_MOST_TOLD]} …"


def _profile(place: str, name: str, table: object) -> ModelProfile:
    where = f"{place}: {shown(name)}"
    if not isinstance(table, dict):
        raise InvalidArgument(where, f"must be a table with the fields of a ModelProfile, got {type(table).__name__}")
    if not name:
        raise InvalidArgument(where, "must be the name of a model")
    fields = {"name": name, **cast("dict[str, object]", table)}
    try:
        return msgspec.convert(fields, ModelProfile)
    except msgspec.ValidationError as error:
        at = _FIELD.search(str(error))
        why = _brief(error).partition(" - at `")[0]
        if "unknown field" in why:
            why += " (a name with dots in it wants quotes)"
        raise InvalidArgument(where if at is None else f"{where}: {at[1]}", f"cannot be used: {why}") from None
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}: {error.what}", str(error).removeprefix(f"{error.what} ")) from None
