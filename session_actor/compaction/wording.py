"""Texts that are no summaries: refusals, errors, placeholders, pieces of a transcript."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .disguises import as_seen, hidden_in
from .texts import folded
from .verdict import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .headings import Layout
    from .own import Own

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
_BROKEN: Final = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff\ufffd]")
_REFUSAL: Final = re.compile(
    r"(?i)(?:(?:unfortunately|regrettably),? )?(?:(?:i['\u2019]m|i am|we are) (?:really |very |so )?(?:sorry|unable"
    r"|not able)|(?:i|we) (?:can['\u2019]?t|cannot|can not|won['\u2019]?t|will not|must decline|have to decline)"
    r"|sorry,|i apologi[sz]e|apologies|as an? (?:ai|artificial intelligence|(?:large )?language model)"
    r"|i do(?:n['\u2019]t| not) feel comfortable)"
)
_DECLINED: Final = re.compile(
    r"(?i)\b(?:i|we)(?:'m| am|'re| are)? (?:really |very |so |afraid )?(?:sorry|unable to|not able to|can'?t|cannot"
    r"|can not|won'?t|will not|must decline|have to decline|do(?:n't| not) feel)\b[^.!?\n]{0,60}?"
    r"\b(?:help|assist|comply|fulfill?|summari[sz]e|summary|comfortable|this (?:request|conversation|content|task)"
    r"|with that|do (?:that|this))\b|\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b"
    r"|\b(?:no|a|the) summary (?:is not available|is unavailable|not available|(?:can|could)(?:not|n't| not) be)"
    r"|\bno summary (?:can|could|is|was|will)\b|\bcan(?:not|'t| not) be summari[sz]ed\b"
)
"""A refusal, wherever it stands."""
_FAILED: Final = re.compile(
    r"(?i)(?:\{\s*\"(?:error|type\"\s*:\s*\"error)\".*|traceback \(most recent.*|<!doctype html.*|<html.*"
    r"|(?:[a-z_.]{0,80}(?:error|exception))\s*:.{0,200}"
    r"|(?:http(?:/[0-9.]+)? ?)?[45][0-9]{2}:? [a-z][a-z ]{2,40}[.!]?"
    r"|(?:internal server error|bad gateway|service unavailable|rate limit(?:ed| exceeded)?|too many requests"
    r"|overloaded|request timed out|context length exceeded)[.!]?)"
)
"""A section that only tells of an error."""
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
_ROLES: Final = "human|user|assistant|developer|system"
_AROUND: Final = r"[>|*+\-_#\[(\"'`~\u2022\u00b7\u2013\u20140-9.) \t]{0,24}?"
"""What may stand before a role: marks of quotes, lists, tables and headings, emphasis and brackets."""
_ROLE: Final = re.compile(
    rf"(?im)^[^\S\n]*+(?:{_AROUND}(?:{_ROLES})(?:(?<=system) (?:prompt|message|instruction)s?)?[\])*_\"'`]{{0,4}}"
    r"(?:[ \t]*+(?:\([^()\n]{0,40}\)[ \t]*+)?"
    r"(?:says?|said|asks?|asked|writes|wrote|replie[sd]|answers?|answered)?[ \t]*+:(?!//)|>(?=[ \t]))"
    r"|(?:[>|*_#\[][>|*_#\[ ]{0,12})?(?:tool|model|ai|bot|llm)[\]*_]{0,3}[ \t]*+:[\]*_]{0,3}(?:[ \t]|$)"
    rf"|#{{1,6}}[ \t]*+(?:{_ROLES})(?: prompt| messages?| instructions?)?[ \t]*+:?$"
    r"|#{1,6}[ \t]*+(?:instruction|response|input)s?[ \t]*+:"
    rf"|</?(?:{_ROLES}|tool_result|transcript|instructions?|system[-_][a-z]{{1,20}})>|\[(?:{_ROLES})\])"
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
_OTHER_ENDS: Final = re.compile("[\x0b\x0c\x85\u2028\u2029]")
"""What ends a line beside a line feed."""
_START: Final = 400
_FEW_CHARACTERS: Final = 400


def is_normal(stop_reason: str | None) -> bool:
    """Whether the model stopped because it had said all; None: not known, which counts as normal."""
    return stop_reason is None or stop_reason.strip().casefold() in _NORMAL


def is_empty(text: str) -> bool:
    """Whether there is nothing to be seen."""
    return not as_seen(text[:_FEW_CHARACTERS]).strip() and not as_seen(text).strip()


def misworded(layout: Layout, own: Own) -> Iterator[Reason]:
    """What shows that a text is no summary, as far as its beginning and its sections tell.

    `own`: its lines, those empty that only repeat a fact.
    """
    first = layout.sections[0].heading if layout.sections else len(layout.lines)
    opening, lines = _opening(layout.lines[:first]), own.text.split("\n")
    bodies = ["\n".join(lines[section.heading + 1 : section.end]) for section in layout.sections]
    openings = [opening, *(_opening(body.split("\n", 4)[:4]) for body in bodies[:1])]
    if any(_REFUSAL.match(text) for text in openings) or _DECLINED.search(own.seen):
        yield Reason("refusal")
    if _ERROR.match(opening) or any(
        _FAILED.fullmatch(_bare(folded(body))) for body in bodies if len(body) <= _FEW_CHARACTERS
    ):
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


def transcribed(own: Own) -> Iterator[Reason]:
    """What a summary takes over from the machinery around a conversation."""
    seen = _OTHER_ENDS.sub("\n", own.seen)
    counts = (
        ("not_text", sum(1 for _ in _BROKEN.finditer(own.text)) + hidden_in(own.text)),
        ("role_marker", sum(1 for _ in _ROLE.finditer(seen))),
        ("chat_token", sum(1 for _ in _CHAT.finditer(seen))),
        ("tool_json", sum(1 for _ in _TOOL.finditer(seen))),
    )
    yield from (Reason(code, count=count) for code, count in counts if count)
