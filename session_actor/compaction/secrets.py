"""What looks like a secret: it is never kept, and never put where a model or a log would show it."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "[secret]"
"""What stands in the place of a secret."""

_SHAPES: Final = (
    (("sk-",), r"\bsk-[A-Za-z0-9_-]{16,}+"),
    (("k_live_", "k_test_"), r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}+"),
    (("gho_", "ghp_", "ghr_", "ghs_", "ghu_"), r"\bgh[oprsu]_[A-Za-z0-9]{20,}+"),
    (("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{20,}+"),
    (("glpat-",), r"\bglpat-[A-Za-z0-9_-]{16,}+"),
    (("xox",), r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}+"),
    (("AKIA", "ASIA"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    (("AIza",), r"\bAIza[A-Za-z0-9_-]{35}"),
    (("ya29.",), r"\bya29\.[A-Za-z0-9_-]{20,}+"),
    (("hf_",), r"\bhf_[A-Za-z0-9]{20,}+"),
    (("npm_",), r"\bnpm_[A-Za-z0-9]{30,}+"),
    (("pypi-",), r"\bpypi-[A-Za-z0-9_-]{40,}+"),
    (("SG.",), r"\bSG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    (("eyJ",), r"\beyJ[A-Za-z0-9_-]{8,4096}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]++)?"),
    (
        ("PRIVATE KEY",),
        (
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
            r"(?:[A-Za-z0-9+/= \\n]{16,}+(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?)?"
        ),
    ),
    (("://",), r"(?<=://)[^\s/:@\[\]]{0,200}:(?!\[secret\])[^\s/@]{1,200}(?=@)"),
    (("earer ", "EARER "), r"(?i:\bbearer) [A-Za-z0-9._~+/=-]{16,}+"),
)
"""What makes it worth a try, and how secrets of known services and kinds look."""
_KNOWN: Final = tuple((hints, re.compile(shape)) for hints, shape in _SHAPES)
_NAMED: Final = re.compile(
    r"(?i:(?:api[_-]?key|secret|token|passw(?:or)?d|pwd|credentials?)[\"']?[ ]?[:=][ ]?[\"']?)"
    r"([^\s\"'\[\]<>(){},;$]{6,200}+)"
)
_WORDS: Final = ("key", "secret", "token", "passw", "pwd", "credential")
"""Without one of them no value is announced as a secret."""
_LONG: Final = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{32,4096}+(?![A-Za-z0-9+/_=-])")
_HEX: Final = re.compile(r"[0-9a-fA-F-]+")
_CHANGE: Final = re.compile(r"(?:[0-9](?=[A-Za-z])|[a-z](?=[A-Z0-9])|[A-Z](?=[0-9]))")
_WORD: Final = re.compile(r"(?i)api[_-]?key|secret|token|passw|pwd|credential|bearer")
_SHORTEST, _LEAST_LONG, _ROUNDS = 8, 32, 16
_NEEDED_DIGITS, _NEEDED_CHANGES, _SURE_CHARACTERS = 4, 8, 20


def has_secret(text: str) -> bool:
    """Whether anything in it looks like a secret."""
    return len(text) >= _SHORTEST and _once(text) != text


def redacted(text: str) -> str:
    """The text with `[secret]` in place of what looks like one. Doing it again changes nothing."""
    for _ in range(_ROUNDS):
        if not has_secret(text):
            return text
        text = _once(text)
    return HIDDEN  # secrets without end, one behind the other


def _once(text: str) -> str:
    if len(text) >= _LEAST_LONG:
        text = _LONG.sub(_hide_long, text)
    for hints, shape in _KNOWN:
        if [hint for hint in hints if hint in text]:
            text = shape.sub(HIDDEN, text)
    lower = text.lower()
    return _NAMED.sub(_hide_value, text) if [word for word in _WORDS if word in lower] else text


def names_secret(word: str) -> bool:
    """Whether a word announces that a secret follows, such as `api_key=`."""
    return _WORD.search(word) is not None


def _hide_value(found: re.Match[str]) -> str:
    value = found[1]
    digits = any(character.isdigit() for character in value)
    letters = any(character.isalpha() for character in value)
    if (digits and (letters or len(value) >= 8)) or len(value) >= _SURE_CHARACTERS:  # noqa: PLR2004 - as passwords are
        return f"{found[0][: found.start(1) - found.start()]}{HIDDEN}"
    return found[0]


def _hide_long(found: re.Match[str]) -> str:
    text = found[0]
    if _HEX.fullmatch(text) or text.count("/") > len(text) // 12:
        return text
    upper, lower = any(map(str.isupper, text)), any(map(str.islower, text))
    digits = sum(map(str.isdigit, text))
    changes = len(_CHANGE.findall(text))
    is_random = upper and lower and digits >= _NEEDED_DIGITS and changes >= max(_NEEDED_CHANGES, len(text) // 5)
    return HIDDEN if is_random else text
