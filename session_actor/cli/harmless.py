"""Text of strangers on an operator's terminal: nothing of it moves the cursor, changes a colour or turns a line around.

What does is shown as a sign of its own. Ids of sessions, which may be any text, get a form that can be typed.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from typing import Final

_LINE_END: Final = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_TURNING: Final = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""What turns the direction of a line around."""
_UNSEEN: Final = (0xAD, 0x200B, 0x2060, 0x2061, 0x2062, 0x2063, 0x2064, 0xFEFF, *range(0xE0000, 0xE0080))
"""What is there and not seen. Not the joiners, of which letters and emoji are made."""
_SIGNS: Final = {
    **{code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"},
    127: "\u2421",
    **{code: f"<U+{code:04X}>" for code in (*range(128, 160), *range(0xD800, 0xE000), *_TURNING, *_UNSEEN)},
}
_ODD_ASCII: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ODD: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff"
    r"\U000e0000-\U000e007f]"
)
"""Most texts have none of these, and are left as they are."""
_SPACES: Final = {9: " ", 10: " "}
_PLAIN_ID: Final = re.compile(r"[^\s\"'\\-][^\s\"'\\]*")


def block(text: str) -> str:
    """A text of several lines."""
    if not (_ODD_ASCII if text.isascii() else _ODD).search(text):
        return text
    return _LINE_END.sub("\n", text).translate(_SIGNS)


def one_line(text: str) -> str:
    """A text in one line."""
    return block(text).translate(_SPACES)


def brief(text: str, limit: int = 72) -> str:
    """The beginning of a text, in one line."""
    short = " ".join(block(text[: 4 * limit]).split())
    return short if len(short) <= limit and len(text) <= 4 * limit else short[: limit - 1] + "…"


def shown_id(session_id: str) -> str:
    """An id as it can be given to a command (in single quotes, in a shell): as it is, or as a JSON string."""
    harmless = _PLAIN_ID.fullmatch(session_id) and block(session_id) == session_id and _is_encodable(session_id)
    return session_id if harmless else json.dumps(session_id)


def _is_encodable(text: str) -> bool:
    """Whether stdout takes it, which may be ASCII."""
    if text.isascii():
        return True
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def given_id(text: str) -> str:
    """The id that somebody typed: what is in double quotes is a JSON string. Raises ValueError.

    Python makes lone surrogates of what the locale's encoding, ASCII for one, cannot read: it is UTF-8 all the same.
    """
    with contextlib.suppress(UnicodeError):
        text = text.encode("utf-8", "surrogateescape").decode("utf-8")
    if len(text) > 1 and text[0] == text[-1] == '"':
        found = json.loads(text)
        if not isinstance(found, str):
            raise ValueError("it is no JSON string")
        return found
    return text
