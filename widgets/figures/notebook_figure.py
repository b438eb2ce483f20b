"""A plotly figure that adapts to the notebook it is shown in: to its theme and to its width."""

from __future__ import annotations

from typing import Any

import plotly.io
from plotly.graph_objects import Figure

from widgets.figures.notebook_style import page_style

#: Pixels above a plot without text, for the unit of its vertical axis.
_TOP = 26


class PageFigure(Figure):  # type: ignore[misc]  # plotly has no types
    """A plot whose title, summary and key are page text when shown in a notebook.

    Text inside a plot has a fixed width. So in a notebook it is placed above the plot, together with the style sheet
    that makes figures dark on a dark page; elsewhere, such as in a file, it is part of the picture.
    """

    def show(self, *args: Any, **options: Any) -> Any:
        """Show the plot as plotly does; in a notebook, with its text and style sheet."""
        if (publish := _publisher()) is None:
            return super().show(*args, **options)
        publish({"text/html": f"<style>{page_style()}</style>{heading(self)}", "text/plain": ""})
        return plotly.io.show(without_heading(self), *args, **options)

    def _ipython_display_(self) -> None:
        if plotly.io.renderers.render_on_display and plotly.io.renderers.default:
            self.show()
        else:
            super()._ipython_display_()


def heading(figure: Figure) -> str:
    """Title, summary and key as HTML; may contain plotly's markup."""
    layout = figure.layout
    texts = {each.name: each for each in layout.annotations if each.name in ("summary", "key")}
    lines = [("title", (layout.meta or {}).get("title") or layout.title.text or "", layout.title.font.color)]
    lines += [
        (name, texts[name].text.replace("<br>", " "), texts[name].font.color)
        for name in ("summary", "key")
        if name in texts
    ]
    divs = [f'<div class="{name}" style="color:{colour}">{text}</div>' for name, text, colour in lines if text]
    inside = f'<div class="inside" style="background:{layout.paper_bgcolor}">{"".join(divs)}</div>'
    return f'<div class="stowage-text">{inside}</div>'


def without_heading(figure: Figure) -> Figure:
    """The plot without its text, and reduced in height."""
    alone = Figure(figure)
    layout = alone.layout
    layout.title.text = None
    layout.annotations = [each for each in layout.annotations if each.name not in ("summary", "key")]
    if layout.height is not None and layout.margin.t is not None:
        layout.height -= layout.margin.t - _TOP
        layout.margin.t = _TOP
    return alone


def _publisher() -> Any:
    """The function that displays in a notebook; None outside a notebook kernel, where a terminal would print it."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    shell = get_ipython()
    return shell.display_pub.publish if hasattr(shell, "kernel") else None
