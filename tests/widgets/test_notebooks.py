"""Notebooks as they are stored: short, without outputs, and openable anywhere. That they run is another check."""

import ast
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


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
