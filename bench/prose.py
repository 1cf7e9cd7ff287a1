"""Texts as people and models write them, cut from the transcript that the package brings: code, lists, breaks."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import count, islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# No common factor with the sizes that are asked for: each passage begins elsewhere.
STRIDE = 7_919


def transcript_text() -> bytes:
    """Return all text of the sample transcript: what was asked, answered, and read by tools."""
    sample = files("session_actor") / "data" / "sample_transcript.jsonl"
    lines: list[Any] = [json.loads(line) for line in sample.read_bytes().splitlines()]
    blocks = [block for line in lines for block in line.get("message", {}).get("content", ())]
    return "\n\n".join(block["text"] for block in blocks if block["type"] == "text").encode(errors="replace")


def passages(size: int) -> Iterator[str]:
    """Yield texts of `size` bytes in UTF-8 (a few less when a character would be cut), without end."""
    text = transcript_text()
    text += text[:size]
    for number in count():
        start = number * STRIDE % (len(text) - size)
        yield text[start : start + size].decode("utf-8", "ignore")


def some_passages(count_: int, size: int) -> list[str]:
    """Return so many texts of `size` bytes."""
    return list(islice(passages(size), count_))
