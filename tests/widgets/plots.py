"""One page of a process in which all plots of tests are drawn: plotly.js takes longer to load than any of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from playwright.sync_api import Browser, Page
from plotly.graph_objects import Figure
from plotly.offline import get_plotlyjs

#: Takes away all plots and what was set around them, and draws others as `Figure.show` does.
_DRAW = """async ([figures, document_attributes, body_attributes, before]) => {
  document.querySelectorAll('.js-plotly-plot').forEach(plot => Plotly.purge(plot));
  for (const [element, attributes] of [[document.documentElement, document_attributes],
      [document.body, { style: 'margin:0', ...body_attributes }]]) {
    element.getAttributeNames().forEach(name => element.removeAttribute(name));
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  }
  document.body.innerHTML = before;
  for (const figure of figures) {
    const place = document.body.appendChild(document.createElement('div'));
    await Plotly.newPlot(place, { ...figure, config: { displayModeBar: true } });
  }
}"""


class Plots:
    """The page, which is there from the first plot on."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._page: Page | None = None

    def draw(
        self, figures: Iterable[Figure], width: int, height: int, *, document: Mapping[str, str] | None = None,
        body: Mapping[str, str] | None = None, before: str = "",
    ) -> Page:  # fmt: skip
        """Draw figures one below the other, and nothing else.

        Args:
            figures: what is drawn.
            width, height: of the page.
            document, body: attributes of the document and its body.
            before: HTML before the first figure.
        """
        if self._page is None:
            self._page = self._browser.new_page()
            self._page.set_content("<!doctype html><html><body></body></html>")
            self._page.add_script_tag(content=get_plotlyjs())
        self._page.set_viewport_size({"width": width, "height": height})
        drawn = [json.loads(figure.to_json()) for figure in figures]
        self._page.evaluate(_DRAW, [drawn, dict(document or {}), dict(body or {}), before])
        return self._page
