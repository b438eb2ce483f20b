"""The house itself: rooms import one way, and every list of packages says the same."""

import ast
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
DOORS = {
    "graph": set(),
    "capture": {"graph"},
    "machine": {"graph", "capture"},
    "plan": {"graph"},
    "memory": {"graph", "plan"},
    "swap": {"graph", "machine", "plan", "memory"},
    "run": {"graph", "capture", "machine", "plan", "memory", "swap"},
    "zoo": {"capture"},
    "cli": {"graph", "capture", "machine", "plan", "memory", "swap", "run", "zoo"},
}
TOP = {"dropping", "ending", "errors", "files", "kernels", "progress", "rooms", "units"}
VIEWS = {"widgets", "plotly", "ipywidgets", "anywidget", "IPython", "graphviz"}


def imported(path: Path) -> set[str]:
    return imports_of(ast.parse(path.read_text()))


def imports_of(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rooms_imported(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported(path) if name.startswith("planner.")} - TOP - {"StowageError"}


@pytest.mark.parametrize("room", DOORS)
def test_a_room_imports_only_rooms_below_it(room: str) -> None:
    for path in (ROOT / "planner" / room).rglob("*.py"):
        assert rooms_imported(path) <= DOORS[room] | {room}, path


def test_the_folders_of_the_swap_planner_import_one_way() -> None:
    swap = ROOT / "planner" / "swap"
    below: dict[str, set[str]] = {}
    for path in swap.glob("*/**/*.py"):
        folder = path.relative_to(swap).parts[0]
        inside = {
            name.split(".")[2] for name in imported(path) if name.count(".") >= 3 and name.startswith("planner.swap.")
        }
        below.setdefault(folder, set()).update(inside - {folder})
    assert len(below) == 11
    assert set(TopologicalSorter(below).static_order()) >= set(below)  # which refuses a circle


def test_every_room_is_listed() -> None:
    assert {path.parent.name for path in (ROOT / "planner").glob("*/__init__.py")} == set(DOORS)


def test_the_planner_never_imports_a_view() -> None:
    for path in (ROOT / "planner").rglob("*.py"):
        assert not {name.split(".")[0] for name in imported(path)} & VIEWS, path


def test_one_module_alone_touches_what_pytorch_keeps_private() -> None:
    paths = set((ROOT / "planner").rglob("*.py"))
    trees = {path: ast.parse(path.read_text()) for path in paths}
    ours = {name for tree in trees.values() for name in defined(tree)}
    foreign = {path for path, tree in trees.items() if private_imports(tree) | (private_uses(tree) - ours)}
    assert foreign == {ROOT / "planner/capture/torch_private.py"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    return names


def private_imports(tree: ast.AST) -> set[str]:
    full = {name for name in imports_of(tree) if name.startswith("torch")}
    return {name for name in full if any(map(is_private, name.split(".")))}


def private_uses(tree: ast.AST) -> set[str]:
    """Private attributes read; an operator may be called `_softmax`, a named tuple's `_replace` is public, and Python
    has no other way to be told that the main thread has ended."""
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_private(node.attr)]
    public = ("torch.ops.", "_ATEN.", "sys.", "threading._register_atexit")
    return {node.attr for node in used if not ast.unparse(node).startswith(public)} - {"_replace"}


def test_importing_the_planner_waits_for_nothing_heavy() -> None:
    heavy = "{'torch', 'numba', 'plotly', 'transformers'} & set(sys.modules)"
    code = f"import planner, planner.cli, sys; print({heavy})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def packages(requirements: list[str]) -> dict[str, str]:
    return {re.split(r"[<>=]", line)[0]: line for line in requirements}


def test_conda_gets_the_packages_that_pip_gets() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    ours = packages(project["dependencies"])
    pip = next(line["pip"] for line in conda if isinstance(line, dict))  # what is not on conda-forge
    theirs = packages([line for line in [*conda, *pip] if isinstance(line, str) and line != "-e ."])
    torch = (ROOT / "constraints.txt").read_text().strip().splitlines()[-1]
    assert theirs.pop("pytorch").replace("pytorch=", "torch==") + ".0" == torch
    assert ours.pop("torch").startswith("torch>=")
    assert theirs.pop("python-graphviz").removeprefix("python-") == ours.pop("graphviz")
    assert {theirs.pop("graphviz"), theirs.pop("pip")} == {"graphviz", "pip"}
    assert theirs.pop("python").startswith("python=3.1")
    assert theirs == ours


def test_every_import_is_a_declared_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = set(packages(project["dependencies"])) | {"planner", "widgets", "minify"}  # of tdewolff-minify
    for path in [*(ROOT / "planner").rglob("*.py"), *(ROOT / "widgets").rglob("*.py")]:
        foreign = {name.split(".")[0] for name in imported(path)} - set(sys.stdlib_module_names)
        assert foreign <= declared | {"IPython"}, path
