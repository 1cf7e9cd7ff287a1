"""A process that is killed in the middle of an import."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from session_actor import SessionService
from session_actor.transfer.exporting import export_session

from .transferring import SAMPLES, imported, memory, picture, state_of

CHILD = Path(__file__).parent / "child_importer.py"


@pytest.mark.parametrize("own", [False, True], ids=["foreign", "own"])
async def test_the_next_import_finishes_what_a_killed_process_began(tmp_path: Path, own: bool):
    path, folder = SAMPLES / "claude_code.jsonl", tmp_path / "conversations"
    async with memory() as service:
        _, state = await imported(service, path, session_id="s")
        whole = picture(state)
        if own:
            path = tmp_path / "s.ndjson"
            await export_session(service, "s", path)

    child = await asyncio.create_subprocess_exec(sys.executable, str(CHILD), str(folder), str(path), "4")
    assert await child.wait() == -signal.SIGKILL
    async with SessionService.open(folder) as service:
        state = await state_of(service, "s")
        assert (state.head, state.next_id) == (None, 13)
        report, state = await imported(service, path, session_id="s")
        assert (report.added, report.skipped) == (10, 12)
        assert picture(state) == whole
        again, state = await imported(service, path, session_id="s")
        assert (again.added, picture(state)) == (0, whole)
