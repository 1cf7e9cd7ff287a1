"""The same seed chooses the same cases; a full run leaves none out; README.md names the test of each promise."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from ..scale import Faults

HERE = Path(__file__).parent
ROW = re.compile(r"^\| .+ \| `([\w/]+\.py)(?:::(\w+))?` \| .+ \|$")
APART = {"test_found.py", "test_frame.py"}


def test_the_same_seed_chooses_the_same_cases_for_each_test():
    chosen = [Faults(0.1, seed, name).some(range(1000)) for seed, name in ((1, "a"), (1, "a"), (2, "a"), (1, "b"))]
    assert chosen[0] == chosen[1]
    assert chosen[0] not in chosen[2:]
    assert len(set(chosen[0])) == 100


def test_a_full_run_leaves_no_case_out():
    assert Faults(1.0, 1, "a").some(range(50)) == list(range(50))
    assert Faults(1.0, 1, "a").count(100_000) == 100_000


def test_a_run_tells_its_seed(pytestconfig, faults):
    assert pytestconfig.option.faults_seed == faults.seed
    assert getattr(pytestconfig, "workerinput", {}).get("FAULTS_SEED", str(faults.seed)) == str(faults.seed)


def named_in(path: Path) -> set[str]:
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name for node in functions if node.name.startswith("test_")}


def test_every_promise_names_a_test_that_exists_and_every_test_of_this_folder_is_named():
    rows = [line for line in (HERE / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    named = [ROW.match(row).groups() for row in rows]
    assert [name for path, name in named if name and name not in named_in(HERE.parent / path)] == []
    here = {name for path in HERE.glob("test_*.py") if path.name not in APART for name in named_in(path)}
    assert here - {name for _, name in named} == set()
