"""The example of a reload, run for real: uvicorn with --reload and with --workers, on loopback."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

EXAMPLE = Path(__file__).parents[2] / "examples" / "reload_app.py"


class Running:
    """A uvicorn with its children."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = ""

    async def says(self, pattern: str) -> re.Match[str]:
        """Read what it says up to a line with this."""
        while True:
            line = (await self.process.stderr.readline()).decode()
            assert line, self.said
            self.said += line
            if found := re.search(pattern, line):
                return found


@asynccontextmanager
async def uvicorn(folder: Path, *options: str):
    """Run the copy of the example in `folder`; all its processes are gone afterwards."""
    command = (sys.executable, "-m", "uvicorn", "--factory", "reload_app:create_app", "--port", "0", "--no-use-colors")
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--app-dir", folder / "app", *options),
        cwd=folder,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    running = Running(process)
    try:
        yield running
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        await process.communicate()


def copied(folder: Path, *changes: tuple[str, str]) -> Path:
    """A copy of the example with some texts changed."""
    text = EXAMPLE.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "app").mkdir(exist_ok=True)
    (folder / "app" / "reload_app.py").write_text(text)
    return folder


async def test_a_conversation_goes_on_with_the_edited_code(tmp_path):
    copied(tmp_path)
    options = ("--reload", "--reload-dir", str(tmp_path / "app"), "--reload-delay", "0.05")
    async with uvicorn(tmp_path, *options) as running:
        address = (await running.says(r"running on (http://\S+)"))[1]
        await running.says("startup complete")  # from now on the socket listens, whoever serves it
        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            first = await ask(client, "one")
            copied(tmp_path, ("You have asked {count} times.", "{count} questions so far."))
            await running.says("Reloading")
            second = await ask(client, "two")  # of the old process or of the new one
            await running.says("startup complete")
            third = await ask(client, "three")
            again = await ask(client, "three")
            said = (await client.get("/chat/mira")).json()

    assert first == "You have asked 1 times."
    assert second in {"You have asked 2 times.", "2 questions so far."}
    assert third == again == "3 questions so far."
    assert said == [
        ["user", "one"],
        ["assistant", first],
        ["user", "two"],
        ["assistant", second],
        ["user", "three"],
        ["assistant", third],
    ]


async def ask(client: httpx.AsyncClient, question: str) -> str:
    """Ask as a client should: again, with the same key, when the server goes away underneath or says so."""
    while True:
        try:
            answer = await client.post("/chat/mira", content=question, headers={"Idempotency-Key": question})
        except httpx.TransportError:
            await asyncio.sleep(0.02)
            continue
        if answer.status_code != 503:
            return answer.text


async def test_several_workers_are_told_that_one_process_has_the_store(tmp_path):
    copied(tmp_path, ("WAIT_S = 10.0", "WAIT_S = 0.0"))
    async with uvicorn(tmp_path, "--workers", "2") as running:
        line = (await running.says("StoreLocked: .*"))[0]

    assert re.search(r"in use by process \d+; one process per store", line)
    assert "of several workers (uvicorn --workers) only one can have it" in line
    assert "lock_timeout_s" in line
