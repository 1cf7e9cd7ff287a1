"""What a closed store takes on the disk: a fixed part, a part for each session, and one for each frame."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from session_actor import SessionService

FIXED = {"FORMAT": 62, "LOCK": 0, "catalog.db": 4_096, "catalog.db-journal": 0}
"""Bytes of the files of a store that was cut; two blocks of 4 kB."""
SESSION = 260
"""Bytes of a session's first two lines, a short id twice among them."""
LINE = 134
"""Bytes around one text, at most, as long as there are fewer than ten thousand records."""
KEYFRAME = 40
"""More every 32 frames: what the frame inherits."""
TEXT = 20
"""The second text of a frame."""


def found(root: Path) -> dict[str, int]:
    """The size of each file by its name; those of journals and snapshots by their folder's."""
    sizes: dict[str, int] = {}
    for path in root.rglob("*"):
        if path.is_file():
            name = path.relative_to(root).parts[0]
            sizes[name] = sizes.get(name, 0) + path.stat().st_size
    return sizes


async def kept(root: Path, sessions: int, turns: int, *, exchanges: bool) -> int:
    """Say the same in each session, close, and return the bytes of all texts as JSON without their quotes."""
    said = 0
    async with SessionService.open(root) as service:
        for index in range(sessions):
            session = await service.session(f"user-{index}", create=True)
            for number in range(0, turns, 1 + exchanges):
                texts = [f'{number}: "é"\n' + "x" * 500, f"{number + 1}: ok"][: 1 + exchanges]
                if exchanges:
                    await session.push(*texts)
                else:
                    await (session.add_assistant if number % 2 else session.add_user)(*texts)
                said += sum(len(orjson.dumps(text)) - 2 for text in texts)
    return said


@pytest.mark.parametrize("exchanges", [False, True])
@pytest.mark.parametrize(("sessions", "turns"), [(1, 0), (1, 200), (5, 40)])
async def test_a_small_store_takes_two_blocks_and_a_journal_for_each_session(tmp_path, sessions, turns, exchanges):
    said = await kept(tmp_path / "store", sessions, turns, exchanges=exchanges)
    sizes = found(tmp_path / "store")
    journals = sizes.pop("journals")
    assert sizes == FIXED
    frames = sessions * turns // (1 + exchanges)
    assert journals - said <= sessions * SESSION + frames * (LINE + TEXT * exchanges) + (frames // 32) * KEYFRAME
