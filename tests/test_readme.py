"""Everything that the README and the pages beside it show is run, and what it prints is compared with what they say.

A piece of the README or of the guide has a service and a new session for itself, and a client of Anthropic's SDK whose
server is here; the pieces of another page run one after the other.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import structlog

import session_actor
from session_actor import SessionService, validate_request

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = ROOT / "docs" / "guide.md"
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
PAGES = sorted((ROOT / "docs").glob("*.md"))


class Block(NamedTuple):
    page: str
    line: int
    code: str
    printed: str | None


def blocks(page: Path) -> list[Block]:
    pattern = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
    text = page.read_text(encoding="utf-8")
    found = [Block(page.name, text[: at.start()].count("\n") + 1, at[1], at[2]) for at in pattern.finditer(text)]
    assert len(found) == text.count("```python"), page
    return found


BLOCKS = [*blocks(ROOT / "README.md"), *blocks(GUIDE)]
SCRIPTS = [block for block in BLOCKS if "asyncio.run(" in block.code]
PIECES = [block for block in BLOCKS if "asyncio.run(" not in block.code]
RUN_ON = [page for page in PAGES if page != GUIDE]


def line_of(block: Block) -> str:
    return f"{block.page}-{block.line}"


def test_the_readme_starts_with_an_example_of_at_most_ten_statements():
    first = BLOCKS[0]
    assert first.line + first.code.count("\n") <= 25
    assert sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(first.code))) <= 10


def test_every_fenced_block_of_python_is_run():
    assert (README + GUIDE.read_text(encoding="utf-8")).count("```python") == len(SCRIPTS) + len(PIECES)
    assert SCRIPTS
    assert PIECES
    assert PAGES


@pytest.fixture
def _logs_aside() -> Iterator[None]:
    """Keep log lines out of what a piece prints, and forget how a piece has routed them."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(io.StringIO()))
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("block", SCRIPTS, ids=line_of)
def test_a_script_of_the_readme_prints_what_it_says(block: Block, tmp_path: Path):
    (tmp_path / "script.py").write_text(block.code, encoding="utf-8")
    command = [sys.executable, "-X", "dev", "-W", "error", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    # How long a step of the loop took depends on the machine: the only thing that is left out.
    warnings = [line for line in done.stderr.splitlines() if not re.match(r"Executing .* took [\d.]+ seconds", line)]
    assert (done.stdout, warnings) == (block.printed or "", [])


def test_the_first_example_goes_on_where_it_stopped(tmp_path: Path):
    (tmp_path / "script.py").write_text(BLOCKS[0].code, encoding="utf-8")
    runs = [subprocess.check_output([sys.executable, "script.py"], cwd=tmp_path, text=True) for _ in range(2)]
    assert [run.count("high water") for run in runs] == [1, 2]


SUMMARY = """\
## Goal
The user has the log of the harbour read out.

## Constraints
None

## Decisions
None

## Assumptions
None

## Progress
What the keeper wrote was asked for hour by hour, one after the other, and each time the answer was that the water was \
calm and the wind low. Nothing else was asked for in between, and nothing that was told had to be put right later.

## Files
None

## Identifiers
None

## Open question
None
"""


class Messages(BaseHTTPRequestHandler):
    """Anthropic's Messages API, with a model that reads the gauge, tells what it said, and sums up a plain text."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        problems = validate_request("anthropic", request)
        body = json.dumps(
            {"error": {"type": "invalid_request_error", "message": problems}} if problems else self.said(request)
        )
        self.send_response(400 if problems else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    @staticmethod
    def said(request: dict[str, Any]) -> dict[str, Any]:
        first = request["messages"][-1]["content"][0]
        if type(first) is str:  # of a text
            block = {"type": "text", "text": SUMMARY}
        elif first["type"] == "tool_result":
            block = {"type": "text", "text": f"The water at the Mole stands at {first['content']}."}
        else:
            block = {"type": "tool_use", "id": "toolu_1", "name": "read_gauge", "input": {"station": "Mole"}}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": [block]}
        usage = {"input_tokens": 700, "output_tokens": 20}
        stop_reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
        return {**message, "stop_reason": stop_reason, "stop_sequence": None, "usage": usage}

    def log_message(self, *args: object) -> None:
        """Nothing."""


@contextlib.asynccontextmanager
async def anthropic_client() -> AsyncIterator[object]:
    import anthropic

    with ThreadingHTTPServer(("127.0.0.1", 0), Messages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            async with anthropic.AsyncAnthropic(api_key="none", base_url=url, max_retries=0) as client:
                yield client
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.usefixtures("_logs_aside")
@pytest.mark.parametrize("block", PIECES, ids=line_of)
async def test_a_piece_of_the_readme_prints_what_it_says(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")  # for what is to be copied beside it
    async with SessionService.open(tmp_path / "service") as service:
        names = {"service": service, "session": await service.session("user-42", create=True)}
        async with anthropic_client() if "client." in block.code else contextlib.nullcontext() as names["client"]:
            assert await printed_by(block, names) == (block.printed or "")
        if "app" in names:
            await check_app(names["app"])


@pytest.mark.usefixtures("_logs_aside")
@pytest.mark.parametrize("page", RUN_ON, ids=lambda page: page.stem)
async def test_the_pieces_of_a_page_print_what_it_says_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page):
        assert await printed_by(block, names) == (block.printed or ""), line_of(block)


def test_logs_that_are_routed_as_the_readme_says_leave_standard_output_alone(tmp_path: Path):
    (routing,) = [block.code for block in blocks(ROOT / "docs" / "reference.md") if "structlog.configure" in block.code]
    program = tmp_path / "program.py"
    program.write_text(f"{routing}\nstructlog.get_logger().warning('server_crashed', server='user-42')\n")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert '{"server": "user-42", "event": "server_crashed", "level": "warning"}' in done.stderr


async def printed_by(block: Block, names: dict[str, object]) -> str:
    """Run a piece with `await` at its top level, as in `python -m asyncio`."""
    code = compile(block.code, f"{block.page}:{block.line}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        result = eval(code, names)
        if inspect.isawaitable(result):
            await result
    return output.getvalue()


async def check_app(app) -> None:
    """Send the same request twice to the app of the README: it is one frame."""
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://app") as client,
    ):
        for _ in range(2):
            reply = await client.post("/say/mira", content="hello", headers={"Idempotency-Key": "1"})
            assert (reply.status_code, reply.json()) == (200, {"frame": 1})
        assert (await client.post("/say/mira", content="other", headers={"Idempotency-Key": "1"})).status_code == 422
        await app.state.service.end("mira")
        assert (await client.post("/say/mira", content="hello")).status_code == 410
        await app.state.service.close()
        reply = await client.post("/say/mira", content="hello")
        assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1")


def test_every_argument_of_open_is_in_the_table_with_its_default():
    parameters = [p for p in inspect.signature(SessionService.open).parameters.values() if p.name != "cls"]
    rows = dict(re.findall(r"^\| `(\w+)` \| (?:`(.*?)`)? ?\|", REFERENCE, re.MULTILINE))
    assert {p.name for p in parameters} == rows.keys() & {p.name for p in parameters}
    for parameter in parameters:
        if parameter.default is not parameter.empty:
            assert ast.literal_eval(rows[parameter.name]) == parameter.default, parameter.name


def test_the_values_in_the_table_have_the_fields_that_it_names():
    table = REFERENCE.split("## The values")[1].split("##")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) > 15
    for names, fields in rows:
        found = set(re.findall(r"`(\w+)(?:\(\))?`", fields)) - {
            name for name in session_actor.__all__ if name[0].isupper()
        }
        values = [getattr(session_actor, name) for name in re.findall(r"`(\w+)`", names)]
        missing = {field for field in found if not any(hasattr(value, field) for value in values)}
        assert missing == set(), names
        own = {name for value in values for name in fields_of(value) if not name.startswith("_")}
        untold = own - found - {"given_turns", "at_us", "open_calls", "configured", "run_from"}
        assert untold == set() or "…" in fields, names


def fields_of(value: type) -> tuple[str, ...]:
    """The fields of a Struct, and what a request knows beside its keys."""
    return getattr(value, "__struct_fields__", None) or getattr(value, "__slots__", ())


def test_every_method_is_in_the_table():
    table = REFERENCE.split("## All methods")[1].split("\n##")[0]
    for owner in (session_actor.Session, SessionService):
        told = {
            name
            for row in re.findall(rf"^\| `{owner.__name__}`(.*)", table, re.MULTILINE)
            for name in re.findall(r"`(\w+)`", row)
        }
        assert told == {name for name in dir(owner) if not name.startswith("_")}


def test_every_error_of_the_library_is_in_the_table():
    table = REFERENCE.split("## Errors")[1].split("\n## ")[0]
    named = [
        getattr(session_actor, name) for name in re.findall(r"`([A-Z]\w+)`", table) if hasattr(session_actor, name)
    ]
    errors = [getattr(session_actor, name) for name in session_actor.__all__]
    errors = [kind for kind in errors if isinstance(kind, type) and issubclass(kind, session_actor.SessionActorError)]
    roots = {"SessionActorError", "StoreError", "ActorError"}
    assert [kind for kind in errors if kind.__name__ not in roots and not issubclass(kind, tuple(named))] == []


def test_the_errors_in_the_table_are_errors_of_the_library():
    table = REFERENCE.split("## Errors")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`[A-Z].*?) \|", table, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) > 5
    assert all(issubclass(getattr(session_actor, name), session_actor.SessionActorError) for name in names)


def test_the_make_targets_that_the_readme_names_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"^    (?:\w+=\w+ )?make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test", "check", "test-all", "bench"} <= named <= targets


def test_the_files_that_the_readme_links_to_exist():
    for page in (ROOT / "README.md", *PAGES):
        links = re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8"))
        assert links
        assert [link for link in links if not (page.parent / link).exists()] == []
