"""A plotly figure in a notebook that a thread of the kernel redraws."""

from __future__ import annotations

from importlib import resources
from threading import RLock
from typing import Any

import traitlets
from plotly.graph_objects import Figure, FigureWidget

from widgets.canvas.bundle import script
from widgets.figures.page_figure import heading, without_heading
from widgets.figures.page_theme import page_style


class LivePlot(FigureWidget):  # type: ignore[misc]  # plotly has no types
    """A `FigureWidget` that takes on what other figures show, from any thread.

    Title, summary and key are text of the page above the plot, as those of other figures in a notebook are.

    Args:
        figure: what is shown first.
    """

    _esm = script("late")
    _css = page_style()
    _script = traitlets.Unicode(resources.files("plotly").joinpath("package_data/widgetbundle.js").read_text()).tag(
        sync=True
    )

    _heading = traitlets.Unicode().tag(sync=True)

    def __init__(self, figure: Figure) -> None:
        #: What the page says comes in another thread: traitlets would swallow what is sent at the same moment.
        self._turn = RLock()
        self._made = False
        super().__init__(without_heading(figure))
        self._heading = heading(figure)
        self._made = True
        self.open()

    def open(self) -> None:
        """Tell the page of it once it is made, with all that it shows: then nothing else has to arrive for that."""
        if self._made:
            super().open()

    def follow(self, fresh: Figure) -> None:
        """Show what a figure with as many traces shows.

        Args:
            fresh: the figure.
        """
        with self._turn:
            self._heading = heading(fresh)
            fresh = without_heading(fresh)
            with self.batch_update():
                for trace, new in zip(self.data, fresh.data, strict=True):
                    trace.update(new)  # in its place: a plot without traces would flash
                layout = fresh.layout.to_plotly_json()
                # as a whole: a longer list, updated, is sent both whole and by its entries, which the page refuses
                self.layout.annotations = layout.pop("annotations", ())
                self.layout.shapes = layout.pop("shapes", ())
                self.update_layout(layout)
            self._repr_mimebundle_()  # a page that has not drawn it yet begins with the whole state, which this sends

    def set_state(self, sync_data: Any) -> None:
        """Take on what the page says."""
        with self._turn:
            super().set_state(sync_data)

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        with self._turn:
            return super()._repr_mimebundle_(*args, **options)
