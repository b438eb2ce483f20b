"""What the Workbench costs in a browser and in a notebook, beside the goals; takes about three minutes.

Real captures in a headless Chromium: 10,057 ops, and 60,557 with 62,986 storages. Frames are the times between the
animation frames while the view moves in each of them; answers are the times from a key or a move of the pointer until
the picture is on the screen, waiting for the frame included; of both, the 95th percentile counts. First paint is from
handing script and messages to the page until all panels are painted. Only a quiet machine gives figures that mean
anything: the load is told with them. What a search and a run pay for being watched, `updates.py` and `monitor.py` tell.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbclient import NotebookClient
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.zoo import load
from widgets.fallback import page_text
from widgets.messages.message import Message
from widgets.page.bundle import packed_script, script, style
from widgets.session import Session

TEN_THOUSAND = "gpt:layers=80,hidden=256,heads=4,sequence=256,batch=4,optimizer=adam"
SIXTY_THOUSAND = "gpt:layers=484,hidden=128,heads=4,sequence=64,batch=2,optimizer=adam"
PANELS = ("header", "graph", "memory", "holders", "streams", "selection", "search", "partition", "run")
WIDTH, HEIGHT = 1240, 1200
#: What is measured in a page: name, what the page calls it, and the most milliseconds at 1x and at 2x.
MOVES = (
    ("pan and zoom, memory addresses", "address", (17, 34)), ("pan and zoom, memory by kind", "kind", (17, 34)),
    ("pan and zoom, schedule", "schedule", (17, 34)), ("linked highlight", "highlight", (50, 50)),
    ("select an op", "select an op", (50, 50)), ("select a module", "select a module", (50, 50)),
    ("drag a span", "drag a span", (17, 34)), ("extend a span", "extend a span", (50, 50)),
    ("search keystroke", "search", (30, 30)),
)  # fmt: skip
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PAGE = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><style>
body {{ margin: 0; --jp-layout-color0: #fff; --jp-layout-color1: #fff; --jp-brand-color1: #1565c0; }} {style}
</style><body data-jp-theme-light="true"><main></main><script type="module">{script}</script>"""
_NOTEBOOK = """
from planner.zoo import load
from widgets import Workbench
bench = Workbench(load({spec!r}), budget="60%")
bench.plan
bench
"""


class Report:
    """Rows as they are measured."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, name: str, unit: str, figure: float, goal: float | None, **more: float) -> None:
        """Note a figure; where there is a goal, it is good if it is at most that."""
        met = None if goal is None else bool(figure <= goal)
        self.rows.append({"name": name, "unit": unit, "figure": figure, "goal": goal, "met": met, **more})
        print(f"{name}: {figure:.1f} {unit}", file=sys.stderr, flush=True)

    def add_times(self, name: str, times: Sequence[float], goal: float | None) -> None:
        """Note times in milliseconds."""
        half, most, longest = (float(np.percentile(times, share)) for share in (50, 95, 100))
        # a frame of a 60 Hz screen is told as 16.6 to 16.8 ms
        self.add(name, "ms", round(most, 1), goal, p50=round(half, 1), max=round(longest, 1))


def told(spec: str) -> tuple[Message, ...]:
    """What a session says of a model within 60 % of what it needs, with a plan that swaps."""
    session = Session(capture(load(spec)), machine="v100-16gb", budget="60%")
    _ = session.plan
    messages = tuple(session.messages())
    session.close()
    return messages


def open_page(browser: Browser, folder: Path, messages: Sequence[Message], scale: float) -> tuple[Page, float]:
    """A page with a workbench, and the milliseconds until it was painted."""
    path = folder / "page.html"
    code = (Path(__file__).parent / "browser_page.js").read_text()
    path.write_text(_PAGE.format(style=style(), script=code.replace("</", "<\\/")))
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=scale)
    page.set_default_timeout(300_000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function("window.measure !== undefined")
    sent = [[each.content, [base64.b64encode(buffer).decode() for buffer in each.buffers]] for each in messages]
    took = page.evaluate(
        "([script, panels, sent]) => openWorkbench(script, panels, sent)", [script(), list(PANELS), sent]
    )
    assert not errors, errors
    return page, float(took)


def measure_ten_thousand(report: Report, browser: Browser, folder: Path, count: int) -> None:
    messages = told(TEN_THOUSAND)
    paints = []
    for _ in range(5):
        page, took = open_page(browser, folder, messages, 1)
        paints.append(took)
        page.close()
    report.add_times("first paint, 10,000 ops", paints, 1000)
    for k, scale in enumerate((1, 2)):
        page, _ = open_page(browser, folder, messages, scale)
        for name, what, goals in MOVES:
            times = page.evaluate("([what, count]) => measure(what, count)", [what, count])
            report.add_times(f"{name}, {scale}x", times, goals[k])
        page.close()
    text = page_text(messages)
    report.add("saved page, 10,000 ops", "KB", len(text.encode()) / 1e3, 2000)


def measure_sixty_thousand(report: Report, browser: Browser, folder: Path, count: int) -> None:
    page, took = open_page(browser, folder, told(SIXTY_THOUSAND), 1)
    report.add("first paint, 60,000 storages", "ms", took, None)
    for name, what, goal in (("pan", "pan", 34), ("pan and zoom", "address", None), ("drag a span",) * 2 + (34,)):
        times = page.evaluate("([what, count]) => measure(what, count)", [what, count])
        report.add_times(f"{name}, 60,000 storages, 1x", times, goal)
    page.close()


def measure_notebook(report: Report) -> None:
    """A notebook that was run with its widgets kept, as a notebook saves it."""
    cells = [nbformat.v4.new_code_cell(_NOTEBOOK.format(spec=TEN_THOUSAND))]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=300, kernel_name="python3", store_widget_state=True).execute()
    states = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
    assert any("header" in state["state"].get("panels", ()) for state in states), "the widget was not kept"
    report.add("saved notebook with a workbench", "KB", len(nbformat.writes(notebook).encode()) / 1e3, 3000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=200, help="frames and answers of each kind (default 200)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        parser.error("no browser was found: install chromium (apt install chromium)")
    report, load_before = Report(), os.getloadavg()[0]
    report.add("script and style", "KB", len(packed_script()) / 1e3, 125)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        version = browser.version
        measure_ten_thousand(report, browser, Path(folder), arguments.frames)
        measure_sixty_thousand(report, browser, Path(folder), arguments.frames)
        browser.close()
    measure_notebook(report)
    if arguments.json:
        head = {"browser": version, "cores": os.cpu_count(), "load": load_before, "frames": arguments.frames}
        print(json.dumps({**head, "rows": report.rows}))
        return
    table = Table(title=f"Chromium {version}, {os.cpu_count()} cores, load {load_before:.1f}, {arguments.frames} each")
    for column in ("", "p50", "p95 or size", "max", "goal", "verdict"):
        table.add_column(column, justify="left" if not column else "right")
    for row in report.rows:
        p50, longest = (f"{row[key]:.1f}" if key in row else "" for key in ("p50", "max"))
        goal = "" if row["goal"] is None else f"{row['goal']:g} {row['unit']}"
        verdict = {True: "met", False: "missed", None: ""}[row["met"]]
        table.add_row(row["name"], p50, f"{row['figure']:.1f} {row['unit']}", longest, goal, verdict)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
