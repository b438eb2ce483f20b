"""A page with a widget in it and no kernel behind it: what Python would send is given, what it would be asked is kept."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from widgets.canvas.bundle import script, style
from widgets.canvas.columns import Message

EVERY_PANEL = ("header", "graph", "memory", "holders", "streams", "selection", "search", "run")

#: What a notebook provides around its cells.
_AROUND = """
body { margin: 0; background: var(--jp-layout-color0); color: var(--jp-ui-font-color1); --jp-layout-color0: #fff;
  --jp-layout-color1: #fff; --jp-ui-font-color1: #000; --jp-brand-color1: #1565c0; }
body[data-jp-theme-light="false"] { --jp-layout-color0: #111; --jp-layout-color1: #212121; --jp-ui-font-color1: #fff;
  --jp-brand-color1: #42a5f5; color-scheme: dark; }
main { padding: 12px; }
"""

#: A stand-in for the notebook's end of the wire.
_WIRE = """
const listeners = new Set();
const requests = [];
const tell = (content, buffers = []) => { for (const listener of [...listeners]) listener(content, buffers); };
const { default: { render } } = await import(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
const bytes = text => new DataView(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
window.wire = {
  requests, deaf: false,
  tell: messages => { for (const [content, buffers] of messages) tell(content, buffers.map(bytes)); },
};
const model = {
  get: name => wire.traits[name],
  on: (_, listener) => listeners.add(listener),
  off: (_, listener) => listeners.delete(listener),
  send: request => {
    requests.push(request);
    if (!wire.deaf) queueMicrotask(() => tell({ kind: 'heard', number: request.number }));
  },
};
"""

_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A widget</title>
<link rel="icon" href="data:,"><style>{around}{style}</style></head>
<body data-jp-theme-light="{light}"><main><h1 class="sr">A notebook</h1><div id="at"></div></main>
<script type="module">{script}</script></body></html>"""


def page_text(panels: Sequence[str], theme: str) -> str:
    """The page's HTML; `wire.close()` in it takes the widget away."""
    traits = json.dumps({"panels": list(panels), "link": "page"})
    text = (
        f"const script = {json.dumps(script())};\n{_WIRE}\nwire.traits = {traits};\n"
        "wire.close = render({ model, el: document.getElementById('at') });"
    ).replace("</", "<\\/")
    return _PAGE.format(around=_AROUND, style=style(), light="false" if theme == "dark" else "true", script=text)


def wired(messages: Iterable[Message]) -> list[Any]:
    """Messages as the page takes them."""
    return [[m.content, [base64.b64encode(buffer).decode() for buffer in m.buffers]] for m in messages]


class Shown:
    """A widget in a page.

    Args:
        browser: that shows it.
        at: folder for the page and its pictures.
        panels, theme, width, height, scale: of the widget, the notebook and the screen.
    """

    def __init__(
        self, browser: Browser, at: Path, panels: Sequence[str] = EVERY_PANEL, *, theme: str = "light",
        width: int = 1240, height: int = 1100, scale: float = 1.0,
    ) -> None:  # fmt: skip
        self.at = at
        self.errors: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=scale)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        path = at / "page.html"
        path.write_text(page_text(panels, theme))
        self.page.goto(path.as_uri())
        self.page.wait_for_function("window.wire && wire.close")

    def tell(self, messages: Iterable[Message]) -> None:
        """What Python sends; returns when it is drawn."""
        self.page.evaluate("messages => wire.tell(messages)", wired(messages))
        self.settle()

    def settle(self) -> None:
        """Wait until what has changed is drawn."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def requests(self, do: str) -> list[dict[str, Any]]:
        """What Python was asked to do so far, of one sort."""
        asked: list[dict[str, Any]] = self.page.evaluate("() => wire.requests")
        return [request for request in asked if request["do"] == do]

    def picture(self, name: str) -> Path:
        """Take a picture of the whole page; kept with what this run of the tests leaves behind."""
        path = self.at / f"{name}.png"
        self.page.screenshot(path=path, full_page=True)
        return path

    def close(self) -> None:
        """Close the page; whatever went wrong in it is an error of the test."""
        self.page.close()
        assert not self.errors, self.errors
