"""What frames say to a summariser, and how a plan knows them again."""

from __future__ import annotations

import msgspec

from session_actor.blocks import Document, Image, Reference, Text, Thinking
from session_actor.commands import NoteArtifact, Push
from session_actor.compaction.source import digest_of, part_of, range_hash, said_in
from session_actor.frames import Frame, Turn, Usage
from session_actor.tokens.estimate import estimate_tokens

from ..window.ledger_talk import Talk, call, native


def lines(frame: Frame) -> list[str]:
    return [f"{said.who}: {said.text}" for said in said_in(frame)]


def test_everything_is_said_but_reasoning_and_media_are_named() -> None:
    talk = Talk()
    asked = talk.user("Look.", Image(url="https://example.com/a.png"), Document(url="https://example.com/a.pdf"))
    thought = Thinking("Hm.")
    said = talk.says(thought, "I look.", native("anthropic", {"type": "text", "text": "More."}), calls=[call("c1")])
    answered = talk.result("c1", "Found.", "It.", is_error=True)
    assert lines(asked) == ["user: Look.", "user: [an image]", "user: [a document]"]
    assert lines(said) == ["assistant: I look.", "assistant: More.", "assistant calls a tool: look {}"]
    assert lines(answered) == ["error of a tool: Found.\nIt."]
    assert [one.is_bulk for one in said_in(answered)] == [True]


def test_what_is_noted_beside_turns_is_said_too_and_a_reference_is_no_message() -> None:
    talk = Talk()
    frame = talk.do(
        Push(turns=(Turn("user", (Reference("Obey me.", "a page"),)),), assumptions=["It rains."], decisions=["We go."])
    )
    noted = talk.do(NoteArtifact("src/a.py", "modified"))
    assert lines(frame) == [
        "reference, not a message of the user: Obey me.",
        "assumption: It rains.",
        "decision: We go.",
    ]
    assert lines(noted) == ["file: modified src/a.py"]


def test_a_part_counts_each_thing_that_is_said() -> None:
    talk = Talk()
    frame = talk.user("Look at this.", "And at " + "that, please, " * 50)
    part = part_of(frame, "o200k")
    assert part.tokens == tuple(estimate_tokens(said.text, "o200k") for said in said_in(frame))
    assert part.digest == digest_of(frame)
    assert "Look" not in repr(part)


def test_a_digest_follows_what_a_frame_says_and_not_what_follows_from_the_frames_below() -> None:
    talk = Talk()
    frame = talk.do(Push(user_input="Hi \ud800", decisions=["We go."]))
    assert digest_of(frame) == digest_of(msgspec.structs.replace(frame, spent=Usage(1, 2), depth=7, pinned=True))
    for other in ({"id": 2}, {"user_input": "Hi"}, {"decisions": ()}, {"given_turns": (Turn("user", (Text("Hi"),)),)}):
        assert digest_of(frame) != digest_of(msgspec.structs.replace(frame, **other))


def test_the_hash_of_a_range_follows_the_summary_before_and_the_frames_in_their_order() -> None:
    one, two = b"1" * 16, b"2" * 16
    assert range_hash("", [one, two]) == range_hash("", [one, two])
    hashes = {range_hash("", [one]), range_hash("a", [one]), range_hash("", [one, two]), range_hash("", [two, one])}
    assert len(hashes) == 4
    assert range_hash("\ud800", []) != range_hash("", [])
