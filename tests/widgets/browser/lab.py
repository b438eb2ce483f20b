"""A JupyterLab that runs for the tests, and a notebook that is open in it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, Locator, Page, TimeoutError

ROOT = Path(__file__).parents[3]
#: On a busy machine a server, a kernel and PyTorch take their time.
PATIENCE = 240.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


#: Before a long script is loaded, nothing happens for longer than anywidget waits for it.
SLOW = """() => {
  const make = URL.createObjectURL;
  URL.createObjectURL = part => {
    const until = performance.now() + (part.size > 1e5 ? 3000 : 0);
    while (performance.now() < until);
    return make.call(URL, part);
  };
}"""


class Lab:
    """A server on this computer, which only who knows its token may use.

    Args:
        at: folder for notebooks and settings.
        port, token: of the server.
    """

    def __init__(self, at: Path, port: int, token: str) -> None:
        self.at, self.address, self._token = at, f"http://127.0.0.1:{port}", token

    def ask(self, path: str, method: str = "GET") -> Any:
        """What the server's API answers."""
        header = {"Authorization": f"token {self._token}"}
        asked = urllib.request.Request(f"{self.address}/api/{path}", method=method, headers=header)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

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

    def look_at(self, browser: Browser, name: str, page: str = "lab/tree") -> Opened:
        """Open a notebook that is there."""
        return Opened(self, browser, f"{self.address}/{page}/{name}?reset&token={self._token}")

    def trust(self, name: str) -> None:
        """Take a notebook for the user's own, whose widgets may be shown."""
        notary = NotebookNotary(data_dir=str(self.at / "jupyter" / "jupyter_data_dir"))
        notary.sign(nbformat.read(self.at / name, as_version=4))


class Opened:
    """A notebook in a page."""

    def __init__(self, lab: Lab, browser: Browser, address: str) -> None:
        self.lab = lab
        self.errors: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": 1500, "height": 1300})
        self.page.set_default_timeout(PATIENCE * 1000)
        self.page.on("pageerror", lambda error: self.errors.append(f"{error}\n{error.stack}"))
        self.page.on("console", lambda line: self.errors.append(said(line)) if line.type == "error" else None)
        self.page.goto(address)
        self.wait_for_kernel()

    def wait_for_kernel(self) -> None:
        """Wait until the notebook's kernel has nothing to do."""
        self.until(
            """() => { const kernel = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
              return kernel?.connectionStatus === 'connected' && kernel.status === 'idle'; }"""
        )

    def command(self, name: str) -> None:
        """Do what a menu entry does."""
        self.page.evaluate("name => { window.jupyterapp.commands.execute(name); }", name)

    def load_slowly(self) -> None:
        """Have the scripts of widgets take as long to load as on a busy computer."""
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

    def until(self, condition: str) -> None:
        """Wait until a condition holds in the page; where it never does, the error says what is shown instead.

        It is looked at ten times a second: at every frame, a page that has nothing else to do draws sixty.
        """
        try:
            self.page.wait_for_function(condition, polling=100)
        except TimeoutError as error:
            shown, drawn = self.find("body").inner_text(), self.find(".js-plotly-plot text").all_text_contents()
            error.add_note(f"the page shows:\n{shown[-2000:]}\nin plots: {drawn}\nin its console: {self.errors[-5:]}")
            raise

    def ours(self) -> list[str]:
        """Errors that come from a widget, and not from JupyterLab's own parts or what it looks for."""
        return [error for error in self.errors if re.search(r"blob:|stowage|anywidget|\bsw-", error, re.IGNORECASE)]

    def close(self) -> None:
        self.page.close()


def said(line: Any) -> str:
    """A line of the console and where it comes from."""
    return f"{line.text} ({(line.location or {}).get('url', '')})"


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
