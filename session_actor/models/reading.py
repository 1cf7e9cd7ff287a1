"""Profiles of models from a file, so that a server and the command line can share them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from session_actor.errors import InvalidArgument
from session_actor.plain import shown

from .profile import ModelProfile

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIELD: Final = re.compile(r"\$\.(\w+)")


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
        InvalidArgument: it is neither, or a field of a profile cannot be right: it says where and why.
        OSError: the file cannot be read.
    """
    place = os.fsdecode(os.fspath(path))
    return {name: _profile(place, name, table) for name, table in _tables(place, Path(place).read_bytes()).items()}


def _tables(place: str, data: bytes) -> Mapping[str, object]:
    import tomllib

    try:
        text = data.decode("utf-8-sig")
        found: Any = msgspec.json.decode(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InvalidArgument(place, f"is no text in UTF-8 (byte {error.start})") from None
    except (tomllib.TOMLDecodeError, msgspec.DecodeError) as error:
        raise InvalidArgument(place, f"is neither TOML nor JSON that can be read: {error}") from None
    return cast("Mapping[str, object]", found)


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
        why = str(error).partition(" - at `")[0]
        raise InvalidArgument(where if at is None else f"{where}: {at[1]}", f"cannot be used: {why}") from None
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}: {error.what}", str(error).removeprefix(f"{error.what} ")) from None
