"""Names of source files for people: short, and without the folders of the computer that a step was captured on."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py$|^<ipython-input-(?P<number>\d+)-\w+>$")


def is_typed(filename: str) -> bool:
    """Whether a code object's file is a cell of a notebook, or what was typed at a prompt."""
    return filename == "<stdin>" or filename.startswith("<python-input-") or _CELL.search(filename) is not None


def file_name(filename: str) -> str:
    """Return the name by which a code object's file is shown and kept.

    A cell of a notebook is named by its number (`cell [3]`), and any other file by its last part (`model.py`), so
    that no name tells where a user's folders are.

    Args:
        filename: `frame.f_code.co_filename`.
    """
    cell = _CELL.search(filename)
    if cell is not None:
        number = cell["number"] or _cell_number(filename)
        return f"cell [{number}]" if number else "cell"
    if filename.startswith("<"):
        return filename
    return Path(filename).name


def _cell_number(filename: str) -> str:
    """The number of the cell that IPython compiled as a file, which it gives to its own tracebacks; `""` if unknown."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    named = None if shell is None else shell.compile.format_code_name(filename)
    return "" if named is None else str(named[1]).removeprefix("In[").removesuffix("]")
