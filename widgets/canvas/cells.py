"""Which notebook cell shows which widget, so that running a cell again ends what it showed before."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

#: By cell: the execution in which it was last seen, and what it shows.
_cells: dict[str, tuple[str, WeakSet[Any]]] = {}
_ends: WeakKeyDictionary[Any, Callable[[], None]] = WeakKeyDictionary()


def shown(widget: Any, end: Callable[[], None]) -> None:
    """Note that the cell which is running shows a widget, and end those that it showed when it ran before.

    Args:
        widget: it may be shown by several cells.
        end: called once none of its cells shows it any more; it must not hold the widget.
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
    """The cell that is running and its execution, by the names that notebooks give them; empty where there are none."""
    module = sys.modules.get("IPython")
    kernel = getattr(None if module is None else module.get_ipython(), "kernel", None)
    parent = {} if kernel is None else kernel.get_parent() or {}
    return parent.get("metadata", {}).get("cellId", ""), parent.get("header", {}).get("msg_id", "")


def _nothing() -> None:
    """Nothing to end."""
