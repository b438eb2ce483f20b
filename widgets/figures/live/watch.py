"""Live plots of a search and of a run."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, TypeVar
from weakref import ref

from planner.errors import StowageError
from planner.graph import Graph
from planner.run import Run
from planner.swap import SwapSearch
from widgets.figures import live_memory, search_history
from widgets.figures.theme import ThemeName

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, FigureWidget

    from widgets.figures.live.live_plot import LivePlot

_REFRESH = 0.5

Watched = TypeVar("Watched", SwapSearch, Run)


def watch(graph: Graph, search: SwapSearch, *, theme: ThemeName = "auto") -> FigureWidget:
    """`search_history` as a plot that is updated until the search ends; returns at once.

    To stop the search, call `search.cancel()` in another cell. A search that is referenced nowhere else ends by itself.

    Args:
        graph: the step that is planned.
        search: what `planner.swap.search_swaps` returned.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is.

    Raises:
        StowageError: the theme is unknown, or plotly or anywidget is missing.
    """
    return _followed(search, lambda now: search_history(graph, now, theme=theme))


def watch_run(run: Run, *, theme: ThemeName = "auto") -> FigureWidget:
    """`live_memory` as a plot that is updated until the run ends; returns at once.

    To stop the run, call `run.cancel()` in another cell. A run that is referenced nowhere else ends by itself.

    Args:
        run: what `planner.run` returned.
        theme: `"light"`, `"dark"`, or `"auto"`: as the notebook is.

    Raises:
        StowageError: the theme is unknown, or plotly or anywidget is missing.
    """
    return _followed(run, lambda now: live_memory(now, theme=theme))


def _followed(watched: Watched, draw: Callable[[Watched], Figure]) -> FigureWidget:
    """A plot that a thread redraws while the search or run is in progress and referenced elsewhere."""
    shown = _live(draw(watched))
    there = ref(watched)

    def follow() -> None:
        while (now := there()) is not None:
            running = now.progress.state == "running"
            fresh = draw(now)
            del now  # drops the reference while sleeping
            shown.follow(fresh)
            if not running:
                return
            sleep(_REFRESH)

    Thread(target=follow, name="stowage-watch", daemon=True).start()
    return shown


def _live(figure: Figure) -> LivePlot:
    """The figure as a `LivePlot`."""
    try:
        from widgets.figures.live.live_plot import LivePlot

        return LivePlot(figure)
    except ImportError as error:
        raise StowageError(
            "live plots need the package anywidget, which is missing: run `pip install anywidget`"
        ) from error
