"""The words that say where a request differs from the ledger, and what collects them."""

from __future__ import annotations

from typing import Final

from session_actor.requests.request import Note

THINKING: Final = "thinking"
NATIVE: Final = "native"
CALL: Final = "call"
RESULT: Final = "result"
EMPTY: Final = "empty_turn"
IMAGE: Final = "image"
DOCUMENT: Final = "document"
NO_ROOM: Final = "no_room"
LONG: Final = "long_result"
STUB: Final = "old_result"
SURROGATES: Final = "surrogates"
TRIMMED: Final = "trimmed"
EPHEMERAL: Final = "ephemeral"
TOOL: Final = "native_tool"

BRIDGE: Final = "bridge"
CONTINUE: Final = "continue"
GAP: Final = "gap_note"
TRIM_NOTE: Final = "trim_note"
SUMMARY: Final = "summary"
CORRECTION: Final = "correction"
INTERRUPTED: Final = "interrupted"
HELD: Final = "held"
LATE: Final = "late_result"
REFUSED: Final = "refused_call"
SYSTEM: Final = "system_turn"
REFERENCE: Final = "reference"
MEDIA: Final = "result_media"
NOTHING: Final = "empty_result"
BROKEN: Final = "broken_off"

OMITTED: Final[dict[str, str]] = {
    THINKING: "reasoning, or a signature of it: of another model, not signed, or with another history before it",
    NATIVE: "a block of one provider that cannot be shown to this one, or not without what it belongs to",
    CALL: "a tool call whose arguments are no JSON object, most often because the reply broke off",
    RESULT: "the result of such a call of a reply that broke off",
    EMPTY: "a turn that says nothing that could be shown",
    IMAGE: "an image that the model or its API does not take; a text stands in its place",
    DOCUMENT: "a document that the model or its API does not take; a text stands in its place",
    NO_ROOM: "an image or another file that has no room beside newer ones; a text stands in its place",
    LONG: "the middle of a long tool result; a note stands in its place",
    STUB: "an old tool result; one line stands in its place",
    SURROGATES: "halves of characters that no UTF-8 can carry; U+FFFD stands in their place",
    TRIMMED: "what stands before the frame, but for what is kept: the conversation is longer than the window",
    EPHEMERAL: "the ephemeral part: nothing may follow a turn that the provider paused",
    TOOL: "a provider's own tool, configured by the frame for another dialect or model",
}
"""The words of `Request.omitted`, and what each of them says."""

ADDED: Final[dict[str, str]] = {
    BRIDGE: "a user turn before a conversation that the assistant begins",
    CONTINUE: "a user turn after an answer, so that the model goes on",
    GAP: "a user turn where frames are hidden between two assistant turns",
    SUMMARY: "the summary of a compaction: it stands for what is up to the frame",
    CORRECTION: "the note that an assumption was taken back",
    TRIM_NOTE: "the note that earlier messages are not shown",
    INTERRUPTED: "an error in place of the result of a call that has none",
    HELD: "a text in place of the result of a call that is held back",
    LATE: "the user turn that shows a result for whose call the conversation had gone on",
    REFUSED: "the user turn that shows the result of a call that cannot be shown",
    SYSTEM: "the mark of a system turn, which is shown as the user's",
    REFERENCE: "the frame around a reference",
    MEDIA: "a label: images and documents of a tool result, shown after it",
    NOTHING: "a text in place of a result without content",
    BROKEN: "a text in place of a turn of which nothing else could be shown",
}
"""The words of `Request.added`, and what each of them says."""


class Notes:
    """What was left out of one chunk, and what was put in."""

    __slots__ = ("added", "omitted")

    def __init__(self, omitted: tuple[Note, ...] = (), added: tuple[Note, ...] = ()) -> None:
        """Begin with these."""
        self.omitted = list(omitted)
        self.added = list(added)

    def omit(self, word: str, frame: int | None) -> None:
        """Something of this frame is not shown."""
        self.omitted.append(Note(word, frame))

    def add(self, word: str, frame: int | None = None) -> None:
        """Something was put in where this frame is shown."""
        self.added.append(Note(word, frame))

    def extend(self, other: Notes) -> None:
        """All of the other's as well."""
        self.omitted += other.omitted
        self.added += other.added

    def copy(self) -> Notes:
        """The same, on its own."""
        return Notes(tuple(self.omitted), tuple(self.added))
