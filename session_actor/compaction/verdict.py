"""Verdicts: whether a summary may stand for what it was made from, and why not."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from session_actor.given.private import as_repr

GATE_VERSION: Final = 3
"""Grows with every change of what the gate accepts or how it seals: a record tells which gate judged."""

Severity: TypeAlias = Literal["error", "warning"]


class Reason(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One thing that is wrong with a summary, without a word of its content."""

    code: str
    """One of `CODES`."""
    severity: Severity = "error"
    """An error refuses the summary; a warning is told, such as what had to be sealed."""
    count: int = 1
    """How often, or how many [tokens, where the code is about length]."""
    what: int | None = None
    """Which of the facts of that kind, or which heading, from 0; None: the reason is about no single one."""
    limit: int | None = None
    """What was allowed; None: nothing of it is."""


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What the gate says of a summary. The same summary, facts and source give the same bytes."""

    ok: bool
    """Whether it may be adopted: there is no error among the reasons."""
    reasons: tuple[Reason, ...]
    """In a fixed order."""
    sealed: str
    """The summary with what was missing of the facts; `""` if it was refused."""
    tokens: int = 0
    """How many tokens the sealed text has, estimated."""
    gate_version: int = GATE_VERSION

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the reasons, each once, in order."""
        return tuple(dict.fromkeys(reason.code for reason in self.reasons))

    @property
    def errors(self) -> tuple[Reason, ...]:
        """The reasons to refuse it."""
        return tuple(reason for reason in self.reasons if reason.severity == "error")

    def __repr__(self) -> str:
        """Without the summary."""
        return f"Verdict(ok={self.ok}, {', '.join(self.codes) or 'no reasons'}, gate_version={self.gate_version})"

    __rich_repr__ = as_repr


CODES: Final = {
    "stop_reason": "the model did not stop by itself",
    "empty": "there is no text",
    "not_text": "it holds control characters, characters that nobody sees, or broken Unicode",
    "placeholder": "it is a placeholder, not a summary",
    "refusal": "the model refused to write it",
    "error_text": "it is the text of an error",
    "heading_missing": "a required heading is missing (those inside code fences do not count)",
    "heading_twice": "a required heading is there more than once",
    "heading_order": "the headings are not in the given order",
    "heading_unknown": "there is a heading of the first or second level that is not one of those given",
    "text_before": "there is text before the first heading, more than that the summary follows",
    "heading_empty": "a heading has no body, or says None although there is something",
    "too_long": "it is longer than the cap, or than half of what it stands for",
    "too_short": "it is shorter than 64 tokens",
    "no_gain": "it saves too little",
    "constraint_missing": "a rule of the user is not under Constraints word for word",
    "constraint_inverted": "a rule of the user is turned into its opposite, or its number is changed",
    "decision_missing": "a decision is not under Decisions word for word",
    "assumption_missing": "an assumption is not under Assumptions word for word",
    "retraction_missing": "a retracted assumption is not under Retracted word for word",
    "retracted_used": "a retracted assumption stands outside Retracted",
    "decision_retracted": "a decision is listed under Retracted, as if it did not hold any more",
    "assumption_retracted": "an assumption that nobody retracted is listed under Retracted",
    "retraction_unknown": "there are points under Retracted that are about nothing that was retracted",
    "rules_voided": "it says that rules, decisions or assumptions hold no more: no summary takes them back",
    "artifact_missing": "a file that was read or modified is not under Files",
    "identifier_missing": "an exact identifier is missing",
    "unknown_path": "it names a path that the source does not have",
    "unknown_url": "it names an address, or a host, that the source does not have",
    "unknown_hash": "it names a hash that the source does not have; shortened ones count as unknown",
    "unknown_id": "it names an id, a version or an e-mail address that the source does not have",
    "unknown_numbers": "it has more than two numbers that the source does not have",
    "number_changed": "a number differs by one digit, or by two that changed places, from one that has to be kept",
    "role_marker": "a line begins like a turn of a transcript",
    "chat_token": "it holds tokens of a chat template",
    "tool_json": "it holds a tool call instead of prose",
    "question_missing": "the user's open question is not under Open question",
    "question_answered": "a question that was answered is listed as open",
    "pointer_unknown": "it points to a frame that is not on the path",
    "secret_sealed": "it holds what looks like a secret",
    "language": "it is in another language than the conversation",
}
"""Every code a reason can have, and what it means: for prompts and messages."""
