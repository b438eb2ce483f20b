"""A room that is called like a function also looks like one to whoever asks for help."""

import inspect
import pydoc
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from IPython.core.oinspect import Inspector

import planner
import widgets

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(("name", "home"), [("capture", "capture"), ("machine", "profile"), ("run", "run")])
def test_a_room_shows_the_signature_and_docstring_of_its_function(name: str, home: str) -> None:
    room = getattr(planner, name)
    function = getattr(getattr(planner, home), name)
    assert inspect.signature(room) == inspect.signature(function)
    arguments = list(inspect.signature(function).parameters)
    text = pydoc.render_doc(room, renderer=pydoc.plaintext)
    assert re.search(rf"DESCRIPTION\n\s+planner.{name}\({arguments[0]}.*\)\n\s*\n", text)  # on top, without types
    assert re.search(rf"\n    {name}\(\s*{arguments[0]}", text)  # a line for each argument from Python 3.13 on
    asked = Inspector(theme_name="nocolor").info(room, oname=name)
    assert "".join(asked["definition"].split()).startswith(f"{name}({arguments[0]}")
    for line in filter(None, map(str.strip, (inspect.getdoc(function) or "").splitlines())):
        assert line in text
        assert line in asked["docstring"]


def test_what_machines_are_is_known_without_torch() -> None:
    code = "import planner.machine, sys; print(planner.machine.PRESETS['v100-16gb'], 'torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("<Machine v100-16gb: NVIDIA V100")
    assert shown.endswith("False\n")


@pytest.mark.parametrize("package", [planner, widgets])
def test_type_checkers_see_what_is_offered(package: ModuleType) -> None:
    stub = Path(str(package.__file__)).with_suffix(".pyi").read_text()
    assert set(re.findall(r"import \w+ as (\w+)$", stub, re.MULTILINE)) == set(package.__all__)


def test_every_file_of_a_package_is_installed() -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    for package, patterns in data.items():
        kinds = {path for pattern in patterns for path in (ROOT / package).glob(pattern)}
        files = {path for path in (ROOT / package).rglob("*.*") if path.is_file() and "__pycache__" not in path.parts}
        assert {path for path in files if path.suffix != ".py"} == kinds
