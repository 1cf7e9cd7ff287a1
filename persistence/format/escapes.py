r"""Lone surrogates in text: JSON cannot carry them, so a str that has some is stored escaped.

Each surrogate is written as \uXXXX (four lowercase digits), each backslash doubled, and everything else as it is. All
functions run at the speed of the codecs: a text of nothing but surrogates takes about as long as any other.
"""

from __future__ import annotations

import re
from typing import Final

from session_actor.persistence.errors import ValueUnreadable

_ESCAPED_BYTES: Final = 7  # the backslash is doubled once more in JSON
_ESCAPED: Final = re.compile(r"[^\\]*+(?:(?:(?:\\ud[89a-f][0-9a-f][0-9a-f])++|(?:\\\\)++)[^\\]*+)*+")


def has_surrogates(text: str) -> bool:
    """Whether JSON cannot carry `text` as it is."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def escape(text: str) -> str:
    """`text` without lone surrogates; `unescape` makes it again."""
    return text.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def unescape(escaped: str) -> str:
    """The text that `escape` was given. Raises `ValueUnreadable` for what it cannot have made."""
    if not _ESCAPED.fullmatch(escaped):
        raise ValueUnreadable("a stored text has a backslash that escapes nothing")
    return escaped.encode("ascii", "backslashreplace").decode("unicode_escape")  # joins no pair of surrogates


def least_bytes(text: str) -> int:
    """How many bytes `text` takes in a record at least, without encoding it there: control characters take more."""
    if text.isascii():
        return len(text)
    carried = len(text.encode("utf-8", "ignore"))
    surrogates = (len(text.encode("utf-8", "surrogatepass")) - carried) // 3
    return carried + surrogates * _ESCAPED_BYTES
