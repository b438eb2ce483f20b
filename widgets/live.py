"""Pictures that follow what runs in the background, while the notebook goes on."""

from __future__ import annotations

from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any
from weakref import ref

from planner.graph import Graph
from planner.swap import SwapSearch
from widgets.figures import search_history
from widgets.figures.theme import ThemeName

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_REFRESH = 0.5


def watch(graph: Graph, search: SwapSearch, *, theme: ThemeName = "light") -> None:
    """Show `search_history` and redraw it until the search ends; returns at once.

    Whoever wants to stop the search calls `search.cancel()` in another cell; a search that nobody else holds on to
    ends by itself.

    Args:
        graph: the step that is planned.
        search: what `planner.swap.search_swaps` returned.
        theme: `"light"` or `"dark"`.

    Raises:
        StowageError: the theme is unknown, or plotly is missing.
    """
    from IPython.display import display

    first = _shown(search_history(graph, search, theme=theme))
    handle: Any = display(first, raw=True, display_id=True)  # type: ignore[no-untyped-call]
    watched = ref(search)

    def follow() -> None:
        while (now := watched()) is not None:
            running = now.progress.state == "running"
            handle.update(_shown(search_history(graph, now, theme=theme)), raw=True)
            del now  # the search is not kept alive while this sleeps
            if not running:
                return
            sleep(_REFRESH)

    Thread(target=follow, name="stowage-watch", daemon=True).start()


def _shown(figure: Figure) -> Any:
    """What a notebook shows of a plot; displayed as itself it would make a new place for every change."""
    return figure._repr_mimebundle_()
