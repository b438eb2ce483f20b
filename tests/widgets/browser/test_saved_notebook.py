"""A notebook that was saved with its widgets and is opened again shows what it showed, without being run."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from playwright.sync_api import Browser

from tests.widgets.browser import lab
from tests.widgets.browser.recorded_messages import SMALL

#: The widget is shown before there is a graph; the next cell waits for the plan and its picture.
CELLS = [
    f"from planner import zoo\nimport widgets\nbench = widgets.Workbench(zoo.load({SMALL!r}), budget='60%')\nbench",
    "import time\nbench.plan\nwhile '<img' not in bench.fallback:\n    time.sleep(0.05)\n"
    "bench.send_state('fallback')",  # before the cell ends, after which nobody listens
]
PICTURE = ".jp-OutputArea img[src^='data:image/svg+xml']"
NOT_FOUND = "Error displaying widget: model not found"
#: So often it is opened until the picture is there.
OPENED = 4


def reopened(server: lab.Lab, browser: Browser) -> lab.Opened:
    """The saved notebook with its picture.

    JupyterLab's widget manager looks for a saved widget for two seconds. Where the computer stops in the last of them
    while widgets are restored, it says that there is none without having looked again, until the notebook is reopened.
    """
    for _ in range(OPENED):
        opened = server.look_at(browser, "saved.ipynb")
        opened.until(
            f"""() => document.querySelector("{PICTURE}") || document.body.innerText.includes("{NOT_FOUND}")"""
        )
        if opened.page.locator(PICTURE).count():
            return opened
        opened.close()
    raise AssertionError(f"JupyterLab said {OPENED} times: {NOT_FOUND}")


def test_the_picture_of_the_first_plan_stands_where_the_widget_was(
    server: lab.Lab, browser: Browser, tmp_path: Path
) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=240, kernel_name="python3", store_widget_state=True).execute()
    nbformat.write(notebook, server.at / "saved.ipynb")
    assert "data:image/svg+xml" in (server.at / "saved.ipynb").read_text()
    server.trust("saved.ipynb")
    opened = reopened(server, browser)
    drawn = opened.page.locator(PICTURE)
    opened.page.screenshot(path=tmp_path / "reopened.png")
    assert "Needs a plan" in opened.page.locator(".jp-OutputArea").first.inner_text()
    assert "ideal speed" in (drawn.get_attribute("alt") or "")
    assert not opened.page.locator(".sw").is_visible()
    assert opened.ours() == []
    opened.close()
