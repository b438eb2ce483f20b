"""Link the widgets of the same step or graph, which share selection, hover and cursor in the page."""

from __future__ import annotations

from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

_links: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def link_of(step: Any, graph: Any) -> str:
    """The link id shared by all widgets of a step and of the graph captured from it.

    Args:
        step, graph: the step and its graph; either may be None.
    """
    known = [one for one in (step, graph, getattr(step, "graph", None)) if one is not None]
    known += [one for one in list(_links) if graph is not None and getattr(one, "graph", None) is graph]
    link = next((_links[one] for one in known if one in _links), uuid4().hex)
    for one in known:
        _links[one] = link
    return link
