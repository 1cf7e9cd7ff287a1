"""Cheap features of a text whose weighted sum is close to the number of its tokens.

A text is looked at as a row of characters of a few classes (letter, upper case, digit, space, punctuation). Each class
becomes one big integer with a bit a character: its UTF-8 bytes without the continuation bytes, translated to "0" and
"1" and read in base 2. Runs, their lengths and what stands beside what are then a shift and an `and` of a whole text
at once, and `int.bit_count` counts them. Reading a class costs about two microseconds per kilobyte, each feature of it
about a tenth. What is not ASCII is counted by script besides: by pages of 256 code points, the high bytes of UTF-16.
"""

from __future__ import annotations

from string import ascii_letters, ascii_uppercase, digits, punctuation
from typing import Final

ASCII_NAMES: Final = (
    # the first letters of words by what stands before, the further letters by their place in the word
    "word after space", "word after mark", "word after digit", "word elsewhere",
    "letter 2", "letter 3-5", "letter 6-15", "letter 16+",
    # upper case: after lower, first in a word, by place in a run
    "upper after lower", "upper first", "upper 2", "upper 3-5", "upper 6+",
    # the first digits of numbers by what stands before, the further digits by their place
    "number after letter", "number after space", "number after mark", "number elsewhere",
    "digit 2-3", "digit 4-5", "digit 6+",
    # white space
    "space 1", "space 2-3", "space 4-15", "space 16+", "space after line",
    "line after mark", "line elsewhere", "line 2+", "tab", "control",
    # punctuation by what stands before and by its place in a run
    "mark after space", "mark elsewhere", "mark 2", "mark 3", "mark 4-7", "mark 8+", "same mark 8+",
    # letters that stand in rare words, foreign words and random strings; words beyond three for each "th": few in
    # English, where every third word has one, and all in other languages
    "jkqvxz", "z", "word not for th",
)  # fmt: skip
"""What is counted in every text, in order."""

FOREIGN_NAMES: Final = (
    "foreign run", "foreign letter after ascii", "ascii letter after foreign",
    "foreign letter 1", "foreign letter 2", "foreign letter 3", "foreign letter 4-5", "foreign letter 6-7",
    "foreign letter 8+", "wide 1", "wide 2", "wide 3+",
    "foreign byte", "latin symbol", "latin letter", "cyrillic, not russian", "arabic script, not arabic",
)  # fmt: skip
"""What is counted besides in a text that is not all ASCII; the scripts of `SCRIPTS` follow."""

SCRIPTS: Final = (
    ("typographic", 0x20, 0x20),
    ("cyrillic", 0x04, 0x04),
    ("kana", 0x30, 0x30),
    ("ideographs", 0x4E, 0x9F),
    ("fullwidth", 0xFF, 0xFF),
    ("arabic", 0x06, 0x06),
    ("hangul", 0xAC, 0xD7),
    ("beyond the basic plane", 0xD8, 0xDB),
    ("greek", 0x03, 0x03),
    ("vietnamese", 0x1E, 0x1E),
    ("devanagari, bengali", 0x09, 0x09),
    ("boxes, dingbats", 0x25, 0x2F),
    ("arrows, mathematics", 0x21, 0x24),
    ("gurmukhi, gujarati", 0x0A, 0x0A),
    ("oriya, tamil", 0x0B, 0x0B),
    ("telugu, kannada", 0x0C, 0x0C),
    ("armenian, hebrew", 0x05, 0x05),
    ("malayalam to georgian", 0x0D, 0x10),
    ("presentation forms", 0xF9, 0xFE),
    ("syriac to samaritan", 0x07, 0x08),
    ("jamo to phonetic", 0x11, 0x1D),
    ("old greek", 0x1F, 0x1F),
    ("enclosed to rare ideographs", 0x31, 0x4D),
    ("yi to cham", 0xA0, 0xAB),
    ("private", 0xE0, 0xF8),
)
"""Groups of pages of 256 code points: name, first page, last page. The common ones come first."""

_SCRIPT_NAMES: Final = tuple(name for name, _, _ in SCRIPTS)
_CYRILLIC: Final = _SCRIPT_NAMES.index("cyrillic")
_ARABIC: Final = _SCRIPT_NAMES.index("arabic")
_LATIN: Final = len(SCRIPTS)  # what is of no script: pages 1 and 2, Latin letters

NAMES: Final = (*ASCII_NAMES, *FOREIGN_NAMES, *_SCRIPT_NAMES)

_CONTINUATION: Final = bytes(range(0x80, 0xC0))


def _table(members: bytes) -> bytes:
    """Return the translation of these bytes to "1" and of all others to "0"."""
    return bytes.maketrans(bytes(range(256)), bytes(b"01"[byte in members] for byte in range(256)))


# The lead bytes C3 to E1: Latin, Greek, Cyrillic, Semitic and Indic scripts, Vietnamese; they are written in words.
_LETTER: Final = _table(ascii_letters.encode() + bytes(range(0xC3, 0xE2)))
_UPPER: Final = _table(ascii_uppercase.encode())
_DIGIT: Final = _table(digits.encode())
_SPACE: Final = _table(b" ")
_MARK: Final = _table(punctuation.encode())
_FOREIGN: Final = _table(bytes(range(0x80, 0x100)))
_ZERO: Final = _table(b"\0")
_NO_SCRIPT: Final = bytes((0x00, *range(0xDC, 0xE0)))  # Latin-1, and the second halves beyond the basic plane
_PAGES: Final = bytes(
    next((index for index, (_, first, last) in enumerate(SCRIPTS) if first <= page <= last), _LATIN)
    for page in range(256)
)
_ASCII: Final = bytes(range(0x80))
# Vocabularies know the largest language of a script best. Ukrainian i, yi, ie and Serbian je; Persian yeh, keheh, gaf.
_NOT_RUSSIAN: Final = "\u0456\u0457\u0454\u0458"
_NOT_ARABIC: Final = "\u06cc\u06a9\u06af"
_RARE: Final = b"jkqvxzJKQVXZ"
_COMMON: Final = bytes(
    byte for byte in (*b"\n\r", *range(0x20, 0x7F), *range(0x80, 0x100)) if byte not in _RARE
)  # all but rare letters and control characters


def features(text: str) -> list[int]:
    """Return what is counted in a text, in the order of `NAMES`; only the first part of them when it is all ASCII.

    Args:
        text: any str that is not empty; a lone surrogate counts as a character of three bytes.
    """
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) == len(text):
        return _ascii(raw, int(raw.translate(_LETTER), 2), 0)
    stream = raw.translate(None, _CONTINUATION)
    letter, foreign = int(stream.translate(_LETTER), 2), int(stream.translate(_FOREIGN), 2)
    return [
        *_ascii(stream, letter, foreign),
        *_foreign(letter, foreign),
        len(raw) - len(stream),
        *_scripts(raw.translate(None, _ASCII)),
    ]


def _ascii(stream: bytes, letter: int, foreign: int) -> list[int]:
    """Count what `ASCII_NAMES` names. A bit's higher neighbour is the character before it."""
    upper, digit = int(stream.translate(_UPPER), 2), int(stream.translate(_DIGIT), 2)
    space, mark = int(stream.translate(_SPACE), 2), int(stream.translate(_MARK), 2)
    line = ((1 << len(stream)) - 1) ^ (letter | digit | space | mark | foreign)
    odd = stream.translate(None, _COMMON)
    controls = odd.translate(None, _RARE)
    after_letter, after_digit, after_space, after_mark = letter >> 1, digit >> 1, space >> 1, mark >> 1
    words = _words(letter, after_space, after_mark, after_digit)
    return [
        *words,
        *_uppers(upper, after_letter, letter & ~after_letter),
        *_numbers(digit, after_letter, after_space, after_mark),
        *_spaces(space, line),
        *_lines(line, after_mark),
        controls.count(b"\t"),
        len(controls) - controls.count(b"\t"),
        *_marks(mark, after_space, stream),
        len(odd) - len(controls),
        odd.count(b"z"),
        max(0, sum(words[:4]) - 3 * stream.count(b"th")),
    ]


def _words(letter: int, after_space: int, after_mark: int, after_digit: int) -> tuple[int, ...]:
    after_letter = letter >> 1
    first = letter & ~after_letter
    from_2 = letter & after_letter
    from_3 = from_2 & (letter >> 2)
    from_6 = from_3 & (from_3 >> 3)
    from_16 = from_6 & (from_6 >> 5)
    from_16 &= from_16 >> 5
    words, spaced = first.bit_count(), (first & after_space).bit_count()
    marked, counted = (first & after_mark).bit_count(), (first & after_digit).bit_count()
    at_2, at_3, at_6, at_16 = from_2.bit_count(), from_3.bit_count(), from_6.bit_count(), from_16.bit_count()
    elsewhere = words - spaced - marked - counted
    return spaced, marked, counted, elsewhere, at_2 - at_3, at_3 - at_6, at_6 - at_16, at_16


def _uppers(upper: int, after_letter: int, first: int) -> tuple[int, ...]:
    after_upper = upper >> 1
    from_2 = upper & after_upper
    from_3 = from_2 & (upper >> 2)
    at_2, at_3, at_6 = from_2.bit_count(), from_3.bit_count(), (from_3 & (from_3 >> 3)).bit_count()
    after_lower = (upper & after_letter & ~after_upper).bit_count()
    return after_lower, (upper & first).bit_count(), at_2 - at_3, at_3 - at_6, at_6


def _numbers(digit: int, after_letter: int, after_space: int, after_mark: int) -> tuple[int, ...]:
    from_2 = digit & (digit >> 1)
    from_4 = from_2 & (from_2 >> 2)
    at_2, at_4, at_6 = from_2.bit_count(), from_4.bit_count(), (from_4 & (from_4 >> 2)).bit_count()
    lettered, spaced = (digit & after_letter).bit_count(), (digit & after_space).bit_count()
    marked = (digit & after_mark).bit_count()
    elsewhere = digit.bit_count() - at_2 - lettered - spaced - marked
    return lettered, spaced, marked, elsewhere, at_2 - at_4, at_4 - at_6, at_6


def _spaces(space: int, line: int) -> tuple[int, ...]:
    from_2 = space & (space >> 1)
    from_4 = from_2 & (from_2 >> 2)
    from_8 = from_4 & (from_4 >> 4)
    at_2, at_4, at_16 = from_2.bit_count(), from_4.bit_count(), (from_8 & (from_8 >> 8)).bit_count()
    return space.bit_count() - at_2, at_2 - at_4, at_4 - at_16, at_16, (space & (line >> 1)).bit_count()


def _lines(line: int, after_mark: int) -> tuple[int, ...]:
    at_2, marked = (line & (line >> 1)).bit_count(), (line & after_mark).bit_count()
    return marked, line.bit_count() - at_2 - marked, at_2


def _marks(mark: int, after_space: int, stream: bytes) -> tuple[int, ...]:
    from_2 = mark & (mark >> 1)
    from_4 = from_2 & (from_2 >> 2)
    from_8 = from_4 & (from_4 >> 4)
    at_2, at_3 = from_2.bit_count(), (from_2 & (mark >> 2)).bit_count()
    at_4, at_8 = from_4.bit_count(), from_8.bit_count()
    spaced = (mark & after_space).bit_count()
    same = (from_8 & _repeated(stream)).bit_count() if at_8 else 0
    return spaced, mark.bit_count() - at_2 - spaced, at_2 - at_3, at_3 - at_4, at_4 - at_8, at_8 - same, same


def _repeated(stream: bytes) -> int:
    """Return the characters that are the same as the one before."""
    codes = int.from_bytes(stream, "big")
    return int((codes ^ (codes >> 8)).to_bytes(len(stream), "big").translate(_ZERO), 2)


def _foreign(letter: int, foreign: int) -> tuple[int, ...]:
    """Count characters that are not ASCII by their place in a run of such, and their neighbours that are ASCII."""
    script, wide = letter & foreign, foreign & ~letter
    latin = letter ^ script
    from_2 = script & (script >> 1)
    from_4 = from_2 & (from_2 >> 2)
    wide_2 = wide & (wide >> 1)
    at_2, at_3, at_4 = from_2.bit_count(), (from_2 & (script >> 2)).bit_count(), from_4.bit_count()
    at_6, at_8 = (from_4 & (from_2 >> 4)).bit_count(), (from_4 & (from_4 >> 4)).bit_count()
    wide_at_2, wide_at_3 = wide_2.bit_count(), (wide_2 & (wide >> 2)).bit_count()
    places = (script.bit_count() - at_2, at_2 - at_3, at_3 - at_4, at_4 - at_6, at_6 - at_8, at_8)
    return (
        (foreign & ~(foreign >> 1)).bit_count(),
        (script & (latin >> 1)).bit_count(),
        (latin & (script >> 1)).bit_count(),
        *places,
        wide.bit_count() - wide_at_2,
        wide_at_2 - wide_at_3,
        wide_at_3,
    )


def _scripts(raw: bytes) -> list[int]:
    """Count, in the UTF-8 of a text without its ASCII, Latin letters, those of some languages, and scripts."""
    text = raw.decode("utf-8", "surrogatepass")
    pages = text.encode("utf-16-le", "surrogatepass")[1::2].translate(_PAGES, _NO_SCRIPT)
    latin = pages.count(_LATIN)
    scripts = [0] * _LATIN
    left = len(pages) - latin
    for script in range(_LATIN):
        if not left:
            break
        scripts[script] = found = pages.count(script)
        left -= found
    other_cyrillic = sum(map(text.count, _NOT_RUSSIAN)) if scripts[_CYRILLIC] else 0
    other_arabic = sum(map(text.count, _NOT_ARABIC)) if scripts[_ARABIC] else 0
    return [raw.count(b"\xc2"), raw.count(b"\xc3") + latin, other_cyrillic, other_arabic, *scripts]
