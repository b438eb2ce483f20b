"""The house itself: rooms import one way, and every list of packages says the same."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
#: By room, the rooms it may import; a room's files are imported from outside of it by its `__init__` alone.
PLANNER = {
    "torch_private": set(),
    "json_fields": set(),
    "graph": set(),
    "machine": {"graph"},
    "guards": {"torch_private"},
    "program": {"graph", "guards", "torch_private"},
    "step": {"graph", "guards", "program", "torch_private"},
    "capture": {"graph", "guards", "program", "step", "torch_private"},
    "profile": {"capture", "graph", "guards", "machine", "program", "step", "torch_private"},
    "plan": {"graph", "json_fields"},
    "memory": {"graph", "plan"},
    "snapshot": {"graph", "memory", "plan"},
    "search": set(),
    "swap": {"graph", "json_fields", "machine", "memory", "plan", "search"},
    "partition": {"capture", "graph", "json_fields", "machine", "memory", "program", "search", "torch_private"},
    "run": {
        "capture", "graph", "guards", "machine", "memory", "partition", "plan", "profile", "program", "step", "swap",
        "torch_private",
    },
    "selftest": {"capture", "graph", "plan", "profile", "program", "run", "step", "swap", "torch_private"},
    "apply": {"capture", "graph", "memory", "plan", "program", "step", "torch_private"},
    "fit": {"capture", "graph", "machine", "step", "swap"},
    "levers": {"capture", "fit", "graph", "machine", "memory", "plan", "step", "swap", "torch_private"},
    "zoo": {"step"},
    "cli": {
        "capture", "fit", "graph", "levers", "machine", "memory", "partition", "plan", "profile", "run", "search",
        "selftest", "snapshot", "swap", "zoo",
    },
}  # fmt: skip
WIDGETS = {
    "info": set(),
    "messages": {"info"},
    "page": set(),
    "figures": {"info", "page"},
    "fallback": {"figures", "info", "messages", "page"},
    "session": {"fallback", "info", "messages"},
    "panels": {"fallback", "messages", "page", "session"},
}
ROOMS = [(package, room) for package, rooms in (("planner", PLANNER), ("widgets", WIDGETS)) for room in rooms]
#: Folders with a file for each plot, model or family of operators, which may be many.
ONE_FILE_EACH = {"planner/zoo", "widgets/figures", "widgets/info"}
MOST_FILES = 12
VIEWS = {"widgets", "plotly", "ipywidgets", "anywidget", "IPython", "graphviz"}


@cache
def sources() -> dict[str, Path]:
    """By name, every module."""
    found = {}
    for path in [*(ROOT / "planner").rglob("*.py"), *(ROOT / "widgets").rglob("*.py")]:
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(path: Path) -> set[str]:
    return imports_of(parsed(path))


def imports_of(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@cache
def modules_imported(path: Path) -> set[str]:
    """The modules of ours that a file imports, wherever in it; a name that a room offers is the room's."""
    modules, names = sources(), set[str]()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = {f"{node.module}.{alias.name}" for alias in node.names if alias.name not in offered(node.module)}
            inner = full & set(modules)
            names |= inner | ({node.module} if len(inner) < len(node.names) else set())
    return names & set(modules)


@cache
def offered(room: str) -> set[str]:
    """The names in a room's `__all__`."""
    door = ROOT / room.replace(".", "/") / "__init__.py"
    lists = re.findall(r"^__all__ = (\[.*?\])", door.read_text(), re.M | re.S) if door.exists() else []
    return set() if not lists or room in ("planner", "widgets") else set(ast.literal_eval(lists[0]))


def in_a_circle(below: Mapping[str, Collection[str]]) -> list[str]:
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_room_is_listed() -> None:
    for package, rooms in (("planner", PLANNER), ("widgets", WIDGETS)):
        assert {path.parent.name for path in (ROOT / package).glob("*/__init__.py")} == set(rooms)


@pytest.mark.parametrize(("package", "room"), ROOMS)
def test_a_room_imports_only_rooms_below_it_and_these_by_their_doors(package: str, room: str) -> None:
    modules = sources()
    below = {"planner": PLANNER, "widgets": WIDGETS}[package][room]
    for name, path in modules.items():
        if not f"{name}.".startswith(f"{package}.{room}."):
            continue
        for other in modules_imported(path):
            there, *inner = other.split(".")[:1] + other.split(".")[1:]
            if inner and (there, inner[0]) in ROOMS and (there, inner[0]) != (package, room):
                assert len(inner) == 1, f"{name} imports {other} past its door"
                assert there != package or inner[0] in below, f"{name} imports {other}"


def test_no_files_import_each_other_in_a_circle() -> None:
    modules = sources()
    assert not in_a_circle({name: modules_imported(path) - {name} for name, path in modules.items()})


def test_no_folders_import_each_other_in_a_circle() -> None:
    modules = sources()

    def folder(path: Path) -> str:
        """A door stands by itself: it opens on all that is behind it."""
        return str(path if path.name in ("__init__.py", "__main__.py") else path.parent)

    below: dict[str, set[str]] = {}
    for path in modules.values():
        others = {folder(modules[other]) for other in modules_imported(path)}
        below.setdefault(folder(path), set()).update(others - {folder(path)})
    assert not in_a_circle(below)


def test_a_class_name_means_one_thing() -> None:
    where: dict[str, list[str]] = {}
    for name, path in sources().items():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name.lstrip("_"), []).append(name)
    assert not {name: places for name, places in where.items() if len(places) > 1}


def parameters(function: ast.FunctionDef) -> set[str]:
    """The names of a function's parameters."""
    given = function.args
    names = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {name.arg for name in names if name is not None}


def members(definition: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> set[str]:
    """The names of a class's fields, attributes and constructor's parameters, and of those that it inherits."""
    found: set[str] = set()
    for node in ast.walk(definition):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                found.add(name)
        if isinstance(node, ast.FunctionDef) and node.name in {"__init__", "__new__"}:
            found |= parameters(node)
    bases = [base.id for base in definition.bases if isinstance(base, ast.Name)]
    return found.union(*(members(classes[base], classes) for base in bases if base in classes))


def documented(docstring: str) -> Iterator[str]:
    """The names that a docstring lists as arguments or attributes."""
    section = ""
    for line in docstring.splitlines():
        if line and not line.startswith(" "):
            section = line.rstrip()
        elif section in {"Args:", "Attributes:"} and (listed := re.match(r"    ([\w*]+(?:, [\w*]+)*): ", line)):
            yield from listed[1].replace("*", "").split(", ")


def test_a_docstring_lists_only_arguments_and_attributes_that_exist() -> None:
    """So a name that is changed is changed where it is explained, too."""
    trees = {name: parsed(path) for name, path in sources().items()}
    nodes = [(name, node) for name, tree in trees.items() for node in ast.walk(tree)]
    classes = {node.name: node for _, node in nodes if isinstance(node, ast.ClassDef)}
    wrong = []
    for module, node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            exist = members(node, classes) if isinstance(node, ast.ClassDef) else parameters(node)
            listed = documented(ast.get_docstring(node) or "")
            wrong += [f"{module}.{node.name}: {name}" for name in listed if name not in exist]
    assert not wrong


def test_no_folder_has_more_files_than_one_overlooks() -> None:
    for folder in {path.parent for path in sources().values()}:
        files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= MOST_FILES or str(folder.relative_to(ROOT)) in ONE_FILE_EACH, folder


def test_the_planner_never_imports_a_view() -> None:
    for path in (ROOT / "planner").rglob("*.py"):
        assert not {name.split(".")[0] for name in imported(path)} & VIEWS, path


def test_one_room_alone_touches_what_pytorch_keeps_private() -> None:
    paths = set((ROOT / "planner").rglob("*.py"))
    trees = {path: parsed(path) for path in paths}
    ours = {name for tree in trees.values() for name in defined(tree)}
    foreign = {path for path, tree in trees.items() if private_imports(tree) | (private_uses(tree) - ours)}
    assert {path.parent for path in foreign} == {ROOT / "planner/torch_private"}


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
    """Private attributes read; an operator may be called `_softmax`, a named tuple's `_replace` and `os._exit` are
    public, and Python has no other way to be told that the main thread has ended."""
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_private(node.attr)]
    public = ("torch.ops.", "_ATEN.", "sys.", "os._exit", "threading._register_atexit")
    return {node.attr for node in used if not ast.unparse(node).startswith(public)} - {"_replace"}


def test_importing_the_planner_waits_for_nothing_heavy() -> None:
    heavy = "{'torch', 'numba', 'plotly', 'transformers'} & set(sys.modules)"
    code = f"import planner, planner.cli, sys; print({heavy})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_predict_in_a_notebook_has_an_answer_that_folds_out(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "markdown"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    assert text.count("<details>") == text.count("</details>") >= text.count("**Predict.**")


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
