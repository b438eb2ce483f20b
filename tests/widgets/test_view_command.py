"""`python -m widgets view` shows a plan that was written in the workbench, without a notebook."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import pytest
from playwright.sync_api import Browser

import planner
from planner import graph as graphs
from planner.plan import save_plan
from planner.units import format_bytes
from tests import preloaded
from tests.widgets.fallback.test_saved_page import opened
from widgets.__main__ import main


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A plan within 60 % for an H200, and its graph."""
    graph = planner.capture(planner.zoo.load("mlp:layers=6,hidden=96,batch=64,optimizer=adam"), progress=False)
    plan = planner.plan_swaps(graph, planner.machine("h200"), "60%", method="swap", time_limit=0, progress=False)
    folder = tmp_path_factory.mktemp("saved")
    paths = folder / "plan.json", folder / "graph.json"
    save_plan(plan, paths[0])
    graphs.save(graph, paths[1])
    return paths


def viewed(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """The status, and what was printed and said."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(end.value.code or 0), *capsys.readouterr()


def test_the_page_is_the_workbench_of_that_plan_on_its_machine(
    saved: tuple[Path, Path], browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert viewed(capsys, "view", *saved, "--out", page)[:2] == (0, f"{page}\n")
    plan = planner.plan.load_plan(saved[0])
    with opened(browser, page) as shown:
        header = shown.locator(".sw-header").inner_text()
        assert "mlp" in header
        assert format_bytes(plan.budget_bytes) in header
        assert shown.locator("select option:checked").first.inner_text().startswith("H200")


def test_without_a_file_to_write_it_opens_a_browser(saved: tuple[Path, Path], tmp_path: Path) -> None:
    started, kept = tmp_path / "browser.sh", tmp_path / "address"
    started.write_text(f'#!/bin/sh\necho "$1" > {kept}\n')
    started.chmod(0o755)
    words = preloaded.command("-m", "widgets", "view", *map(str, saved))
    environment = os.environ | {"BROWSER": f"{started} %s", "TMPDIR": str(tmp_path)}
    printed = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    assert Path(url2pathname(urlparse(kept.read_text().strip()).path)) == Path(printed)
    assert Path(printed).name == "plan.html"
    assert Path(printed).read_text().startswith("<!doctype html>")


def test_mistakes_are_sentences(saved: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, graph = saved
    wrong, unknown = tmp_path / "wrong.json", tmp_path / "unknown.json"
    made = planner.plan.load_plan(plan)
    save_plan(replace(made, peak_bytes=made.budget_bytes + 1), wrong)
    save_plan(replace(made, machine="abacus"), unknown)
    for words, said in (
        ([graph, plan], f"error: {graph}: this is not a plan"),
        ([plan, plan], "the order is: view PLAN GRAPH"),
        ([wrong, graph], f"error: {wrong} is not a valid plan for mlp:"),
        ([unknown, graph], "unknown machine 'abacus'"),
        ([plan, graph, "--out", tmp_path / "gone" / "page.html"], "page.html"),
        ([plan], "Missing argument 'GRAPH'; see python -m widgets view --help"),
    ):
        status, out, err = viewed(capsys, "view", *words)
        assert (status, out) == (2, "")
        assert err.startswith("error: ")
        assert said in err
    assert "python -m widgets view plan.json graph.json --out plan.html" in viewed(capsys, "view", "--help")[1]
