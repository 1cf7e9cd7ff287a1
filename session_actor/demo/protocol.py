"""What the child tells the parent: one JSON line a message on the pipe, each written by one system call."""

from __future__ import annotations

import msgspec


class Opening(msgspec.Struct, frozen=True, tag="opening"):
    """The child starts to open the store: what is on disk is being read."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The session lives: `next_step` is the first step that recovery did not find."""

    next_step: int
    recovery_ms: float


class Acknowledged(msgspec.Struct, frozen=True, tag="acknowledged"):
    """A step has its acknowledgement: its frame (0: it makes none), the frame's time and how long the step took."""

    step: int
    frame: int
    at_us: int
    took_us: float


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """The transcript is through and the service is closed."""


Message = Opening | Ready | Acknowledged | Finished

_decoder = msgspec.json.Decoder(Message)


def encode(message: Message) -> bytes:
    """Make the line of a message, newline included."""
    return msgspec.json.encode(message) + b"\n"


def decode(line: bytes) -> Message | None:
    """Read one line; None when the child was killed before the line was whole."""
    if not line.endswith(b"\n"):
        return None
    return _decoder.decode(line)
