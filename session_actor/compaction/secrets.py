"""What looks like a secret: it is never kept, and never put where a model or a log would show it."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "[secret]"
"""What stands in the place of a secret."""

_KNOWN: Final = (
    r"\bsk-[A-Za-z0-9_-]{16,}+",
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}+",
    r"\bgh[opsur]_[A-Za-z0-9]{20,}+",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}+",
    r"\bglpat-[A-Za-z0-9_-]{16,}+",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}+",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\bya29\.[A-Za-z0-9_-]{20,}+",
    r"\bhf_[A-Za-z0-9]{20,}+",
    r"\bnpm_[A-Za-z0-9]{30,}+",
    r"\bpypi-[A-Za-z0-9_-]{40,}+",
    r"\bSG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+",
    r"\beyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]++)?",
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[A-Za-z0-9+/= \\n]{16,}+(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?)?",
    r"(?<=://)[^\s/:@\[\]]{0,200}:(?!\[secret\])[^\s/@]{1,200}(?=@)",
    r"(?i:\bbearer) [A-Za-z0-9._~+/=-]{16,}+",
)
_NAMED: Final = re.compile(
    r"(?i:(?:api[_-]?key|secret|token|passw(?:or)?d|pwd|credentials?)[\"']?[ ]?[:=][ ]?[\"']?)"
    r"([^\s\"'\[\]<>(){},;$]{6,200}+)"
)
_HINTS: Final = (
    *("sk-", "k_live_", "k_test_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox", "AKIA"),
    *("ASIA", "AIza", "ya29.", "hf_", "npm_", "pypi-", "SG.", "eyJ", "PRIVATE KEY", "://"),
)
"""Most texts hold none of these, and no word of those below: no pattern needs to be tried then."""
_WORDS: Final = ("key", "secret", "token", "passw", "pwd", "credential", "bearer")
_SHAPED: Final = re.compile("|".join(_KNOWN))
_LONG: Final = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{32,512}+(?![A-Za-z0-9+/_=-])")
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
    lower = text.lower()
    announced = [word for word in _WORDS if word in lower]
    if "bearer" in announced or [hint for hint in _HINTS if hint in text]:
        text = _SHAPED.sub(HIDDEN, text)
    return _NAMED.sub(_hide_value, text) if announced else text


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
