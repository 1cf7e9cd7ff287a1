"""A record whose sum fits, and whose time is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_actor import FileStore, RecordUnreadable, SessionService
from session_actor.persistence.format.record import SUFFIX_BYTES, close_line


def spoil_last_time(segment: Path) -> None:
    """Make the time of the last record none, and all sums fit."""
    lines = segment.read_bytes().splitlines(keepends=True)
    last = max(index for index, line in enumerate(lines) if b'"r":{' in line)
    body = lines[last][:-SUFFIX_BYTES].replace(b'"at":"2', b'"at":"x', 1)
    start = body.index(b'"r":{') + len(b'"r":')
    record, _ = close_line(body[start : -SUFFIX_BYTES + 1])
    before = lines[last][-11:-3]
    lines[last], _ = close_line(body[:start] + record[:-1])
    for index in range(last + 1, len(lines)):
        changed = lines[index][:-SUFFIX_BYTES].replace(before, lines[index - 1][-11:-3], 1)
        before, (lines[index], _) = lines[index][-11:-3], close_line(changed)
    segment.write_bytes(b"".join(lines))


async def test_it_is_refused_by_name(tmp_path):
    def store() -> FileStore:
        return FileStore(tmp_path / "store", cut_at_close=0)

    async with SessionService.open(store()) as service:
        for session in ("bad", "good"):
            await (await service.session(session, create=True)).push("1", "")
        await (await service.session("bad")).push("2", "")
    (segment,) = (tmp_path / "store" / "log").glob("0*.ndjson")
    spoil_last_time(segment)
    async with SessionService.open(store()) as service:
        with pytest.raises(RecordUnreadable, match="cannot be read: its time is not a time"):
            await service.session("bad")
        assert len(await (await service.session("good")).stack()) == 1
