"""A real browser, without a window, and pages in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.widgets.browser.page import Shown

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no browser was found, so what a page does is not tested: install chromium (apt install chromium)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Shown]]:
    shown: list[Shown] = []

    def one(*args: Any, **options: Any) -> Shown:
        folder = tmp_path / str(len(shown))
        folder.mkdir()
        shown.append(Shown(browser, folder, *args, **options))
        return shown[-1]

    yield one
    for each in shown:
        each.close()
