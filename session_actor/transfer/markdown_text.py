"""Text of a conversation in Markdown: it can make no HTML, no link, no image and no heading, and close no fence.

Prose keeps its emphasis and lists. Fenced code and code in a line are written anew, with more backticks than the text
has in a row, so that where they end is never the text's to say.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]{0,20})[ \t]*")
_TICKS: Final = re.compile(r"`+")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_ITEMS: Final = r"(?>(?:[ \t]*(?:[-+*]|\d{1,9}[.)])(?=[ \t]))*)"
_HEADING: Final = re.compile(rf"^(?:[ \t]*(?=-[ \t-]*$)|{_ITEMS}[ \t]*(?=[#=]|~~~|-+[ \t]*$))", re.MULTILINE)
"""What stands before one, at the beginning of a line and of what an item of a list begins with."""
_PROSE: Final = str.maketrans(
    {"\\": "\\\\", "&": "&amp;", "<": "&lt;", ">": "&gt;", "[": "\\[", "]": "\\]", "`": "\\`"}
)
_LINE_END: Final = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_UNSHOWN: Final = {
    **{code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"},
    127: "\u2421",
    **dict.fromkeys((*range(128, 160), *range(55296, 57344)), "�"),
    **{code: f"<U+{code:04X}>" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
}
"""Control characters, halves of surrogate pairs, and what turns the direction of a line around."""


def shown(text: str) -> str:
    """A text with line ends as they should be, and no character that does something to a terminal or a reader."""
    return _LINE_END.sub("\n", text).translate(_UNSHOWN)


def code(text: str) -> str:
    """A short text as code in a line."""
    flat = " ".join(shown(text).split()) or " "
    ticks = "`" * (_longest(flat) + 1)
    return f"{ticks} {flat} {ticks}" if flat[0] == "`" or flat[-1] == "`" else f"{ticks}{flat}{ticks}"


def fenced(text: str, language: str = "") -> str:
    """A text as it is, in a fence."""
    whole = shown(text)
    ticks = "`" * max(3, _longest(whole) + 1)
    return f"{ticks}{language}\n{whole}\n{ticks}"


def folded(title: str, body: str) -> str:
    """Something long that opens with a click. `title`: our own words, or `plain` ones."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def plain(text: str) -> str:
    """A short text inside our own HTML."""
    flat = " ".join(shown(text).split())
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def prose(text: str) -> str:
    """What somebody said: its fences as fences, the rest as Markdown that can do no harm."""
    parts: list[str] = []
    for said, language in _split(shown(text)):
        if language is not None:
            parts.append(fenced(said, language))
        elif said.strip():
            parts.append(_harmless(said.strip("\n")))
    return "\n\n".join(parts)


def _split(text: str) -> Iterator[tuple[str, str | None]]:
    """Prose (None) and fenced code (its language) by turns."""
    lines: list[str] = []
    fence, language = "", ""
    for line in text.split("\n"):
        mark = _FENCE.fullmatch(line)
        if not fence and mark is not None:
            yield "\n".join(lines), None
            lines, fence, language = [], mark[1], mark[2]
        elif fence and mark is not None and mark[1].startswith(fence) and not mark[2]:
            yield "\n".join(lines), language
            lines, fence = [], ""
        else:
            lines.append(line)
    yield "\n".join(lines), language if fence else None


def _harmless(text: str) -> str:
    ticks = "`" * (_longest(text) + 1)
    done: list[str] = []
    for line in text.split("\n"):
        at, made = 0, ""
        for found in _CODE.finditer(line):
            made += line[at : found.start()].translate(_PROSE) + f"{ticks} {found[2]} {ticks}"
            at = found.end()
        done.append(made + line[at:].translate(_PROSE))
    return _HEADING.sub(r"\g<0>\\", "\n".join(done))


def _longest(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)
