"""Files to import, and what became of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from session_actor import MemoryStore, SessionService
from session_actor.blocks import Image, Native, Text, Thinking, ToolCall
from session_actor.frames import Frame, Tool, Turn, Usage
from session_actor.state.state import State
from session_actor.transfer.importing import import_transcript
from session_actor.transfer.source import state_in

SAMPLES = Path(__file__).parent / "samples"
PI = Path(__file__).parents[3] / "session_actor" / "data" / "sample_transcript.jsonl"
ALL = (
    PI,
    *(
        SAMPLES / name
        for name in (
            *("claude_code.jsonl", "claude_code_2_1.jsonl", "pi_tree.jsonl"),
            *("openai_chat.json", "openai_chat.jsonl", "openai_chat_newer.jsonl"),
            *("anthropic.json", "anthropic_newer.json"),
        )
    ),
)


def memory() -> SessionService:
    """A service without a disk."""
    return SessionService.open(MemoryStore())


def written(path: Path, *lines: dict[str, Any] | str | bytes) -> Path:
    """A file of these lines."""
    path.write_bytes(b"".join(line_bytes(line) + b"\n" for line in lines))
    return path


def line_bytes(line: dict[str, Any] | str | bytes) -> bytes:
    """A line as it is written."""
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def lines_in(path: Path) -> list[bytes]:
    """The lines of a file, each with its end."""
    return path.read_bytes().splitlines(keepends=True)


async def state_of(service: SessionService, session_id: str) -> State:
    """The state of a session."""
    return await state_in(await service.session(session_id))


def frames_of(state: State) -> list[Frame]:
    """All frames of a state."""
    found = [state.table.get(frame_id) for frame_id in range(1, state.next_id)]
    return [frame for frame in found if frame is not None]


def picture(state: State) -> dict[str, Any]:
    """What an export keeps of a state."""
    return {
        "frames": [msgspec.structs.asdict(frame) for frame in frames_of(state)],
        "branches": state.branches,
        "checkpoints": state.checkpoints,
        "head": (state.head, state.attached, state.next_id),
        "ended": state.ended,
        "metadata": state.metadata,
        "overlays": [msgspec.structs.replace(one, seq=0, undone=min(one.undone, 1)) for one in state.overlays],
        "pins": {frame: msgspec.structs.replace(pin, seq=0) for frame, pin in state.pins.items()},
        "retractions": state.retractions,
        "generation": state.generation,
        "calls": list(state.call_ids),
    }


def said(frames: list[Frame]) -> list[tuple[str, str]]:
    """Who said what."""
    return [(turn.role, turn.text) for frame in frames for turn in frame.turns]


async def imported(service: SessionService, path: Path, **options: Any) -> tuple[Any, State]:
    """The report of an import, and the state of the first session after it."""
    report = await import_transcript(service, path, **options)
    return report, await state_of(service, report.sessions[0])


async def everything(service: SessionService, name: str = "user-42"):
    """A session with every kind of thing in it."""
    session = await service.session(name, create=True, metadata={"lang": "de", "half": "\ud83c", "$b64": b"\x00"})
    await session.configure(
        system="Be brief. \ud83c",
        tools=[Tool("ls", "List.", {"type": "object"}), Native("gemini", None, {"google_search": {}})],
        model="m",
    )
    await session.push("hi", "there", assumptions=["the disk is \ud83c large"], decisions=["go"], pinned=True)
    await session.add_user(["look", Image(data=b"\x00\xff", media_type="image/png")])
    await session.add_assistant(
        [Thinking("hm", "sig"), Native("anthropic", "m", {"type": "x", "n": float("inf"), "s": "\udc00"}), "two"],
        tool_calls=[ToolCall("c", "ls", '{"a":1'), ToolCall("d", "ls")],
        usage=Usage(9, 3, raw={"input": 9}),
        stop_reason="tool_use",
        dialect="anthropic",
    )
    await session.add_tool_result("d", ["done", Native("anthropic", None, {"type": "y"})], is_error=True)
    await session.checkpoint("here")
    await session.fork(2, branch="idea", turns=[Turn("user", (Text("same"),)), Turn("user", (Text("same"),))])
    await session.pop(1)
    await session.add_reference("a page", source="https://example.org")
    await session.note_artifact("a.py", "modified")
    await session.push("popped")
    await session.pop(1)
    await session.goto("main")
    await session.hold_call("c", "approval")
    await session.retract("the disk is \ud83c large", "it is full")
    await session.pin(3)
    await session.rename_checkpoint("here", "there \ud83c")
    await session.goto("idea")
    return session
