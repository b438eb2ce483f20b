"""Notebooks as they are stored: short, without outputs, and openable anywhere. That they run is another check."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
README = FOLDER.parent / "README.md"


def load(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def test_there_is_a_first_one() -> None:
    assert FOLDER / "00_start_here.ipynb" in NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_and_stored_without_outputs(path: Path) -> None:
    notebook = load(path)
    nbformat.validate(notebook)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert "widgets" not in notebook["metadata"]
    cells = notebook["cells"]
    assert len(cells) <= 20
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        lines = "".join(cell["source"]).splitlines()
        assert 1 <= len(lines) <= 10, cell["id"]
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            ast.parse("\n".join(lines))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_asks_before_it_shows_and_ends_with_an_exercise(path: Path) -> None:
    texts = ["".join(cell["source"]) for cell in load(path)["cells"] if cell["cell_type"] == "markdown"]
    assert sum("**Predict.**" in text for text in texts) >= 3
    assert "**Exercise.**" in texts[-1]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_leaves_progress_to_the_calls_and_drawing_to_the_figures(path: Path) -> None:
    code = ast.parse("\n".join("".join(cell["source"]) for cell in load(path)["cells"] if cell["cell_type"] == "code"))
    nodes = list(ast.walk(code))
    assert not [node for node in nodes if isinstance(node, ast.While)]
    assert not [node for node in nodes if isinstance(node, ast.keyword) and node.arg == "progress"]
    assert not {node.module for node in nodes if isinstance(node, ast.ImportFrom)} & {"time", "tqdm"}
    names = [alias.name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    assert not [name for name in names if name.startswith("_")], "what a notebook needs is public"


#: Words of a private language, and of persons where tensors are meant.
NOT_SAID = re.compile(r"\b(who|whom|anybody|nobody|somebody|slots?|holes?|lies|one may)\b", re.IGNORECASE)


@pytest.mark.parametrize("path", [*NOTEBOOKS, README], ids=lambda path: path.stem)
def test_tensors_are_things_and_ops_are_counted_as_ops(path: Path) -> None:
    if path.suffix == ".md":
        texts = [path.read_text(encoding="utf-8")]
    else:
        texts = ["".join(cell["source"]) for cell in load(path)["cells"] if cell["cell_type"] == "markdown"]
    found = [text[max(0, said.start() - 40) : said.end() + 20] for text in texts for said in NOT_SAID.finditer(text)]
    assert found == []
