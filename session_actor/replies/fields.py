"""The fields of a reply, each with its place, so that whatever is not as expected is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from session_actor.errors import InvalidArgument
from session_actor.given import content
from session_actor.given.content import checked
from session_actor.given.plain import is_a, items_of, plain_str
from session_actor.requests.texts import without_absent

if TYPE_CHECKING:
    import msgspec


_DICT: Final[Any] = dict
"""Its own methods, whatever a class derived from it makes of them."""


class Fields:
    """One object of a reply.

    A field is asked for by its name in snake case; where that is missing, the name in camel case counts (the JSON of
    Gemini's API). A field that is None is as good as missing.
    """

    __slots__ = ("_values", "where")

    def __init__(self, values: dict[str, object], where: str) -> None:
        """`where`: its place, in the words of an error."""
        self._values = values
        self.where = where

    def get(self, name: str) -> object:
        """The value as it is, None when there is none."""
        value: object = _DICT.get(self._values, name)
        if value is None and "_" in name:
            value = _DICT.get(self._values, _camel(name))
        return value

    def at(self, name: str) -> str:
        """The place of a field."""
        return f"{self.where}.{name}"

    def has(self, *names: str) -> bool:
        """Whether it has any of these fields, be it None."""
        return any(_DICT.__contains__(self._values, key) for name in names for key in (name, _camel(name)))

    def text(self, name: str) -> str:
        """A str that must be there."""
        return checked(content.text, self.get(name), self.at(name))

    def word(self, name: str) -> str | None:
        """A str, None when there is none or an empty one."""
        return None if self.get(name) is None else self.text(name) or None

    def count(self, name: str) -> int:
        """A number from 0; 0 when there is none."""
        return 0 if self.get(name) is None else checked(content.count, self.get(name), self.at(name))

    def one(self, name: str) -> Fields | None:
        """An object, None when there is none."""
        return None if self.get(name) is None else fields_of(self.get(name), self.at(name))

    def part(self, name: str) -> Fields:
        """An object; one without fields when there is none."""
        return self.one(name) or Fields({}, self.at(name))

    def many(self, name: str) -> list[Fields]:
        """A list of objects; empty when there is none."""
        value = self.get(name)
        if value is None:
            return []
        if not is_a(value, (list, tuple)):
            raise InvalidArgument(self.at(name), f"must be a list, got {type(value).__name__}")
        return [fields_of(item, f"{self.at(name)}[{place}]") for place, item in enumerate(items_of(value))]

    def verbatim(self) -> msgspec.Raw:
        """All of it as JSON text. Raises ValueNotStorable for what JSON cannot hold exactly."""
        return checked(content.free, self.plain(), self.where)

    def native(self, *, deep: bool = True) -> msgspec.Raw:
        """The same without fields that are None: a dump of an SDK's object has those that the provider never sent.

        `deep`: also inside; Anthropic itself sends such fields there, as `page_age` of what a search found.
        """
        plain = self.plain()
        kept = without_absent(plain) if deep else {key: value for key, value in plain.items() if value is not None}
        return checked(content.free, kept, self.where)

    def some(self, *names: str) -> msgspec.Raw:
        """Those of these fields that it has, and that are not empty, as a free value; NULL when it has none.

        A `caller` that is the model itself is left out, as it may be (Anthropic, "Programmatic tool calling").
        """
        plain = self.plain()
        kept = {name: plain[name] for name in names if plain.get(name)}
        if kept.get("caller") == {"type": "direct"}:
            del kept["caller"]
        return checked(content.free, kept or None, self.where)

    def plain(self) -> dict[str, Any]:
        """All of it as plain values of its own."""
        return cast("dict[str, Any]", _plain(self._values))


def fields_of(value: object, where: str) -> Fields:
    """The fields of a dict, or of an object of an SDK: those that the provider set, named as in its API."""
    if is_a(value, dict):
        return Fields(cast("dict[str, object]", value), where)
    dump: Any = getattr(type(value), "model_dump", None)
    if not callable(dump):
        raise InvalidArgument(where, f"must be an object of a provider's SDK or a dict, got {type(value).__name__}")
    try:
        dumped: Any = dump(value, by_alias=True, exclude_unset=True, warnings=False)
    except Exception as error:  # noqa: BLE001 - whatever its class raises
        raise InvalidArgument(where, f"cannot be read: its model_dump raised {type(error).__name__}") from None
    if not is_a(dumped, dict):
        raise InvalidArgument(where, f"cannot be read: its model_dump gave {type(dumped).__name__}")
    return Fields(dumped, where)


def _plain(value: object) -> object:
    """Exact dicts, lists and strs in place of what is derived from them (an enum is a str in the SDKs)."""
    if is_a(value, str):
        return plain_str(value)
    if is_a(value, dict):
        return {key: _plain(item) for key, item in _DICT.items(value)}
    if is_a(value, (list, tuple)):
        return [_plain(item) for item in items_of(value)]
    if callable(getattr(type(value), "model_dump", None)):
        return fields_of(value, "a part of it").plain()
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
