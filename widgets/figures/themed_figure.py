"""A plotly figure that follows the theme of the notebook it is shown in."""

from __future__ import annotations

from typing import Any

import plotly.io
from plotly.graph_objects import Figure

from widgets.figures.page_theme import page_style


class ThemedFigure(Figure):  # type: ignore[misc]  # plotly has no types
    """A plot drawn in the palette `AUTO`, shown together with the style sheet that makes it dark on a dark page."""

    def show(self, *args: Any, **options: Any) -> Any:
        """Show the plot as plotly does; in a notebook, its style sheet as well."""
        _show_style()
        return super().show(*args, **options)

    def _ipython_display_(self) -> None:
        if plotly.io.renderers.render_on_display and plotly.io.renderers.default:
            self.show()
        else:
            super()._ipython_display_()


def _show_style() -> None:
    """Add an output of no height with the style sheet, where a notebook's kernel is running."""
    try:
        from IPython import get_ipython
    except ImportError:
        return
    shell = get_ipython()
    if hasattr(shell, "kernel"):  # a terminal would print something
        shell.display_pub.publish({"text/html": f"<style>{page_style()}</style>", "text/plain": ""})
