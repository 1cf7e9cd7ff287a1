"""Snapshots: what a session was after one of its records, so that loading it need not read what came before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import RecordTooLarge
from .record import MAX_RECORD_BYTES

if TYPE_CHECKING:
    from .store import Lease


def check_snapshot(lease: Lease, seq: int, data: bytes) -> None:
    """Raises ValueError and `RecordTooLarge` for what `Store.save` refuses."""
    if not 1 <= seq <= lease.appended_seq:
        raise ValueError(f"a snapshot after record {seq}: the session has records 1 to {lease.appended_seq}")
    if b"\n" in data:
        raise ValueError("the data of a snapshot must be JSON on one line")
    if len(data) > MAX_RECORD_BYTES:
        raise RecordTooLarge(len(data), MAX_RECORD_BYTES)
