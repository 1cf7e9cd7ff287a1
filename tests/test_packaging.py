"""What is built and installed: one top-level name, with everything in it, that no folder of an application shadows."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import session_actor
import session_actor.errors
import session_actor.service_errors
import session_actor.window.errors

ROOT = Path(__file__).parents[1]
SOURCES = ("session_actor", "supervisors", "persistence", "pyproject.toml", "README.md", "LICENSE")
FOLDERS = ("session_actor", "supervisors", "persistence", "tests", "bench", "examples")
HEAVY = {
    "aiofiles",
    "anyio",
    "structlog",
    "sqlite3",
    "uvloop",
    "trio",
    "httpx",
    "starlette",
    "rich",
    "unittest",
    "argparse",
}


def run_python(*arguments: str, cwd: Path, path: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(path) if path else ""}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel made from it, built from a copy of the sources."""
    folder = tmp_path_factory.mktemp("build")
    sources = folder / "sources"
    sources.mkdir()
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, sources / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, sources / name)
    run_python("-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(sources), cwd=folder)
    return folder / "dist"


@pytest.fixture(scope="module")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel was installed; the dependencies are those of this environment."""
    target = tmp_path_factory.mktemp("site")
    wheel = next(distributions.glob("*.whl"))
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--target")
    run_python(*pip, str(target), str(wheel), cwd=distributions)
    return target


def test_the_wheel_holds_one_top_level_name_and_its_metadata(distributions: Path):
    names = zipfile.ZipFile(next(distributions.glob("*.whl"))).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"session_actor"}


def test_the_wheel_holds_every_module_and_the_data(distributions: Path):
    names = set(zipfile.ZipFile(next(distributions.glob("*.whl"))).namelist())
    package = ROOT / "session_actor"
    modules = {path.relative_to(ROOT).as_posix() for path in every_file(package) if path.suffix == ".py"}
    assert modules | {"session_actor/py.typed", "session_actor/data/sample_transcript.jsonl"} <= names


def test_the_wheel_brings_the_command(installed: Path, tmp_path: Path):
    (entry,) = installed.glob("*.dist-info/entry_points.txt")
    assert "session-actor = session_actor.__main__:main" in entry.read_text(encoding="utf-8").splitlines()
    assert run_python("-m", "session_actor", "--version", cwd=tmp_path, path=installed).startswith("session-actor ")


def test_the_sdist_holds_the_three_floors_as_files(distributions: Path):
    with tarfile.open(next(distributions.glob("*.tar.gz"))) as archive:
        files = {"/".join(member.name.split("/")[1:]) for member in archive.getmembers() if member.isfile()}
    assert {f"session_actor/{floor}__init__.py" for floor in ("", "supervisors/", "persistence/")} <= files


def test_every_package_is_listed_in_the_project_file():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    shipped = [path for path in every_file(ROOT / "session_actor") if "__pycache__" not in path.parts]
    assert set(listed) == {".".join(path.parent.relative_to(ROOT).parts) for path in shipped}


def test_the_installed_wheel_works_beside_folders_of_an_application_with_the_floors_names(
    installed: Path, tmp_path: Path
):
    for name in ("persistence", "supervisors"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('the folder of the application')\n")
    (tmp_path / "main.py").write_text(
        "import session_actor.persistence, session_actor.supervisors\nprint(session_actor.persistence.__file__)\n"
    )
    assert run_python("main.py", cwd=tmp_path, path=installed).strip().startswith(str(installed))


def test_the_installed_wheel_keeps_a_conversation(installed: Path, tmp_path: Path):
    (tmp_path / "main.py").write_text(
        "import asyncio, session_actor\n"
        "async def main():\n"
        "    async with session_actor.SessionService.open('conversations/') as service:\n"
        "        session = await service.session('user-42', create=True)\n"
        "        await session.add_user('hello', durability='written')\n"
        "    async with session_actor.SessionService.open('conversations/') as service:\n"
        "        stack = await (await service.session('user-42')).stack()\n"
        "        print(len(stack), session_actor.__file__)\n"
        "asyncio.run(main())\n"
    )
    frames, path = run_python("-W", "error", "main.py", cwd=tmp_path, path=installed).split()
    assert frames == "1"
    assert path.startswith(str(installed))


def test_importing_the_library_imports_nothing_heavy(tmp_path: Path):
    program = "import sys; before = set(sys.modules); import session_actor; print(*(set(sys.modules) - before))"
    loaded = {name.split(".")[0] for name in run_python("-c", program, cwd=tmp_path).split()}
    assert "session_actor" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.parametrize("name", session_actor.__all__)
def test_a_public_name_is_there_and_says_what_it_is(name: str):
    value = getattr(session_actor, name)
    is_alias = not inspect.isclass(value) and not inspect.isfunction(value)
    assert name in described_names() if is_alias else value.__doc__


@cache
def described_names() -> set[str]:
    """What modules of the package assign and describe in a text below: an alias has no docstring of its own."""
    found = set[str]()
    for path in (path for path in every_file(ROOT / "session_actor") if path.suffix == ".py"):
        for statement, after in pairwise(ast.parse(path.read_text(encoding="utf-8")).body):
            match statement, after:
                case (
                    ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]),
                    ast.Expr(ast.Constant(str())),
                ):
                    found.add(name)
    return found


@pytest.mark.parametrize("owner", [*session_actor.Session.__mro__[:-1], session_actor.SessionService])
def test_every_method_that_waits_says_what_cancelling_does(owner: type):
    waits = [method for name, method in vars(owner).items() if not name.startswith("_") and is_waited_for(method)]
    texts = {method.__name__: f"{method.__doc__} {owner.__doc__}" for method in waits}
    assert texts
    assert [name for name, text in texts.items() if "cancel" not in text.lower()] == []


def is_waited_for(method: object) -> bool:
    if not inspect.isfunction(method):
        return False
    gives = str(method.__annotations__.get("return"))
    return inspect.iscoroutinefunction(method) or gives.startswith(("Coroutine", "AsyncIterator"))


def test_every_error_is_a_public_name():
    modules = (session_actor.errors, session_actor.service_errors, session_actor.window.errors)
    kinds = {kind for module in modules for kind in vars(module).values() if inspect.isclass(kind)}
    errors = {kind.__name__ for kind in kinds if issubclass(kind, session_actor.SessionActorError)}
    assert errors - set(session_actor.__all__) == set()


def test_only_public_names_are_listed():
    assert dir(session_actor) == sorted([*session_actor.__all__, "__version__"])


def test_the_version_is_that_of_the_project_file():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert session_actor.__version__ == project["version"]


def test_every_public_name_is_known_to_a_type_checker_and_no_other_is(tmp_path: Path):
    pytest.importorskip("mypy", reason="mypy comes with `make check`")
    names = ", ".join(session_actor.__all__)
    program = tmp_path / "program.py"
    program.write_text(f"from session_actor import {names}\nfrom session_actor import Nonsense\n")
    command = ("-m", "mypy", "--follow-imports=skip", "--cache-dir", str(tmp_path / "cache"), "--config-file", "")
    files = (str(ROOT / "session_actor" / "__init__.py"), str(program))
    done = subprocess.run([sys.executable, *command, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, done.stdout + done.stderr
    assert 'has no attribute "Nonsense"' in errors[0]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        session_actor.Nonsense  # noqa: B018


def test_no_file_imports_a_floor_by_its_bare_name():
    bare = []
    for path in (path for folder in FOLDERS for path in every_file(ROOT / folder) if path.suffix == ".py"):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\bimport\b.*\b(supervisors|persistence)\b|\bfrom\s+(supervisors|persistence)\b", text):
            continue  # parsing takes long
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            bare += [path for name in names if name.split(".")[0] in {"supervisors", "persistence"}]
    assert bare == []


def every_file(folder: Path) -> list[Path]:
    """Lists the files below a folder, through the symlinks to the lower floors."""
    return [Path(root) / name for root, _, names in os.walk(folder, followlinks=True) for name in names]
