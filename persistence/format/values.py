r"""Exact values in JSON: what goes in comes back equal and of the same types, or is refused before anything changed.

JSON carries None, bool, str, int, float, list and dict with str keys. What it cannot carry is written as an object with
one reserved key:

    {"$esc":"a\\ud800"}      a str with lone surrogates: each as \uXXXX, each backslash doubled
    {"$b64":"AP8="}          bytes
    {"$float":"nan"}         nan, inf, -inf; a NaN of other bits as nan:<16 hex digits>
    {"$int":"-0x1f…"}        an int that does not fit 64 bits
    {"$blob":…}              kept for contents stored elsewhere; not read by this version

A user's key that begins with "$" gets one more "$", so it is never taken for a tag. A key with lone surrogates is
written as "$esc:" and the escaped text. So every other key with "$" is ours, the tags of later versions included.

`encode_record_data` writes Structs. In one that has lone surrogates, the str becomes {"$esc":…} and each msgspec.Raw is
wrapped as {"$raw":"<its text>"}, so that reading tells the Struct's own tags from those inside a Raw.
"""

from __future__ import annotations

import math
import re
import struct
from base64 import b64decode, b64encode
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec
import orjson

from session_actor.persistence.errors import ValueNotStorable, ValueUnreadable

from .escapes import escape, has_surrogates, unescape

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MAX_DEPTH: Final = 200
"""Lists and dicts may be nested this deep."""

_T = TypeVar("_T")
_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**64 - 1
_SHOWN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


# --- free values -----------------------------------------------------------------------------------------------------


def dumps(value: object) -> bytes:
    """Encode `value` as JSON on one line.

    Takes None, bool, str, int, float, bytes, list and dict with str keys: these very types, since a tuple would come
    back as a list and a subclass as its base. Raises `ValueNotStorable` with the place and the reason.
    """
    try:
        try:
            return orjson.dumps(_tagged(value, 1, escaping=False))
        except orjson.JSONEncodeError:  # a lone surrogate somewhere: look at every str
            return orjson.dumps(_tagged(value, 1, escaping=True))
    except _Refused as refused:
        raise ValueNotStorable(refused.where(), refused.why) from None


def loads(data: bytes) -> object:
    """Decode what `dumps` made. Raises `ValueUnreadable`."""
    try:
        value = orjson.loads(data)
        return _untagged(value) if b'"$' in data else value
    except orjson.JSONDecodeError:
        raise ValueUnreadable("stored text is not JSON") from None
    except RecursionError:
        raise ValueUnreadable("a stored value is nested too deep") from None


class _Refused(Exception):
    """Why a value is refused; the steps to it are added on the way up."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why
        self.steps: list[str] = []

    def where(self) -> str:
        return "$" + "".join(reversed(self.steps))


def _tagged(value: object, depth: int, escaping: bool) -> object:  # noqa: FBT001 - hot
    if type(value) is str:
        return {"$esc": escape(value)} if escaping and has_surrogates(value) else value
    if value is None or type(value) is bool:
        return value
    if type(value) is int:
        return value if _INT_MIN <= value <= _INT_MAX else {"$int": hex(value)}
    if type(value) is dict:
        return _tagged_dict(cast("dict[object, object]", value), depth, escaping)
    if type(value) is list:
        return _tagged_list(cast("list[object]", value), depth, escaping)
    return _tagged_other(value, type(value))


def _tagged_list(items: list[object], depth: int, escaping: bool) -> list[object]:  # noqa: FBT001 - hot
    _refuse_too_deep(depth)
    done: list[object] = []
    try:
        for item in items:
            done.append(_tagged(item, depth + 1, escaping))  # noqa: PERF401 - its length names the culprit
    except _Refused as refused:
        refused.steps.append(f"[{len(done)}]")
        raise
    return done


def _tagged_dict(items: dict[object, object], depth: int, escaping: bool) -> dict[str, object]:  # noqa: FBT001 - hot
    _refuse_too_deep(depth)
    done: dict[str, object] = {}
    key: object = ""
    try:
        for key, item in items.items():
            done[_tagged_key(key, escaping)] = _tagged(item, depth + 1, escaping)
    except _Refused as refused:
        refused.steps.append(_shown(key, len(done)))
        raise
    return done


def _refuse_too_deep(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _Refused(f"it is nested deeper than {MAX_DEPTH} levels, or contains itself")


def _tagged_key(key: object, escaping: bool) -> str:  # noqa: FBT001 - hot
    if type(key) is not str:
        raise _Refused(f"a key must be a plain str, not {type(key).__name__}")
    if escaping and has_surrogates(key):
        return f"$esc:{escape(key)}"
    return f"${key}" if key[:1] == "$" else key


def _tagged_other(value: object, kind: type) -> object:
    if kind is float:
        number = cast("float", value)
        return number if math.isfinite(number) else {"$float": _float_name(number)}
    if kind is bytes:
        return {"$b64": b64encode(cast("bytes", value)).decode()}
    for base, becomes in _BASES:
        if isinstance(value, base):
            raise _Refused(f"{kind.__name__} would come back as {becomes}: pass a plain {becomes}")
    raise _Refused(f"{kind.__name__} is none of None, bool, str, int, float, bytes, list and dict")


_BASES: Final = (
    (str, "str"),
    (int, "int"),
    (float, "float"),
    (bytes, "bytes"),
    (list, "list"),
    (tuple, "list"),
    (dict, "dict"),
)


def _shown(key: object, index: int) -> str:
    """A step of a path; a key that may be content is named by its index alone."""
    return f".{key}" if type(key) is str and _SHOWN_KEY.fullmatch(key) else f"<key {index}>"


def _untagged(value: object) -> object:
    if type(value) is list:
        return [_untagged(item) for item in cast("list[object]", value)]
    if type(value) is not dict:
        return value
    items = cast("dict[str, object]", value)
    if len(items) == 1:
        ((key, content),) = items.items()
        if key in _TAGS:
            return _read_tag(key, content)
    return {_untagged_key(key): _untagged(item) for key, item in items.items()}


def _untagged_key(key: str) -> str:
    if key[:1] != "$":
        return key
    if key[:2] == "$$":
        return key[1:]
    if key[:5] == "$esc:":
        return unescape(key[5:])
    raise ValueUnreadable("a stored value has a tag that this version does not know: upgrade session-actor to read it")


def _read_tag(tag: str, content: object) -> object:
    try:
        if type(content) is str:
            return _TAGS[tag](content)
    except (ValueError, struct.error):
        pass
    raise ValueUnreadable(f"a stored value has the tag {tag} with an impossible content")


def _float_name(value: float) -> str:
    if not math.isnan(value):
        return "inf" if value > 0 else "-inf"
    bits = struct.pack(">d", value)
    return "nan" if bits == struct.pack(">d", math.nan) else f"nan:{bits.hex()}"


def _float_named(name: str) -> float:
    if name[:4] == "nan:":
        return float(struct.unpack(">d", bytes.fromhex(name[4:]))[0])
    if name in {"nan", "inf", "-inf"}:
        return float(name)
    raise ValueError(name)


_TAGS: Final[dict[str, Callable[[str], object]]] = {
    "$esc": unescape,
    "$b64": lambda text: b64decode(text, validate=True),
    "$float": _float_named,
    "$int": lambda text: int(text, 16),
}


# --- single texts ----------------------------------------------------------------------------------------------------


def encode_text(text: str) -> bytes:
    """JSON of any str."""
    try:
        return orjson.dumps(text)
    except orjson.JSONEncodeError:
        return orjson.dumps({"$esc": escape(text)})


def decode_text(value: str | dict[str, str]) -> str:
    """The str in what JSON made of `encode_text`. Raises `ValueUnreadable`."""
    if isinstance(value, str):
        return value
    if value.keys() != {"$esc"}:
        raise ValueUnreadable("a stored text is neither a string nor an escaped one")
    return unescape(value["$esc"])


# --- Structs ---------------------------------------------------------------------------------------------------------


def encode_record_data(data: object) -> bytes:
    """JSON on one line of a record's data.

    `data`: bytes or msgspec.Raw that hold JSON (as `dumps` makes it), or a Struct of str, int, bool, None, tuples,
    Structs and msgspec.Raw. Raises `ValueNotStorable` for anything else.
    """
    try:
        if type(type(data)) is _STRUCT_TYPE:  # isinstance would take as long as the encoding
            text = _encode(data)
        elif isinstance(data, (bytes, msgspec.Raw)):
            text = bytes(data)
        elif isinstance(data, msgspec.Struct):
            text = _encode(data)
        else:
            raise ValueNotStorable("$", f"a record's data is a Struct or JSON as bytes, not {type(data).__name__}")
    except UnicodeEncodeError:
        text = _encode(_marked(data))
    except (TypeError, RecursionError) as error:
        raise ValueNotStorable("$", f"{type(data).__name__} has fields that JSON does not carry") from error
    return text.replace(b"\n", b" ") if _LF in text else text  # a line end can only stand between JSON's tokens


_LF: Final = 10  # as a number it is found ten times quicker
_STRUCT_TYPE: Final = type(msgspec.Struct)
_encode: Final = msgspec.json.Encoder().encode


def decode_typed(data: bytes | msgspec.Raw, kind: type[_T]) -> _T:
    """Decode what `encode_record_data` made into the Struct type `kind`. Raises `ValueUnreadable`."""
    try:
        return cast("_T", _decoder(cast("Hashable", kind)).decode(data))
    except msgspec.ValidationError:
        pass  # perhaps a str that had to be tagged
    except (msgspec.DecodeError, RecursionError):
        raise _mismatch(kind) from None
    try:
        return msgspec.convert(_unmarked(orjson.loads(bytes(data))), kind)
    except (orjson.JSONDecodeError, msgspec.ValidationError, RecursionError, UnicodeEncodeError):
        raise _mismatch(kind) from None  # UnicodeEncodeError: what msgspec would say of half a surrogate pair


@lru_cache(maxsize=256)
def _decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]:
    return msgspec.json.Decoder(kind)


def _mismatch(kind: type[Any]) -> ValueUnreadable:
    return ValueUnreadable(f"stored data does not have the form of {kind.__name__}")


def _marked(value: object) -> object:
    """`value` with each str that has lone surrogates, and each Raw, replaced by a Raw of its tag."""
    if isinstance(value, str):
        return msgspec.Raw(encode_text(value)) if has_surrogates(value) else value
    if isinstance(value, msgspec.Raw):
        return msgspec.Raw(orjson.dumps({"$raw": bytes(value).decode()}))
    if isinstance(value, (tuple, list)):
        return [_marked(item) for item in cast("tuple[object, ...]", value)]
    return _marked_struct(value) if isinstance(value, msgspec.Struct) else value


def _marked_struct(value: msgspec.Struct) -> msgspec.Struct:
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    defaults = {id(default) for default in value.__struct_defaults__}  # left alone, so that they are left out
    return msgspec.structs.replace(
        value, **{name: _marked(item) for name, item in fields.items() if id(item) not in defaults}
    )


def _unmarked(value: object) -> object:
    if type(value) is list:
        return [_unmarked(item) for item in cast("list[object]", value)]
    if type(value) is not dict:
        return value
    items = cast("dict[str, object]", value)
    if len(items) == 1:
        ((key, content),) = items.items()
        if key in _MARKS and type(content) is str:
            return _MARKS[key](content)
    return {key: _unmarked(item) for key, item in items.items()}


_MARKS: Final[dict[str, Callable[[str], object]]] = {"$esc": unescape, "$raw": lambda text: msgspec.Raw(text.encode())}
