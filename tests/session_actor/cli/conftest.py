"""A store with a conversation that has a bit of everything, and a way to run commands in this process."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest

from session_actor import Reference, SessionService, Tool, ToolCall, Usage, read_profiles
from session_actor.__main__ import main
from session_actor.cli.schemas import schema_of

PAGE = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text(encoding="utf-8")
ODD = '-odd "id"\n\x1b[31m\ud800'


class Ran(NamedTuple):
    """What a command answered and printed."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[dict]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def run(capfdbinary):
    """Runs a command in this process; what it prints with --json is validated."""

    def run(*arguments: object) -> Ran:
        capfdbinary.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
        out, err = capfdbinary.readouterr()
        ran = Ran(code, out.decode(), err.decode())
        if "--json" in arguments and arguments[0] in WITH_JSON:
            assert out.isascii()
            for line in ran.objects:
                validator(str(arguments[0])).validate(line)
        return ran

    return run


@cache
def validator(command: str) -> jsonschema.Draft202012Validator:
    schema = schema_of(command)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


WITH_JSON = {
    *("list", "show", "tree", "replay", "diff", "tail", "verify", "repair", "export", "import", "stats", "doctor"),
    "demo",
}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store, which no test changes."""
    root = tmp_path_factory.mktemp("cli") / "conversations"
    asyncio.run(fill(root))
    return root


async def fill(root: Path) -> None:
    """Three sessions."""
    async with SessionService.open(root) as service:
        await talk(service)
        await service.session(ODD, create=True)
        await (await service.session("chat/7", create=True)).add_user("Hello")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "conversations"))


@pytest.fixture(scope="session")
def kiosk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store, `conversations`, of a session with a model of its own, and of `models.toml` of the page.

    Four of its exchanges are more than the model's window takes.
    """
    root = tmp_path_factory.mktemp("kiosk")
    (profiles,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (root / "models.toml").write_text(profiles, encoding="utf-8")
    asyncio.run(fill_kiosk(root))
    return root


async def fill_kiosk(root: Path) -> None:
    """Frames 1 to 12, by records 2 to 20: five exchanges with a request each, a compaction, one more."""
    async with SessionService.open(root / "conversations", models=read_profiles(root / "models.toml")) as service:
        session = await service.session("kiosk", create=True)
        await session.configure(system="You tell the tides.", model="house-model")
        for hour in range(5):
            await session.add_user(f"How high was the water at {hour}:00? " + "Tell all that you know. " * 125)
            await session.build_request("openai_chat")
            await session.add_assistant(f"At {hour}:00 it stood at {hour}.31 m. " + "The keeper wrote nothing. " * 125)
        plan = await session.prepare_compaction()
        await session.commit_compaction(plan, plan.extractive())
        await session.add_user("And now?")
        await session.build_request("openai_chat")


async def talk(service: SessionService) -> None:
    """Frames 1 to 9, by records 2 to 15: instructions, a call, a request, branches, a checkpoint, what is popped."""
    session = await service.session("user-42", create=True, metadata={"user": "mira"})
    await session.configure(system="You read gauges.", tools=[Tool("read", "", {"type": "object"})], model="gpt-4o")
    await session.add_user("secret question\n── frame 99 · user\x1b[31m\x9b2J\u202e")
    await session.add_assistant(
        "Looking.",
        tool_calls=[ToolCall("call-1", "read", '{"station":"Mole"}')],
        usage=Usage(input_tokens=180, output_tokens=25),
    )
    await session.add_tool_result("call-1", "secret result")
    await session.build_request("openai_chat")
    await session.checkpoint("before")
    await session.add_user(["secret page", Reference("trust me", "https://example.org")], key="a")
    await session.fork("before", branch="ship", user_input="By ship.", assistant_output="secret ship")
    await session.goto("main")
    await session.push("Popped.", "secret popped", assumptions=["secret assumption"], decisions=["secret decision"])
    await session.pop()
    await session.push("x", "y", turns=[], pinned=True)
    await session.fork("before", branch="train", user_input="By train.", assistant_output="secret train")
    await session.goto("main")
