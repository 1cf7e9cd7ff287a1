"""What hides in a text: characters that nobody sees, and letters and digits that only look like plain ones."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from .texts import many_marks

_JOINED: Final = "\u0590-\u1fff\u2190-\ud7ff\uf900-\ufdff\ufe10-\ufefe\U00010000-\U000dffff"
"""The scripts and signs that joiners belong to."""
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""The scripts that put no spaces between words, but marks where a line may end."""
_LEFTWARD: Final = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_IDEOGRAPHS: Final = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_COMMENT: Final = "<!--"
_HIDDEN: Final = re.compile(
    # directions turned by hand, tags, fillers, soft hyphens, invisible operators, notes between lines
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
    f"|(?<![{_JOINED}])[\u200c\u200d]"
    f"|(?<![{_UNSPACED}])\u200b"
    f"|(?<![{_LEFTWARD}])[\u061c\u200e\u200f](?![{_LEFTWARD}])"
    "|(?<![#*0-9\u00a9-\u2fff\u3030\u303d\u3297\u3299\U0001f000-\U0001ffff])[\ufe00-\ufe0f]"
    f"|(?<![{_IDEOGRAPHS}])[\U000e0100-\U000e01ef]"
)
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
_DIGIT: Final = re.compile(r"[^\D0-9]")
_ALIKE: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d\u0438\u043a\u043c\u0442\u0432\u043d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405"
    "\u03b1\u03bf\u03c1\u03c5\u03bd\u03b9\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u0131\u0261\u2018\u2019\u02bc\u00b4\u2032",
    "aeopcyxijsdhqwukmtbhABEKMHOPCTYXIJSaopuviABEZHIKMNOPTYXig'''''",
)
"""Letters of other scripts, and apostrophes, by the plain ones that they look like."""


def hidden_in(text: str) -> int:
    """How many characters and comments it has that nobody sees and that no script needs where they stand."""
    return text.count(_COMMENT) + (0 if text.isascii() else sum(1 for _ in _HIDDEN.finditer(text)))


def unstyled(text: str) -> str:
    """The text with plain digits and letters in the place of those of other widths, styles and scripts (NFKC)."""
    if text.isascii() or many_marks(text):
        return text
    return _DIGIT.sub(_plain_digit, unicodedata.normalize("NFKC", text))


def _plain_digit(found: re.Match[str]) -> str:
    return str(unicodedata.digit(found[0]))


def as_seen(text: str) -> str:
    """The text as it looks: unstyled, without what nobody sees, letters that look like plain ones as these."""
    if text.isascii():
        return text
    return unstyled(_UNSEEN.sub("", text)).translate(_ALIKE)
