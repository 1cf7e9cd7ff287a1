"""What all commands have in common: help, JSON, wrong directories, odd ids, nothing of what was said."""

from __future__ import annotations

import asyncio
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import SessionService, __version__
from session_actor.__main__ import main
from session_actor.cli.harmless import block, brief, given_id, one_line, shown_id
from session_actor.cli.program import COMMANDS
from session_actor.cli.schemas import kinds, schema_of

from .conftest import ODD, WITH_JSON

GOLDEN = Path(__file__).with_name("schemas.json")
OF_A_SESSION = ("show", "tree", "replay", "diff", "tail", "stats", "export")
MORE = {"diff": ["1"], "tail": ["--no-follow"]}


def reading(name: str, folder: object, session: str) -> list[object]:
    return [name, *MORE.get(name, []), "--", folder, session] if name != "diff" else [name, "--", folder, session, "1"]


# --- help -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_has_examples_that_call_it(run, name):
    ran = run(name, "--help")
    assert (ran.code, ran.err) == (0, "")
    examples = ran.out.partition("Examples:\n")[2].strip().splitlines()
    assert examples
    assert all(f"session-actor {name}" in line for line in examples)


def test_the_help_of_all_lists_every_command_and_every_exit_code(run):
    ran = run("--help")
    assert ran.code == 0
    assert re.findall(r"^  (\w+)  ", ran.out, re.MULTILINE) == list(COMMANDS)
    assert run().out == ran.out
    assert "example:\n  session-actor list" in ran.out


@pytest.mark.parametrize("name", sorted(WITH_JSON))
def test_every_command_has_json(run, name):
    assert "--json" in run(name, "--help").out


def test_the_version_is_told(run):
    assert run("--version").out == f"session-actor {__version__}\n"


def test_an_unknown_command_is_told_in_one_line_with_what_was_meant(run):
    ran = run("shw")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert "did you mean show?" in ran.err


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from session_actor.__main__ import main; main(['--help'])\n"
        "sys.exit(' '.join({'click', 'rich', 'msgspec', 'asyncio', 'sqlite3', 'argparse'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in {"doctor", "import", "export"}])
def test_the_help_of_a_command_does_not_import_what_it_reads_with(name):
    module = COMMANDS[name].module
    program = (
        f"import sys; import session_actor.cli.{module}\n"
        "sys.exit(' '.join({'rich', 'asyncio', 'sqlite3', 'session_actor.persistence'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


# --- directories and ids ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["list", "stats", *OF_A_SESSION, "verify", "repair"])
def test_a_directory_that_is_missing_or_no_store_gets_one_clear_line(run, name, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for directory in (tmp_path / "missing", tmp_path / "mine", tmp_path / "mine" / "notes.txt"):
        ran = run(*reading(name, directory, "user-42")) if name in OF_A_SESSION else run(name, directory)
        assert (ran.code, ran.out) == (2, "")
        assert len(ran.err.splitlines()) == 1
        assert str(directory) in ran.err
        assert "is no session-actor store" in ran.err


@pytest.mark.parametrize("name", OF_A_SESSION)
def test_a_session_that_is_not_there_gets_one_line_that_says_how_to_find_it(run, made, name):
    ran = run(*reading(name, made, "nobody"))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "there is no session nobody here; `session-actor list` shows those that are\n"


@pytest.mark.parametrize("name", OF_A_SESSION)
def test_an_odd_id_is_given_as_the_list_shows_it(run, made, name):
    (line,) = [line for line in run("list", made).lines if "odd" in line]
    typed = line.partition('"')[1] + line.partition('"')[2]
    assert json.loads(typed) == ODD
    assert shlex.split(shlex.quote(typed)) == [typed]
    assert run(*reading(name, made, typed)).code == 0


def test_where_the_locale_is_ascii_ids_are_shown_and_taken_nevertheless(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert shown_id("zoë/🙂") == json.dumps("zoë/🙂")
    assert given_id("zoë/🙂".encode().decode("ascii", "surrogateescape")) == "zoë/🙂"
    assert given_id("\udcff") == "\udcff"


@pytest.mark.parametrize("name", OF_A_SESSION)
def test_what_the_library_keeps_for_itself_is_no_session(run, made, name):
    ran = run(*reading(name, made, '"\\u0000session-actor/hooks"'))
    assert (ran.code, ran.out) == (2, "")
    assert "is no session" in ran.err


def test_a_broken_json_string_is_no_id(run, made):
    ran = run("show", made, '"\\x"')
    assert ran.code == 2
    assert "JSON string" in ran.err


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=40))
def test_any_id_comes_back_from_how_it_is_shown(session_id):
    shown = shown_id(session_id)
    assert given_id(shown) == session_id
    assert shown.isprintable() or block(shown) == shown
    assert not any(character.isspace() and character != " " for character in shown)
    assert shown[0] != "-"


# --- nothing of what was said -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [[], ["--json"]])
@pytest.mark.parametrize(
    "arguments",
    [
        *(["list"], ["stats"], ["stats", "user-42"], ["doctor"], ["tree", "user-42"], ["diff", "user-42", "first"]),
        *(["replay", "user-42"], ["replay", "user-42", "--requests"], ["replay", "user-42", "--request", "6"]),
        *(["replay", "user-42", "--why", "7"], ["tail", "user-42", "--no-follow", "-n", "99"], ["verify"]),
    ],
    ids=" ".join,
)
def test_only_show_and_export_tell_what_was_said_unless_they_are_asked(run, made, arguments, mode):
    ran = run(arguments[0], made, *arguments[1:], *mode)
    assert ran.out
    for word in ("secret", "gauges", "mira", "Mole", "trust me"):
        assert word not in ran.out + ran.err


@pytest.mark.parametrize("mode", [[], ["--json"]])
@pytest.mark.parametrize("arguments", [["show"], ["tail", "--no-follow", "-n", "99", "--content"]], ids=" ".join)
def test_what_is_asked_for_is_told(run, made, arguments, mode):
    out = run(arguments[0], made, "user-42", *arguments[1:], *mode).out
    assert "secret question" in out
    assert "secret result" in out


# --- escapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [["show"], ["tail", "--no-follow", "-n", "99", "--content"], ["replay", "--to", "frame:2", "--content"],
     ["export", "--form", "markdown"], ["replay", "--request", "6", "--content"]],
    ids=" ".join,
)  # fmt: skip
def test_nothing_that_was_said_drives_the_terminal(run, made, arguments):
    out = run(arguments[0], made, "user-42", *arguments[1:]).out
    assert "secret question" in out
    assert all(character.isprintable() or character == "\n" for character in out)


async def odd_model(root: Path) -> None:
    async with SessionService.open(root) as service:
        session = await service.session("user-42", create=True)
        await session.configure(model=f"{root}\x1b[31m\u202emodel")  # warned of once in a process
        await session.add_user("Hello")


@pytest.mark.parametrize("mode", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(
    "arguments", [("show",), ("tree",), ("stats",), ("replay", "--to", "last"), ("diff", "first")], ids=" ".join
)
def test_a_model_that_is_not_known_is_noted_and_not_among_the_data(run, tmp_path, monkeypatch, arguments, mode):
    monkeypatch.setattr("session_actor.models.profiles._warned", set())
    asyncio.run(odd_model(tmp_path / "store"))
    command, *rest = arguments
    monkeypatch.setattr("session_actor.models.profiles._warned", set())
    ran = run(command, tmp_path / "store", "user-42", *rest, *mode)
    assert "model_unknown" not in ran.out
    assert ran.err.startswith("warning: model_unknown, model=")
    assert not {"\x1b", "\u202e"} & set(ran.out + ran.err)
    assert len(ran.err.splitlines()) == 1


def test_what_was_said_cannot_look_like_a_line_of_ours(run, made):
    lines = run("show", made, "user-42").lines
    assert [line for line in lines if "frame 99" in line] == ["  ── frame 99 · user␛[31m<U+009B>2J<U+202E>"]


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_becomes_harmless(text):
    shown = block(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    assert block(shown) == shown
    assert "\n" not in one_line(text)
    assert len(brief(text)) <= 72
    if not re.search(r"[^\x20-\x7e\n\t]", text):
        assert shown == text


# --- colours ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals_and_no_color_is_kept(monkeypatch, capsys, made, environment, coloured):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["tree", str(made), "user-42"]) == 0
    assert ("\033[" in capsys.readouterr().out) == coloured


def test_no_colour_goes_into_a_pipe(run, made):
    assert "\033" not in run("tree", made, "user-42").out


# --- schemas ----------------------------------------------------------------------------------------------------------


def test_schemas_are_printed(run):
    assert json.loads(run("schema").out) == {name: schema_of(name) for name in kinds()}
    assert json.loads(run("schema", "list").out) == schema_of("list")


def test_every_kind_of_line_names_its_command_and_version():
    for name, lines in kinds().items():
        for line in lines:
            (tag,) = [line.__struct_config__.tag]
            assert re.fullmatch(rf"{name}\.\w+/\d+", tag)


def test_within_a_version_fields_are_only_added():
    """The golden file holds the fields of every version that was ever released."""
    golden: dict[str, dict[str, object]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    now = fields()
    assert golden.keys() <= now.keys()
    for kind, known in golden.items():
        assert known.items() <= now[kind].items(), kind
    assert golden == now, f"new fields: write them into {GOLDEN.name}"


def fields() -> dict[str, dict[str, object]]:
    """By kind of line, each of its fields with its schema."""
    found: dict[str, dict[str, object]] = {}
    for name in kinds():
        for part in schema_of(name)["$defs"].values():
            properties = part["properties"]
            tag = properties.pop("schema", {"enum": [f"part of {part['title']}"]})["enum"][0]
            found[tag] = properties
    return found
