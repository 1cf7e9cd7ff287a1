"""docs/code.md names every module and package where it is, and no other; links of all pages lead to what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "code.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def named_in(floor: str) -> set[str]:
    """What the first column of the tables of a section names; a package ends in a slash."""
    section = PAGE.split(f"\n## `{floor}/`\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w/]+)`", cell)}


@pytest.mark.parametrize("floor", ["session_actor", "supervisors", "persistence"])
def test_every_module_and_package_of_a_floor_is_named_and_no_other(floor: str):
    folder = ROOT / floor
    there = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")}
    there |= {f"{path.name}/" for path in folder.iterdir() if (path / "__init__.py").exists() and not path.is_symlink()}
    assert named_in(floor) == there


def test_where_the_page_says_to_begin_there_is_a_module():
    rows = re.findall(r"^\| ((?:`\w+/`(?:, )?)+) \| .* \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) > 20
    for packages, begin in rows:
        names = re.findall(r"\w+", packages)
        folders = [ROOT / floor / name for floor in ("session_actor", "persistence") for name in names]
        for module in re.findall(r"\w+", begin):
            assert any((folder / f"{module}.py").exists() for folder in folders), (packages, module)


def test_what_the_page_names_on_its_ways_is_there():
    ways = PAGE.split("\n## The way of a change\n")[1].split("\n## `session_actor/`\n")[0]
    names = set(re.findall(r"`((?:\w+/)*\w+)/?`", ways))
    modules = {
        str(path.with_suffix("").relative_to(ROOT)).removeprefix("session_actor/")
        for floor in ("session_actor", "supervisors", "persistence")
        for path in (ROOT / floor).rglob("*.py")
    }
    packages = {str(Path(name).parent) for name in modules}
    known = modules | packages | {name.removeprefix("persistence/writing/") for name in modules}
    assert names - known == {"Push", "async", "await"}


def anchor(heading: str) -> str:
    """What a heading is called in links, as GitHub makes it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def test_the_headings_that_pages_link_to_are_there():
    anchors: dict[Path, set[str]] = {}
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        anchors[page] = {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    for page in PAGES:
        links = re.findall(r"\]\((?!http)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
        for file, wanted in links:
            target = (page.parent / file).resolve() if file else page
            assert wanted in anchors.get(target, {wanted}), (page.name, file, wanted)
