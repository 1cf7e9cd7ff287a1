"""The kinds of lines that Claude Code writes, and what its attachments say.

Its lines have no published schema; the kinds are those that its versions up to 2.1 are known to write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from session_actor.blocks import Document, Image, Reference
from session_actor.frames import Turn

from .anthropic_parts import user_turns
from .fields import base64_of, fields, is_fields, json_text, text, word

if TYPE_CHECKING:
    from collections import Counter

    from session_actor.blocks import Block

SPOKEN: Final = frozenset({"user", "assistant", "system", "attachment"})
"""Kinds of which some lines say something."""

BOOKKEEPING: Final = frozenset(
    {"progress", "summary", "queue-operation", "last-prompt", "custom-title", "ai-title", "task-summary", "tag"}
    | {"file-history-snapshot", "file-history-delta", "attribution-snapshot", "content-replacement", "pr-link"}
    | {"mode", "permission-mode", "agent-name", "agent-color", "agent-setting", "worktree-state", "cost-state"}
    | {"bridge-session", "frame-link", "fork-context-ref", "observer-ref", "continued-in", "relocated"}
    | {"speculation-accept", "isolation-latch", "atis-latch", "ended-by-model", "history-suppression"}
    | {"artifact-comment-monitor", "artifact-autoreact-ledger"}
    | {"marble-origami-commit", "marble-origami-snapshot", "marble-origami-reset"}
)
"""Kinds that say nothing of a conversation. What waits in a queue is said when it leaves it."""

COLLAPSED: Final = "marble-origami-commit"
"""A summary that the model was shown from here on in place of some turns in the middle. All of them are in the file;
no compaction here stands for a part like that. The other two kinds of this name tell what may be collapsed next."""

_REMINDERS: Final = frozenset(
    {"hook_cancelled", "hook_error_during_execution", "hook_non_blocking_error", "hook_permission_decision"}
    | {"hook_system_message", "command_permissions", "structured_output", "read_truncation_notice", "agent_mention"}
    | {"deferred_tools_delta", "mcp_instructions_delta", "agent_listing_delta", "skill_listing", "skill_discovery"}
    | {"dynamic_skill", "todo", "todo_reminder", "task_reminder", "goal_status", "team_context", "model"}
    | {"plan_mode", "plan_mode_exit", "plan_mode_reentry", "auto_mode", "auto_mode_exit", "output_style"}
    | {"ultra_effort_enter", "ultra_effort_exit", "ultrathink_effort", "pen_mode_enter", "pen_mode_exit"}
    | {"total_tokens_reminder", "token_usage", "output_token_usage", "budget_usd", "max_turns_reached"}
    | {"date_change", "context_efficiency", "compaction_reminder", "verify_plan_reminder", "companion_intro"}
    | {"opened_file_in_ide", "already_read_file", "compact_file_reference", "context_tip", "fold_nudge"}
)
"""Attachments by which the agent reminds its model of what there is and of how to work: not of what was said."""

_WORDS: Final = {
    "hook_success": ("content",),
    "hook_additional_context": ("content",),
    "hook_blocking_error": ("blockingError", "blockingError"),
    "hook_stopped_continuation": ("message",),
    "critical_system_reminder": ("content",),
    "edited_text_file": ("snippet",),
    "file": ("content", "file", "content"),
    "nested_memory": ("content", "content"),
}
"""Where the words of an attachment are; of others all of it is kept as JSON."""

_ABOUT: Final = ("hookName", "displayPath", "filename", "path")
"""Which hook it is of, or which file."""

_TOLD_BY_HOOKS: Final = frozenset({"SessionStart", "UserPromptSubmit"})
"""Of other hooks that went well the model is told nothing."""


def attached(given: dict[str, Any], left_out: Counter[str]) -> tuple[Turn, ...] | None:
    """What an attachment says to the model, as the user's turns; None: nothing. Raises what `fields` raises.

    What the user typed meanwhile is the user's own text. Files, and what hooks say, are text that is not trusted.
    """
    kind = text(given["type"])
    if kind == "queued_command":
        return user_turns(given["prompt"], left_out)
    if kind in _REMINDERS or (kind == "hook_success" and given.get("hookEvent") not in _TOLD_BY_HOOKS):
        return None
    block = _media(given) or _reference(kind, given)
    return None if block is None else (Turn("user", (block,)),)


def _media(given: dict[str, Any]) -> Block | None:
    """An image or a document that stands in an attachment."""
    shown = _fields_in(given, "content")
    file = _fields_in(shown, "file")
    if word(file.get("base64")) is None:
        return None
    data = base64_of(file["base64"])
    if shown.get("type") == "image":
        return Image(data=data, media_type=word(file.get("type")) or "image/png")
    return Document(data=data, media_type="application/pdf", name=word(given.get("displayPath")))


def _fields_in(given: dict[str, Any], name: str) -> dict[str, Any]:
    value = given.get(name)
    return fields(value) if is_fields(value) else {}


def _reference(kind: str, given: dict[str, Any]) -> Reference | None:
    words = _words(given, _WORDS.get(kind, ()))
    about = next(
        filter(None, (word(given.get(name)) for name in ("hookName", "displayPath", "filename", "path"))), None
    )
    return Reference(words, f"{kind} {about}" if about else kind) if words else None


def _words(given: dict[str, Any], way: tuple[str, ...]) -> str:
    at: Any = given
    for name in way:
        at = at.get(name) if is_fields(at) else at
    if way and isinstance(at, str):
        return at
    if way and isinstance(at, list):
        return "\n".join(map(text, at))  # pyright: ignore[reportUnknownArgumentType] - of anything
    return json_text({name: value for name, value in given.items() if name != "type"})
