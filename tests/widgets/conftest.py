"""A real browser, without a window; one for all tests of a process, because a thread can drive but one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.widgets.plots import Plots

#: The one without windows opens a page in half the time of the others.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no browser was found, so pages are not tested: install one (apt install chromium-headless-shell)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def plots(browser: Browser) -> Plots:
    """Where plots are drawn."""
    return Plots(browser)
