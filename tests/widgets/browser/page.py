"""A page with widgets and no kernel behind it: what Python would send is given, what it would be asked is kept."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Locator, Page

from widgets.messages.message import Message
from widgets.page.bundle import script, style

Modifier = Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]

#: Seconds to wait for what comes sooner or later, on a busy machine.
PATIENCE = 120

#: Pixels between a plot's edges and its time axis.
GUTTER, RIGHT = 58, 12

EVERY_PANEL = ("header", "graph", "memory", "holders", "streams", "selection", "search", "plans", "partition", "run")

#: Where pictures go, to be looked at after the tests; nowhere, if it is not said.
PICTURES = os.environ.get("STOWAGE_PICTURES")

#: What a notebook provides around its cells.
_AROUND = """
body { margin: 0; background: var(--jp-layout-color0); color: var(--jp-ui-font-color1); --jp-layout-color0: #fff;
  --jp-layout-color1: #fff; --jp-ui-font-color1: #000; --jp-brand-color1: #1565c0; }
body[data-jp-theme-light="false"] { --jp-layout-color0: #111; --jp-layout-color1: #212121; --jp-ui-font-color1: #fff;
  --jp-brand-color1: #42a5f5; color-scheme: dark; }
main { padding: 12px; }
"""

#: A stand-in for the notebook's end of the wire; `ask`, where a page has it, is the kernel's.
_WIRE = """
// every widget gets a script of its own, as in a notebook
const load = async () => (await import(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })))).default;
const bytes = text => new DataView(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
function widget(traits, { render }) {
  const listeners = new Set();
  const tell = (content, buffers = []) => { for (const listener of [...listeners]) listener(content, buffers); };
  const model = {
    get: name => traits[name],
    on: (event, listener) => event === 'msg:custom' && listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
    send: request => {
      wire.requests.push(request);
      if (wire.deaf) return;
      queueMicrotask(() => tell({ kind: 'heard', number: request.number }));
      window.ask?.(request);
    },
  };
  const el = document.querySelector('main').appendChild(document.createElement('div'));
  return { tell, close: render({ model, el }) };
}
window.wire = {
  requests: [], deaf: DEAF,
  tell: (messages, which) => {
    const recorded = which === null ? wire.widgets : [wire.widgets[which]];
    for (const [content, buffers] of messages) for (const one of recorded) one.tell(content, buffers.map(bytes));
  },
};
// what the browser has recorded the page by now: no handler of it is still to come
wire.heard = { at: [-1, -1], click: 0, keydown: 0, wheel: 0 };
addEventListener('pointermove', ({ clientX, clientY }) => { wire.heard.at = [clientX, clientY]; }, true);
for (const kind of ['click', 'keydown', 'wheel']) {
  addEventListener(kind, () => { wire.heard[kind] += 1; }, { capture: true, passive: true });
}
const scripts = await Promise.all(TRAITS.map(load));
wire.widgets = TRAITS.map((traits, k) => widget(traits, scripts[k]));
"""

_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A widget</title>
<link rel="icon" href="data:,"><style>{around}{style}</style></head>
<body data-jp-theme-light="{light}"><main><h1 class="sr">A notebook</h1></main>
<script type="module">{script}</script></body></html>"""


def page_text(
    widgets: Sequence[Sequence[str]], links: Sequence[str], theme: str, deaf: bool, tab: tuple[str, int] = ("", 0)
) -> str:
    """The page's HTML.

    Args:
        widgets: the panels of each.
        links: of each widget.
        theme: `"light"` or `"dark"`.
        deaf: whether nobody hears what the widgets ask.
        tab: what was begun from Python.
    """
    traits = [{"panels": list(panels), "link": link, "tab": tab} for panels, link in zip(widgets, links, strict=True)]
    wire = _WIRE.replace("DEAF", json.dumps(deaf)).replace("TRAITS", json.dumps(traits))
    text = f"const script = {json.dumps(script())};\n{wire}".replace("</", "<\\/")
    return _PAGE.format(around=_AROUND, style=style(), light="false" if theme == "dark" else "true", script=text)


def wired(messages: Iterable[Message]) -> list[Any]:
    """Messages as the page takes them."""
    return [[m.content, [base64.b64encode(buffer).decode() for buffer in m.buffers]] for m in messages]


class Screen:
    """Pages of one browser context, each of which shows one test after another.

    Going to an address leaves nothing of the page before, and costs a third of a new page: processes, fonts and glyphs
    are there.
    """

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._idle: list[Page] = []

    def take(self) -> Page:
        """A page that nobody else uses."""
        return self._idle.pop() if self._idle else self._context.new_page()

    def give_back(self, page: Page) -> None:
        """Take back a page, without what a test may have set that outlasts an address."""
        page.mouse.move(0, 0)
        page.emulate_media(reduced_motion="null")
        self._idle.append(page)


class Shown:
    """One or more widgets in a page.

    Args:
        screen: whose page shows them.
        at: folder for the page.
        panels: of the one widget.
        widgets: panels of each, where there are several.
        links: of each widget; without them, one for all.
        theme, width, height: of the notebook and the page.
        deaf: whether nobody hears what the widgets ask.
        tab: what was begun from Python.
    """

    def __init__(
        self, screen: Screen, at: Path, panels: Sequence[str] = EVERY_PANEL, *,
        widgets: Sequence[Sequence[str]] | None = None, links: Sequence[str] | None = None, theme: str = "light",
        width: int = 1240, height: int = 1100, deaf: bool = False, tab: tuple[str, int] = ("", 0),
    ) -> None:  # fmt: skip
        self.at = at
        self.errors: list[str] = []
        self._screen, self._answered = screen, False
        self.page = screen.take()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.on("pageerror", self._note_error)
        self.page.on("console", self._note_line)
        shown = [panels] if widgets is None else widgets
        path = at / "page.html"
        path.write_text(page_text(shown, links or ["page"] * len(shown), theme, deaf, tab), encoding="utf-8")
        self.page.goto(path.as_uri())
        self.page.wait_for_function("window.wire && wire.widgets")

    def _note_error(self, error: Error) -> None:
        self.errors.append(str(error))

    def _note_line(self, line: ConsoleMessage) -> None:
        if line.type == "error":
            self.errors.append(line.text)

    def answer_with(self, answer: Callable[[dict[str, Any]], None]) -> None:
        """Call a function with all that the widgets ask from now on."""
        self.page.expose_function("ask", answer)
        self._answered = True

    def publish(self, messages: Iterable[Message], widget: int | None = None) -> None:
        """What Python sends, to one widget or to all; returns when it is drawn."""
        self.page.evaluate("([messages, which]) => wire.tell(messages, which)", [wired(messages), widget])
        self.settle()

    def settle(self) -> None:
        """Wait until what has changed is drawn."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def take_away(self, widget: int = 0) -> None:
        """Do what a notebook does when the cell's output is cleared."""
        self.page.evaluate("which => wire.widgets[which].close()", widget)

    def requests(self, do: str) -> list[dict[str, Any]]:
        """What Python was asked to do so far, of one sort."""
        asked: list[dict[str, Any]] = self.page.evaluate("() => wire.requests")
        return [request for request in asked if request["do"] == do]

    def wait_for_request(self, do: str, count: int = 1) -> dict[str, Any]:
        """The last request of a sort, once there are so many."""
        enough = "([name, least]) => wire.requests.filter(request => request.do === name).length >= least"
        self.page.wait_for_function(enough, arg=[do, count])
        return self.requests(do)[-1]

    def find(self, selector: str) -> Locator:
        """Elements of the page."""
        return self.page.locator(selector)

    def text(self, selector: str) -> str:
        """What an element says, with single spaces."""
        return re.sub(r"[^\S\u202f]+", " ", self.find(selector).first.inner_text()).strip()

    def plot(self, panel: str) -> Locator:
        """The plot of a panel."""
        return self.find(f".sw-{panel} .plot").first

    def summary(self, panel: str) -> str:
        """What the plot of a panel is described as to those who do not see it."""
        return self.text(f".sw-{panel} .plot > p.sr")

    def selected(self) -> str:
        """What the line below the panels says."""
        return self.text(".sw-selection .line")

    def x_of(self, panel: str, share: float) -> float:
        """The pixel of a panel's plot at which a share of the whole step has passed."""
        box = self.plot(panel).bounding_box()
        assert box is not None
        return GUTTER + float(share) * (box["width"] - GUTTER - RIGHT)

    def held(self, share: float) -> tuple[float, float]:
        """The pixel of the memory map in the middle of the largest tensor held when a share of the step has passed.

        Which one that is, and where, follows from the plan, and a plan for this computer from its op times.
        """
        y = self.plot("memory").evaluate(
            """({ plot: { plan, area, addresses } }, share) => {
              const [from, to] = [share - 0.01, share + 0.01].map(share => share * plan.step_seconds);
              const there = Array.from(plan.residency_storage, (storage, k) => [plan.graphData.bytesOf(storage), k])
                .filter(([, k]) => plan.residency_start[k] < from && plan.residency_stop[k] > to);
              const [bytes, k] = there.reduce((most, one) => (one[0] > most[0] ? one : most));
              const middle = (plan.residency_offset[k] + bytes / 2 - addresses.low) / addresses.span;
              return area.bottom - middle * (area.bottom - area.top); }""",
            share,
        )
        return self.x_of("memory", share), float(y)

    def lane(self, which: int) -> float:
        """The pixel in the middle of a lane of the streams: 0 compute, 1 out, 2 in."""
        area = self.plot("streams").evaluate("(host, which) => host.plot.area(which)", which)
        return float(area["top"] + area["bottom"]) / 2

    def move(self, panel: str, x: float, y: float) -> None:
        """Move the pointer to a pixel of a panel's plot, which is scrolled to if the page shows none of it."""
        left, top = self.plot(panel).evaluate(
            "host => { host.scrollIntoView({ block: 'nearest' }); "
            "const { left, top } = host.getBoundingClientRect(); return [left, top]; }"
        )
        self._point_at(left + x, top + y)

    def leave(self) -> None:
        """Move the pointer away from everything."""
        self._point_at(2, 2)

    def _point_at(self, x: float, y: float) -> None:
        self.page.mouse.move(x, y)
        there = "([x, y]) => Math.abs(wire.heard.at[0] - x) < 1.5 && Math.abs(wire.heard.at[1] - y) < 1.5"
        self.page.wait_for_function(there, arg=[x, y])
        self.settle()

    def wheel(self, by: float) -> None:
        """Turn the wheel where the pointer is."""
        with self._heard("wheel"):
            self.page.mouse.wheel(0, by)
        self.settle()

    @contextmanager
    def _heard(self, kind: str, times: int = 1) -> Iterator[None]:
        """Wait afterwards until the page has heard of what was done: a busy browser tells it later."""
        before = self.page.evaluate("kind => wire.heard[kind]", kind)
        yield
        self.page.wait_for_function("([kind, least]) => wire.heard[kind] >= least", arg=[kind, before + times])

    def click(self, panel: str, x: float, y: float, modifiers: Sequence[Modifier] = ()) -> None:
        """Click on a pixel of a panel's plot, with some keys held."""
        with self._heard("click"):
            self.plot(panel).click(position={"x": x, "y": y}, modifiers=modifiers)
        self.settle()

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            with self._heard("keydown"):
                self.page.keyboard.press(key)
        self.settle()

    def tip(self) -> dict[str, str]:
        """The tooltip: its rows by name, and its title under `""`; nothing where there is none."""
        found = self.find(".sw-tip:popover-open")
        if not found.count():
            return {}
        title = found.locator("b").first.text_content() or ""
        names, values = found.locator("dt").all_text_contents(), found.locator("dd").all_text_contents()
        return {"": title, **{name.strip(): value for name, value in zip(names, values, strict=True)}}

    def pixels(self, panel: str, over: bool = False) -> str:
        """What is drawn in a panel's plot, or over it, to be compared with what is drawn later."""
        canvas = self.plot(panel).locator("canvas").nth(1 if over else 0)
        return str(canvas.evaluate("canvas => canvas.toDataURL()"))

    def inked(self, panel: str, over: bool = False) -> bool:
        """Whether anything is drawn in a panel's plot, or over it."""
        canvas = self.plot(panel).locator("canvas").nth(1 if over else 0)
        some = """canvas => canvas.width > 0 && canvas.getContext('2d')
          .getImageData(0, 0, canvas.width, canvas.height).data.some((value, k) => k % 4 === 3 && value)"""
        return bool(canvas.evaluate(some))

    def picture(self, name: str) -> None:
        """Take a picture of the whole page, where pictures are to be kept."""
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)

    def close(self) -> None:
        """Leave the page; whatever went wrong in it is an error of the test."""
        self.page.remove_listener("pageerror", self._note_error)
        self.page.remove_listener("console", self._note_line)
        if self._answered or self.errors:  # a page keeps its functions for good
            self.page.close()
        else:
            self._screen.give_back(self.page)
        assert not self.errors, self.errors
