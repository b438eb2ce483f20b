"""Track which notebook cell shows which widget, so that running a cell again ends the widgets it showed before."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

#: By cell: its last execution, and the widgets it shows.
_cells: dict[str, tuple[str, WeakSet[Any]]] = {}
_ends: WeakKeyDictionary[Any, Callable[[], None]] = WeakKeyDictionary()


def shown(widget: Any, end: Callable[[], None]) -> None:
    """Record that the running cell shows a widget, and end the widgets of the cell's previous execution.

    Args:
        widget: may be shown by several cells.
        end: called once no cell shows the widget any more; must not hold a strong reference to the widget.
    """
    cell, execution = _running()
    if not cell:
        return
    last, before = _cells.get(cell, ("", WeakSet()))
    if last != execution:
        _cells[cell] = (execution, WeakSet())
    _cells[cell][1].add(widget)
    _ends[widget] = end
    if last != execution:
        for other in list(before):
            if other is not widget and not any(other in here for _, here in _cells.values()):
                _ends.pop(other, _nothing)()


def _running() -> tuple[str, str]:
    """The ids of the running cell and of its execution; empty outside a notebook."""
    module = sys.modules.get("IPython")
    kernel = getattr(None if module is None else module.get_ipython(), "kernel", None)
    parent = {} if kernel is None else kernel.get_parent() or {}
    return parent.get("metadata", {}).get("cellId", ""), parent.get("header", {}).get("msg_id", "")


def _nothing() -> None:
    """Do nothing."""
