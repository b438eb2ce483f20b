"""Pages in a browser, each with a widget and no kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.widgets.browser import lab
from tests.widgets.browser.page import Screen, Shown


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Have the tests in a JupyterLab follow each other, so that one process has them all."""
    places = [place for place, item in enumerate(items) if item.path.is_relative_to(Path(__file__).parent)]
    grouped = sorted((items[place] for place in places), key=lambda item: "server" in item.fixturenames)
    for place, item in zip(places, grouped, strict=True):
        items[place] = item


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Lab]:
    """A JupyterLab; one for all tests of a process, for it takes seconds to start."""
    with lab.running(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="session")
def screen(browser: Browser) -> Callable[[float], Screen]:
    """What pages are shown on, by its pixels per pixel of the page; each begins a process, so pages share them."""
    return cache(lambda scale: Screen(browser.new_context(device_scale_factor=scale)))


@pytest.fixture
def show(screen: Callable[[float], Screen], tmp_path: Path) -> Iterator[Callable[..., Shown]]:
    shown: list[Shown] = []

    def one(*args: Any, scale: float = 1.0, **options: Any) -> Shown:
        folder = tmp_path / str(len(shown))
        folder.mkdir()
        shown.append(Shown(screen(scale), folder, *args, **options))
        return shown[-1]

    yield one
    for each in shown:
        each.close()
