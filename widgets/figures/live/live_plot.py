"""A plotly figure in a notebook that is redrawn from a thread of the kernel."""

from __future__ import annotations

from importlib import resources
from threading import RLock
from typing import Any

import traitlets
from plotly.graph_objects import Figure, FigureWidget

from widgets.figures.notebook_figure import heading, without_heading
from widgets.figures.notebook_style import page_style
from widgets.page import script


class LivePlot(FigureWidget):  # type: ignore[misc]  # plotly has no types
    """A `FigureWidget` whose contents can be replaced by another figure's from any thread.

    Title, summary and key are page text above the plot, as for other figures in a notebook.

    Args:
        figure: the initial figure.
    """

    _esm = script("lazy_loader")
    _css = page_style()
    _script = traitlets.Unicode(resources.files("plotly").joinpath("package_data/widgetbundle.js").read_text()).tag(
        sync=True
    )

    _heading = traitlets.Unicode().tag(sync=True)

    def __init__(self, figure: Figure) -> None:
        #: Messages from the page are answered in another thread; without a lock, traitlets would lose a concurrent
        #: update, and a reply with the state before an update could arrive after it.
        self._lock = RLock()
        self._made = False
        super().__init__(without_heading(figure))
        self._heading = heading(figure)
        self._made = True
        self.open()

    def open(self) -> None:
        """Open the widget in the page with its complete state, so that no further message is needed to show it."""
        if self._made:
            super().open()

    def follow(self, fresh: Figure) -> None:
        """Replace the contents by those of a figure with the same number of traces.

        Args:
            fresh: the new figure.
        """
        with self._lock:
            self._heading = heading(fresh)
            fresh = without_heading(fresh)
            with self.batch_update():
                for trace, new in zip(self.data, fresh.data, strict=True):
                    trace.update(new)  # in place, because removing the traces would flash
                layout = fresh.layout.to_plotly_json()
                # replaced as a whole: plotly sends a longer list both whole and by entry, which the page rejects
                self.layout.annotations = layout.pop("annotations", ())
                self.layout.shapes = layout.pop("shapes", ())
                self.update_layout(layout)
            self._repr_mimebundle_()  # sends the complete state, with which a page that has not drawn it yet begins

    def set_state(self, sync_data: Any) -> None:
        """Apply a state update from the page."""
        with self._lock:
            super().set_state(sync_data)

    def send_state(self, key: Any = None) -> None:
        """Send the state, or a part of it, to the page; what the page asks for must not pass a later change."""
        with self._lock:
            super().send_state(key)

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        with self._lock:
            return super()._repr_mimebundle_(*args, **options)
