"""Files to import, and what became of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from session_actor import MemoryStore, SessionService
from session_actor.frames import Frame
from session_actor.state import State
from session_actor.transfer.importing import import_transcript
from session_actor.transfer.source import state_in

SAMPLES = Path(__file__).parent / "samples"
PI = Path(__file__).parents[3] / "session_actor" / "data" / "sample_transcript.jsonl"
ALL = (
    PI,
    *(
        SAMPLES / name
        for name in ("claude_code.jsonl", "pi_tree.jsonl", "openai_chat.json", "openai_chat.jsonl", "anthropic.json")
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
