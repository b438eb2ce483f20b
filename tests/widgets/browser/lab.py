"""A JupyterLab that runs for the tests, and a notebook that is open in it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, TimeoutError

from tests.ports import free_port

ROOT = Path(__file__).parents[3]
#: On a busy machine a server, a kernel and PyTorch take their time; less than after which pytest ends a test unseen.
PATIENCE = 120.0
#: How often a key is pressed where the focus is taken.
PRESSES = 10


#: anywidget waits for a script for two seconds, which on a busy computer pass before any has come; here none do.
SLOW = """() => {
  AbortSignal.timeout = () => {
    const waiting = new AbortController();
    queueMicrotask(() => waiting.abort());
    return waiting.signal;
  };
}"""


#: The notebook that is shown, where the page is that far.
CURRENT = "window.jupyterapp?.shell.currentWidget"
#: Whether the notebook's kernel is connected and what it does.
KERNEL = (
    f"() => {{ const kernel = {CURRENT}?.sessionContext?.session?.kernel; "
    "return `${kernel?.connectionStatus} and ${kernel?.status}`; }"
)
#: Ends the notebook's kernel, closes it whether or not it was changed, and has the page light.
LEAVE = """async () => {
  const { commands, shell: { currentWidget: notebook } } = jupyterapp;
  await notebook.sessionContext.shutdown();
  notebook.dispose();
  if (document.body.dataset.jpThemeLight === 'false') {
    await commands.execute('apputils:change-theme', { theme: 'JupyterLab Light' });
  }
}"""


class Lab:
    """A server on this computer, which only who knows its token may use.

    Args:
        at: folder for notebooks and settings.
        port, token: of the server.
    """

    def __init__(self, at: Path, port: int, token: str) -> None:
        self.at, self.address, self._token = at, f"http://127.0.0.1:{port}", token
        self._idle: Page | None = None

    def ask(self, path: str, method: str = "GET") -> Any:
        """What the server's API answers."""
        header = {"Authorization": f"token {self._token}"}
        asked = urllib.request.Request(f"{self.address}/api/{path}", method=method, headers=header)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def log(self) -> str:
        """What the server has written until now."""
        return (self.at / "server.log").read_text()

    def open(self, browser: Browser, name: str, cells: Sequence[str], page: str = "lab/tree") -> Opened:
        """Write a notebook of code cells and open it.

        Args:
            browser: to open it in.
            name: of the file.
            cells: their code.
            page: JupyterLab's, or `notebooks` for Jupyter Notebook's.
        """
        code = [
            {"cell_type": "code", "id": f"cell-{k}", "metadata": {}, "outputs": [], "execution_count": None,
             "source": cell}
            for k, cell in enumerate(cells)
        ]  # fmt: skip
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        notebook = {"cells": code, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
        (self.at / name).write_text(json.dumps(notebook))
        return self.look_at(browser, name, page)

    def look_at(self, browser: Browser, name: str, page: str = "lab/tree", fresh: bool = False) -> Opened:
        """Open a notebook that is there.

        JupyterLab loads for seconds, so its page opens one notebook after another, as a user's does.

        Args:
            browser: to open it in.
            name: of the file.
            page: JupyterLab's, or `notebooks` for Jupyter Notebook's.
            fresh: whether the page may not have shown another notebook.
        """
        idle = None
        if page == "lab/tree" and not fresh:
            idle, self._idle = self._idle, None
        opened = Opened(self, idle or browser.new_page())
        if idle:
            opened.command("docmanager:open", {"path": name})
        else:
            opened.page.goto(f"{self.address}/{page}/{name}?reset&token={self._token}")
        opened.until(f"() => {CURRENT}?.context?.path === {json.dumps(name)}")
        opened.wait_for_kernel()
        return opened

    def take_back(self, page: Page) -> None:
        """Take a page of JupyterLab that shows no notebook any more."""
        if self._idle:
            self._idle.close()
        self._idle = page

    def trust(self, name: str) -> None:
        """Take a notebook for the user's own, whose widgets may be shown."""
        notary = NotebookNotary(data_dir=str(self.at / "jupyter" / "jupyter_data_dir"))
        notary.sign(nbformat.read(self.at / name, as_version=4))


class Opened:
    """A notebook in a page.

    Args:
        lab: whose page it is.
        page: to show it.
    """

    def __init__(self, lab: Lab, page: Page) -> None:
        self.lab, self.page = lab, page
        self.errors: list[str] = []
        self._slow = False
        page.set_default_timeout(PATIENCE * 1000)
        page.set_viewport_size({"width": 1500, "height": 1300})
        page.on("pageerror", self._note_error)
        page.on("console", self._note_line)

    def _note_error(self, error: Error) -> None:
        self.errors.append(f"{error}\n{error.stack}")

    def _note_line(self, line: ConsoleMessage) -> None:
        if line.type == "error":
            self.errors.append(f"{line.text} ({(line.location or {}).get('url', '')})")

    def wait_for_kernel(self) -> None:
        """Wait until the notebook's kernel has nothing to do."""
        self.until(
            f"""() => {{ const kernel = {CURRENT}?.sessionContext?.session?.kernel;
              return kernel?.connectionStatus === 'connected' && kernel.status === 'idle'; }}"""
        )

    def command(self, name: str, arguments: dict[str, str] | None = None) -> None:
        """Do what a menu entry does."""
        execute = "([name, args]) => { window.jupyterapp.commands.execute(name, args); }"
        self.page.evaluate(execute, [name, arguments or {}])

    def load_slowly(self) -> None:
        """Have the scripts of widgets come as late as on a busy computer, as long as there is this page."""
        self._slow = True
        self.page.evaluate(SLOW)

    def run_all(self) -> None:
        """Have all cells run."""
        self.command("notebook:run-all-cells")

    def add_and_run(self, code: str) -> str:
        """Run a new cell at the end, and return what it prints."""
        self.page.locator(".jp-Notebook .jp-Cell").last.click(position={"x": 10, "y": 10})
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("b")
        cell = self.page.locator(".jp-Notebook .jp-Cell").last
        cell.locator(".cm-content").click()
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Control+Enter")
        printed = cell.locator(".jp-OutputArea-output").first
        printed.wait_for()
        return printed.inner_text().strip()

    def find(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def press(self, selector: str, *keys: str) -> None:
        """Press keys in an element, each again if JupyterLab took the focus: it may a while after cells were run."""
        element = self.find(selector)
        for key in keys:
            for _ in range(PRESSES):
                element.focus()
                self.page.keyboard.press(key)
                if element.evaluate("element => element === document.activeElement"):
                    break
            else:
                raise AssertionError(f"{key} was pressed {PRESSES} times, and {selector} never had the focus then")

    def until(self, condition: str) -> None:
        """Wait until a condition holds in the page; where it never does, the error says what is shown instead.

        It is looked at ten times a second: at every frame, a page that has nothing else to do draws sixty.
        """
        try:
            self.page.wait_for_function(condition, polling=100)
        except TimeoutError as error:
            kernel, wrote = self.page.evaluate(KERNEL), self.lab.log()[-1000:]
            focus = self.page.evaluate("() => document.activeElement?.outerHTML.slice(0, 200)")
            error.add_note(
                f"in the page's console: {self.errors[-5:]}\nits kernel is {kernel}\nthe focus is at {focus}"
            )
            shown, drawn = self.find("body").inner_text(), self.find(".js-plotly-plot text").all_text_contents()
            error.add_note(f"the page shows:\n{shown[-2000:]}\nin plots: {drawn}\nthe server wrote:\n{wrote}")
            raise

    def ours(self) -> list[str]:
        """Errors that come from a widget, and not from JupyterLab's own parts or what it looks for."""
        expected = "Failed to initialize model" if self._slow else None  # anywidget, when it has waited long enough
        found = [error for error in self.errors if re.search(r"blob:|stowage|anywidget|\bsw-", error, re.IGNORECASE)]
        return [error for error in found if not expected or expected not in error]

    def close(self) -> None:
        """End the kernel and leave the page as it was; after a test that failed, nobody comes here."""
        self.page.remove_listener("pageerror", self._note_error)
        self.page.remove_listener("console", self._note_line)
        if "/lab/" not in self.page.url or self._slow:
            self.page.close()
            return
        self.page.evaluate(LEAVE)
        self.page.mouse.move(0, 0)
        self.lab.take_back(self.page)


@contextlib.contextmanager
def running(at: Path) -> Iterator[Lab]:
    """Start a server in a folder and end it, with its kernels, in the end."""
    port, token = free_port(), secrets.token_hex(16)
    own = {
        name: str(at / "jupyter" / name.lower())
        for name in (
            "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR",
            "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR",
        )
    }  # fmt: skip
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={at}", "--LabApp.extension_manager=readonly", "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--expose-app-in-browser",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]  # fmt: skip
    with (at / "server.log").open("w") as log:
        server = subprocess.Popen(
            command, env={**os.environ, **own, "PYTHONPATH": path}, stdout=log, stderr=log, cwd=at
        )
    lab = Lab(at, port, token)
    try:
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                lab.ask("status")
                break
            except OSError:
                written = (at / "server.log").read_text()[-2000:]
                assert server.poll() is None, f"JupyterLab did not start: {written}"
                assert time.monotonic() < give_up, f"JupyterLab does not answer: {written}"
                time.sleep(0.1)
        yield lab
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
