"""Texts as they are compared, and the sentences of a text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from unicodedata import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")

_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})(.*)\Z", re.DOTALL)
_MARK: Final = re.compile(r"(?:[-*+•]|[0-9]{1,3}[.)]|>+|#{1,6})[ \t]+")
_PLAIN: Final = re.compile(r"[\w ,.'’!?:;\"-]+")  # noqa: RUF001 - as it is typed
_END: Final = re.compile(r"(?<![.!?…])[.!?…]++[\"'’”)\]*_]*+(?=\s|\Z)|[。！？]++")  # noqa: RUF001 - ends of sentences
_SHORT: Final = frozenset({"e.g", "i.e", "etc", "vs", "cf", "mr", "mrs", "ms", "dr", "st", "approx", "resp"})
_BEFORE_NUMBERS: Final = frozenset({"no", "max", "min"})
_WRAPPED_CHARACTERS: Final = 40
_MARKS: Final = re.compile(r"[^\w\s\x00-\x7f]{64}")
"""A stretch that may be of marks on one letter; it holds neither letters nor white space."""
_LAST_WORD: Final = 12
_APOSTROPHES: Final = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u00b4\u2032\uff07", "'"))


def folded(text: str) -> str:
    """The text with each stretch of white space as one space, and none around it."""
    return " ".join(text.split())


def key(text: str) -> str:
    """What two texts share that count as the same: NFC, white space folded, else exact."""
    # Sorting thousands of marks on one letter takes quadratic time; no language has such letters.
    if text.isascii() or many_marks(text):
        return folded(text)
    return folded(normalize("NFC", text))


def many_marks(text: str) -> bool:
    """Whether so many marks may stand on one letter that its normal form would take long to find."""
    return _MARKS.search(text) is not None


def apostrophes(text: str) -> str:
    """The text with plain apostrophes, as long as it was."""
    return text if text.isascii() else text.translate(_APOSTROPHES)


def clipped(text: str, characters: int) -> str:
    """The beginning of a folded text, up to a space where there is one; `…` tells that more followed."""
    short = folded(text[: 4 * characters])
    if len(short) <= characters:
        return short
    cut = short.rfind(" ", characters // 2, characters)
    return f"{short[: cut if cut > 0 else characters]}…"


def fenced(lines: list[str]) -> list[bool]:
    """For each line whether it is part of a code fence, the lines that open and close it included (CommonMark, 4.5)."""
    found: list[bool] = []
    closing = ""
    for line in lines:
        fence = _FENCE.match(line) if "```" in line or "~~~" in line else None
        found.append(bool(closing) or fence is not None)
        if fence is None:
            continue
        if not closing:
            closing = fence[1]
        elif fence[1].startswith(closing) and not fence[2].strip():
            closing = ""
    return found


def lines_of(text: str) -> list[str]:
    """Its lines, whichever of the three usual ways they end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, folded, without the marks of lists, quotes and headings.

    Lines that a narrow margin wrapped are one sentence. Of code fences only lines of plain words count.
    """
    for paragraph in _paragraphs(text):
        start = 0
        for end in _END.finditer(paragraph):
            if _ends(paragraph, end):
                yield paragraph[start : end.end()].strip()
                start = end.end()
        rest = paragraph[start:].strip()
        if rest:
            yield rest


def _paragraphs(text: str) -> Iterator[str]:
    """Lines, with what was wrapped put together."""
    parts: list[str] = []
    lines = lines_of(text)
    for line, is_code in zip(lines, fenced(lines), strict=True):
        said = folded(line)
        if is_code and not (_PLAIN.fullmatch(said) and said.count(" ") > 1):
            said = ""
        if parts and not _goes_on(parts[-1], said):
            yield " ".join(parts)
            parts = []
        said = _MARK.sub("", said, count=1) if _MARK.match(said) else said
        if said:
            parts.append(said)
    if parts:
        yield " ".join(parts)


def _goes_on(line: str, after: str) -> bool:
    return after[:1].islower() and len(line) >= _WRAPPED_CHARACTERS and line[-1] not in ".!?:;"


def _ends(paragraph: str, end: re.Match[str]) -> bool:
    """Whether a sentence ends here, not only an abbreviation."""
    after = paragraph[end.end() : end.end() + 2].lstrip()
    if after[:1].islower() and end[0][0] in ".…":
        return False
    before = paragraph[max(0, end.start() - _LAST_WORD) : end.start()]
    word = before.rpartition(" ")[2].lstrip("(\"'").casefold()
    return not after or (word not in _SHORT and not (word in _BEFORE_NUMBERS and after[0].isdigit()))
