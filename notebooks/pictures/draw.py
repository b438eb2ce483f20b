"""Draws the pictures of the README, light and dark.

    python notebooks/pictures/draw.py
    python notebooks/pictures/draw.py overview 04_the_search_by_hand

It takes some minutes, most of them for searches, and needs the browser that the tests need.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright
from plotly.offline import get_plotlyjs

import planner
import widgets
from planner.graph import Graph
from planner.plan import SwapPlan
from widgets.figures.notebook_figure import heading, without_heading
from widgets.figures.notebook_style import page_style
from widgets.panels.saving import save_html

HERE = Path(__file__).parent
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
THEMES = ("light", "dark")
#: Pixels; the README shows the pictures of its table at 360.
WIDTH, BENCH_WIDTH, OVERVIEW_WIDTH = 760, 1208, 1000
Draw = Callable[[str], Sequence[Any]]


@cache
def _inception() -> tuple[Graph, SwapPlan]:
    graph = planner.capture(planner.zoo.load("inception:version=3,widen=4,batch=64"))
    return graph, planner.search_swaps(graph, planner.machine("v100-16gb"), "8GB", time_limit=10).wait()


@cache
def _wresnet() -> tuple[Graph, SwapPlan]:
    graph = planner.capture(planner.zoo.load("wresnet:depth=152,widen=10,batch=32,image=224"))
    return graph, planner.search_swaps(graph, planner.machine("v100-16gb"), "16GB", time_limit=20).wait()


@cache
def _budgets() -> tuple[Graph, Any]:
    graph = planner.capture(planner.zoo.load("wresnet:depth=50,widen=4,batch=32,image=224"))
    levels = ["1.5GiB", "2GiB", "2.5GiB", "3GiB", "4GiB", "6.5GiB"]
    return graph, planner.swap.sweep(graph, planner.machine("v100-16gb"), levels, time_limit_each=2)


@cache
def _gpt() -> Graph:
    return planner.capture(planner.zoo.load("gpt:layers=8,hidden=256,sequence=256,batch=8,optimizer=adam"))


@cache
def _own_model() -> tuple[Graph, SwapPlan]:
    graph = planner.capture(planner.zoo.load("mlp:layers=6,optimizer=adam"))
    return graph, planner.plan_swaps(graph, planner.machine("v100-16gb"), "40%")


@cache
def _split_gpt() -> tuple[Graph, Any]:
    graph = planner.capture(
        planner.zoo.load("gpt:layers=4,hidden=128,sequence=64,vocabulary=500,batch=8,optimizer=momentum")
    )
    return graph, planner.search_partition(graph, 4).wait()


@cache
def _compared() -> dict[str, dict[str, tuple[float, str]]]:
    """What the notebook finds."""
    cells = json.loads((HERE.parent / "07_the_papers_comparison.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    last = next(number for number, text in enumerate(code) if "compare_speeds" in text)
    names: dict[str, Any] = {}
    exec("\n".join(code[: last + 1]), names)
    reached: dict[str, dict[str, tuple[float, str]]] = names["reached"]
    return reached


@cache
def _measured_gpt() -> tuple[Graph, SwapPlan]:
    step = planner.zoo.load("gpt:layers=4,hidden=128,sequence=128,batch=4,optimizer=adam")
    ready = planner.profile.prepare(step, "cpu")
    search = planner.search_swaps(ready.graph, ready.machine, "50%", seconds=ready.seconds, method="swap", time_limit=3)
    return ready.graph, search.wait()


@cache
def _methods() -> tuple[Graph, Any]:
    graph = planner.capture(planner.zoo.load("gpt:layers=4,hidden=512,sequence=512,heads=4,batch=16"))
    gpu, budgets = planner.machine("h200"), ["25%", "30%", "40%", "50%", "60%", "75%", "100%"]
    sweeps = {
        method: planner.swap.sweep(graph, gpu, budgets, method=method, time_limit_each=4)
        for method in ("swap", "recompute", "joint")
    }
    return graph, sweeps


FIGURES: dict[str, tuple[int, Draw]] = {
    "overview": (OVERVIEW_WIDTH, lambda theme: [
        widgets.address_map(*_wresnet(), theme=theme), widgets.streams(*_wresnet(), theme=theme),
    ]),
    "01_where_memory_goes": (WIDTH, lambda theme: [widgets.memory_by_kind(_gpt(), theme=theme)]),
    "02_the_schedule_matters": (WIDTH, lambda theme: [widgets.schedule_and_pool(theme=theme)]),
    "03_swapping": (WIDTH, lambda theme: [widgets.address_map(*_inception(), theme=theme)]),
    "04_the_search_by_hand": (WIDTH, lambda theme: [widgets.pareto(*_budgets(), theme=theme)]),
    "05_bring_your_own_model": (WIDTH, lambda theme: [widgets.memory_by_kind(*_own_model(), theme=theme)]),
    "06_splitting_over_workers": (WIDTH, lambda theme: [widgets.partition_splits(*_split_gpt(), theme=theme)]),
    "07_the_papers_comparison": (WIDTH, lambda theme: [widgets.compare_speeds(_compared(), theme=theme)]),
    "08_your_own_gpu": (WIDTH, lambda theme: [widgets.address_map(*_measured_gpt(), theme=theme)]),
    "09_swap_or_recompute": (WIDTH, lambda theme: [widgets.compare_methods(*_methods(), theme=theme)]),
}  # fmt: skip
BENCH = "00_start_here"


def _draw_figures(browser: Browser, name: str) -> None:
    """One figure, or several below each other."""
    width, draw = FIGURES[name]
    for theme in THEMES:
        figures = draw(theme)
        parts = "".join(
            heading(figure) + without_heading(figure).to_html(full_html=False, include_plotlyjs=False,
                                                              config={"displayModeBar": False, "responsive": True})
            for figure in figures
        )  # fmt: skip
        scale = 2 if name == "overview" else 1
        page = browser.new_page(viewport={"width": width, "height": 400}, device_scale_factor=scale)
        page.set_content(
            f"<!doctype html><script>{get_plotlyjs()}</script><style>{page_style()} body {{ margin: 0; "
            f"background: {figures[0].layout.paper_bgcolor}; }}</style><body>{parts}</body>"
        )
        page.wait_for_selector(".main-svg")
        page.screenshot(path=_file_of(name, theme), full_page=True)
        page.close()


def _draw_bench(browser: Browser) -> None:
    """The upper half of the Workbench of the first notebook."""
    step = planner.zoo.load("gpt:layers=8,hidden=128,sequence=256,batch=4,optimizer=adam")
    bench = widgets.Workbench(step, machine="cpu", budget="40%")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.html"
        save_html(bench, path)
        for theme in THEMES:
            page = browser.new_page(viewport={"width": BENCH_WIDTH, "height": 1000}, color_scheme=theme)
            page.goto(path.as_uri())
            page.wait_for_selector(".sw-streams canvas")
            top = page.locator("#stowage").bounding_box()
            last = page.locator(".sw-streams").bounding_box()
            assert top is not None
            assert last is not None
            page.screenshot(path=_file_of(BENCH, theme), clip={**top, "height": last["y"] + last["height"] - top["y"]})
            page.close()


def _file_of(name: str, theme: str) -> Path:
    return HERE / f"{name}{'-dark' if theme == 'dark' else ''}.png"


def main() -> None:
    """Draw what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], BENCH, *FIGURES], help="which; without any, all")
    names = parser.parse_args().names or [BENCH, *FIGURES]
    found = next(path for name in BROWSERS if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        for name in names:
            if name == BENCH:
                _draw_bench(browser)
            else:
                _draw_figures(browser, name)
        browser.close()


if __name__ == "__main__":
    main()
