"""Texts that are no summaries: refusals, errors, placeholders, pieces of a transcript."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .texts import folded
from .verdict import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .headings import Layout

_NORMAL: Final = frozenset(
    (
        "end",
        "end_turn",
        "stop",
        "stop_sequence",
        "stopsequence",
        "complete",
        "completed",
        "finished",
        "eos",
        "eos_token",
    )
)
_UNSEEN: Final = re.compile(
    "[\\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]+"
)
_BROKEN: Final = re.compile("[\x00-\x08\x0e-\x1b\x7f\ud800-\udfff\ufffe\uffff\ufffd]")
_REFUSAL: Final = re.compile(
    r"(?i)(?:(?:unfortunately|regrettably),? )?(?:(?:i['\u2019]m|i am|we are) (?:really |very |so )?(?:sorry|unable"
    r"|not able)|(?:i|we) (?:can['\u2019]?t|cannot|can not|won['\u2019]?t|will not|must decline|have to decline)"
    r"|sorry,|i apologi[sz]e|apologies|as an? (?:ai|artificial intelligence|(?:large )?language model)"
    r"|i do(?:n['\u2019]t| not) feel comfortable)"
)
_ERROR: Final = re.compile(
    r"(?i)(?:\{\s*\"(?:error|type\"\s*:\s*\"error)\"|traceback \(most recent|(?:[a-z_.]{0,80}error|exception)\s*:"
    r"|error\b[^a-z]|http(?:/[0-9.]+)? ?[45][0-9]{2}|[45][0-9]{2} [a-z]|<!doctype html|<html"
    r"|internal server error|bad gateway|service unavailable|rate limit|too many requests"
    r"|upstream |overloaded|request timed out|api error|context length)"
)
_PLACEHOLDER: Final = re.compile(
    r"(?i)(?:\[[^\]]{0,80}\]|<[a-z][^>]{0,80}>|\{\{?[^}]{0,80}\}\}?|\(?(?:todo|tbd|tba|fixme|xxx+|placeholder"
    r"|lorem ipsum.{0,2000}|summary(?: goes)? here|your summary.{0,40}|insert .{0,80}|fill (?:this )?in.{0,40}"
    r"|to be (?:filled|done|added|determined).{0,40})\)?|(?:same )?as (?:above|before)|see above|unchanged|n/a"
    r"|[-.\u2026_*?]+)[.!:]?"
)
_ROLE: Final = re.compile(
    "(?im)(?:^|(?<=[\x0b\x0c\x85\u2028\u2029]))[ \t\xa0\xad\u2000-\u200f\u202a-\u202f\u205f-\u206f\u3000\ufeff]*+"
    r"(?:(?:[#]{1,6}[ \t]*+|\*{1,3}|_{1,2}|\[)?(?:human|user|assistant|system|tool|model|ai)(?:\]|\*{1,3}|_{1,2})?"
    r"[ \t]*+:(?:\*{1,3}|_{1,2})?(?:[ \t]|$)|#{1,6}[ \t]*+(?:human|user|assistant|system)[ \t]*+$"
    r"|</?(?:human|user|assistant|system|tool_result|transcript)>)"
)
_CHAT: Final = re.compile(
    r"<[|\uff5c][^|\uff5c<>\n]{1,40}[|\uff5c]>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>"
    r"|<(?:bos|eos|pad|unk)>|\[/?(?:AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
)
_TOOL: Final = re.compile(
    r"\"(?:tool_calls?|tool_use|tool_use_id|tool_call_id|function_call|tool_result|toolCallId|functionCall)\""
    r"|</?(?:tool_call|tool_calls|function_calls|function_call|invoke|tool_use|parameter)\b[^>\n]{0,200}>|<function="
    r"|\{\s{0,20}([\"'])(?:name|tool|function)\1\s{0,20}:\s{0,20}\1[^\"'\n]{1,100}\1\s{0,20},"
    r"\s{0,20}\1(?:arguments|parameters|input|args)\1\s{0,20}:"
    r"|\{\s{0,20}([\"'])(?:arguments|parameters|input|args)\2\s{0,20}:\s{0,20}\{[^{}]{0,400}\}\s{0,20},"
    r"\s{0,20}\2(?:name|tool|function)\2\s{0,20}:"
)
_START: Final = 400
_FEW_CHARACTERS: Final = 400


def is_normal(stop_reason: str | None) -> bool:
    """Whether the model stopped because it had said all; None: not known, which counts as normal."""
    return stop_reason is None or stop_reason.strip().casefold() in _NORMAL


def is_empty(text: str) -> bool:
    """Whether there is nothing to be seen."""
    return not _UNSEEN.sub("", text[:_FEW_CHARACTERS]) and not _UNSEEN.sub("", text)


def misworded(layout: Layout, own: str) -> Iterator[Reason]:
    """What shows that a text is no summary, as far as its beginning and its sections tell.

    `own`: its lines, those empty that only repeat a fact.
    """
    first = layout.sections[0].heading if layout.sections else len(layout.lines)
    opening, lines = _opening(layout.lines[:first]), own.split("\n")
    bodies = ["\n".join(lines[section.heading + 1 : section.end]) for section in layout.sections]
    openings = [opening, *(_opening(body.split("\n", 4)[:4]) for body in bodies[:1])]
    if any(_REFUSAL.match(text) for text in openings):
        yield Reason("refusal")
    if _ERROR.match(opening):
        yield Reason("error_text")
    held = sum(is_placeholder(body) for body in bodies)
    if held or (not layout.sections and is_placeholder(opening)):
        yield Reason("placeholder", count=max(1, held))


def is_placeholder(body: str) -> bool:
    """Whether a text only holds a place."""
    return len(body) <= _FEW_CHARACTERS * 8 and bool(_PLACEHOLDER.fullmatch(_bare(folded(body))))


def _opening(lines: list[str]) -> str:
    return _bare(folded("\n".join(lines)[:_START]))


def _bare(text: str) -> str:
    return text.lstrip("-*+>#`\"' ").rstrip("`\"' ")


def transcribed(own: str) -> Iterator[Reason]:
    """What a summary takes over from the machinery around a conversation."""
    for code, pattern in (("not_text", _BROKEN), ("role_marker", _ROLE), ("chat_token", _CHAT), ("tool_json", _TOOL)):
        count = sum(1 for _ in pattern.finditer(own))
        if count:
            yield Reason(code, count=count)
