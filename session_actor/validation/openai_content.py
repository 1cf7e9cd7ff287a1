"""What both of OpenAI's calls take as the content of a message: a text, or a list of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .problems import Problems

LONGEST_TEXT: Final = 10_485_760
""""string too long. Expected a string with maximum length 10485760" (github.com/VectorlyApp/bluebox/issues/31)."""
_DETAILS: Final = ("auto", "low", "high", "original")


def parts_in(problems: Problems, path: str, value: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The parts of a content, each with its place; of one that is a text there are none: it is checked here."""
    if isinstance(value, str):
        problems.text(path, value)
        long_text(problems, path, value)
        return
    for place, item in enumerate(problems.sequence(path, value) or ()):
        where = f"{path}[{place}]"
        part = problems.mapping(where, item)
        if part is not None:
            yield where, part


def text_part(problems: Problems, path: str, part: Mapping[str, Any], key: str) -> None:
    """Check the text of a part."""
    problems.required_text(path, part, key)
    long_text(problems, f"{path}.{key}", part.get(key))


def long_text(problems: Problems, path: str, value: object) -> None:
    """Check that a text is not too long."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        problems.add(path, "limit", f"must be at most {LONGEST_TEXT:,} characters long")


def detail(problems: Problems, path: str, image: Mapping[str, Any]) -> None:
    """Check how closely an image is to be looked at."""
    if image.get("detail") not in (None, *_DETAILS):
        problems.add(f"{path}.detail", "unknown", f"must be one of {', '.join(_DETAILS)}")
