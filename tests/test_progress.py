"""How far a long call is: shown while it lasts, in a terminal, a log and a notebook, and nothing left of it after."""

import inspect
import os
import pty
import re
import select
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import planner
import widgets
from planner import profile, swap
from planner.errors import StowageError
from planner.graph import Graph
from planner.progress import reporting
from tests import preloaded

ROOT = Path(__file__).parent.parent
GPU = "v100-16gb"
#: A step whose model waits for a line on standard input, so that its capture takes as long as a test wants.
GATED = """
import sys, torch, planner

class Gated(torch.nn.Linear):
    def forward(self, x):
        if sys.stdin.readline().strip() == "fail":
            raise ValueError("told to")
        return super().forward(x)

step = planner.TrainStep(lambda: Gated(2, 2), lambda: torch.ones(2, 2), loss=lambda model, x: model(x).sum())
"""
BAR = "running the model on fake tensors"


class Terminal:
    """A script at a terminal of its own: what it shows is read, and keys are typed."""

    def __init__(self, script: Path, out: Path | None = None) -> None:
        self.shown, self._read_to = "", 0
        self.process, self._end = pty.fork()
        if self.process == 0:
            if out is not None:
                os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
            no_echo = termios.tcgetattr(0)
            no_echo[3] &= ~termios.ECHO
            termios.tcsetattr(0, termios.TCSANOW, no_echo)
            os.environ |= {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
            command = preloaded.command(str(script))
            os.execv(command[0], command)

    def read_until(self, text: str) -> None:
        """Read until a text is shown after what was read before."""
        while (found := self.shown.find(text, self._read_to)) < 0:
            assert self._read(), f"it ended and showed {self.shown!r}"
        self._read_to = found + len(text)

    def type(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def close(self) -> int:
        """Read to the end; returns the exit status."""
        while self._read():
            pass
        os.close(self._end)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def _read(self) -> bool:
        ready, _, _ = select.select([self._end], [], [], 120)
        assert ready, f"nothing happens after {self.shown!r}"
        try:
            got = os.read(self._end, 65536)
        except OSError:  # the other end is closed
            return False
        self.shown += got.decode(errors="replace")
        return bool(got)


def screen(shown: str) -> list[str]:
    """The lines that are left on a terminal that has shown this: only what a bar writes is understood."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", shown):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif up := re.fullmatch(r"\x1b\[(\d+)A", part):
            row -= int(up[1])
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return [line.rstrip() for line in lines if line.strip()]


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    def write(body: str) -> Path:
        path = tmp_path / "script.py"
        path.write_text(GATED + body)
        return path

    return write


def test_a_terminal_shows_a_bar_that_is_gone_in_the_end(script: Callable[[str], Path]) -> None:
    calls = "planner.capture(step)", "planner.run(step, budget='100%', steps=1).wait()"
    terminal = Terminal(script("\n".join(f"print('done:', type({call}).__name__)" for call in calls)))
    for result in ("Graph", "RunResult"):
        terminal.read_until("━")
        terminal.type("go\n" * 20)
        terminal.read_until(f"done: {result}")
    assert terminal.close() == 0
    assert screen(terminal.shown) == ["done: Graph", "done: RunResult"]


def test_what_is_printed_meanwhile_goes_where_it_should(script: Callable[[str], Path], tmp_path: Path) -> None:
    path = script("planner.capture(step); print('done')")
    path.write_text(path.read_text().replace("        if sys", "        print('line 1')\n        if sys"))
    terminal = Terminal(path, tmp_path / "out.txt")
    terminal.read_until(BAR)
    terminal.type("go\n" * 20)
    assert terminal.close() == 0
    assert (tmp_path / "out.txt").read_text().splitlines()[-2:] == ["line 1", "done"]
    assert "line 1" not in terminal.shown


def test_an_error_leaves_no_bar(script: Callable[[str], Path]) -> None:
    terminal = Terminal(script("planner.capture(step)"))
    terminal.read_until(BAR)
    terminal.type("fail\n")
    assert terminal.close() == 1
    left = screen(terminal.shown)
    assert "told to" in left[-1]
    assert not any(BAR in line for line in left)


INTERRUPTED = """
try:
    {call}
except KeyboardInterrupt:
    print("interrupted: {name}")
"""
INCEPTION = """
graph = planner.capture(planner.zoo.load("inception:batch=64"), progress=False)
gpu = planner.machine("v100-16gb")
search = planner.search_swaps(graph, gpu, "10GB", time_limit=None)
"""
LONG = {
    "capture": "planner.capture(step)",
    "run": "planner.run(step, budget='100%').wait()",
    "wait": f"{INCEPTION}search.wait()",
    "plan_swaps": "search.cancel(); planner.plan_swaps(graph, gpu, '10GB', time_limit=600)",
    "sensitivity": "planner.swap.sensitivity(graph, gpu, '10GB', time_limit_each=600)",
}


def test_control_c_ends_a_call_and_its_bar(script: Callable[[str], Path]) -> None:
    """One call after the other, in a program that goes on after each."""
    terminal = Terminal(
        script(
            "".join(
                INTERRUPTED.format(call=call.strip().replace("\n", "\n    "), name=name) for name, call in LONG.items()
            )
        )
    )
    for name in LONG:
        terminal.read_until("━")
        terminal.type("\x03" + "go\n" * 20)  # a run ends when the op that is at work does
        terminal.read_until(f"interrupted: {name}")
    assert terminal.close() == 0
    assert screen(terminal.shown) == [f"interrupted: {name}" for name in LONG]


def test_control_c_while_a_kernel_hands_over_its_result_is_one() -> None:
    """Many, at times that differ, between and inside of small kernels."""
    code = """
import signal
import planner
from planner.progress import reporting
buffers = [0, 0], [1, 1], [8, 8]
planner.pack(*buffers)
signal.signal(signal.SIGALRM, signal.default_int_handler)
for number in range(400):
    try:
        with reporting(False):
            signal.setitimer(signal.ITIMER_REAL, 0.002 + number * 1e-5)
            while True:
                planner.pack(*buffers)
    except KeyboardInterrupt:
        pass
print("heard them all")
"""
    done = subprocess.run(preloaded.command("-c", code), capture_output=True, text=True, check=False, timeout=200)
    assert (done.stdout, done.stderr) == ("heard them all\n", "")


def test_control_c_while_a_kernel_makes_a_named_tuple_is_one() -> None:
    """In the very function that numba calls, and expects an object from."""
    code = """
import os
import signal
import sys
import planner
graph, gpu = planner.capture(planner.zoo.load("mlp"), progress=False), planner.machine("v100-16gb")
pressed = 0


def press(frame, event, _):
    global pressed
    if event == "call" and frame.f_code.co_name == "_numba_unpickle":
        sys.setprofile(None)
        pressed += 1
        os.kill(os.getpid(), signal.SIGINT)


sys.setprofile(press)
try:
    while True:
        planner.plan_swaps(graph, gpu, "50%", time_limit=1, progress=False)
except KeyboardInterrupt:
    print("heard", pressed)
"""
    done = subprocess.run(preloaded.command("-c", code), capture_output=True, text=True, check=False, timeout=200)
    assert (done.stdout, done.stderr) == ("heard 1\n", "")


def gated(script: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        preloaded.command(str(script)), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_a_log_gets_a_plain_line_now_and_then(script: Callable[[str], Path]) -> None:
    process = gated(script("planner.capture(step)"))
    assert process.stderr is not None
    assert process.stderr.readline() == f"planner: {BAR}\n"
    process.communicate("go\n")
    assert process.returncode == 0


def test_nothing_is_shown_where_nothing_is_asked_for(script: Callable[[str], Path]) -> None:
    """The bar of one call beside a call that is silent: what is shown is only of the other."""
    terminal = Terminal(
        script(
            "from planner.progress import Progress, shown\nnow = Progress()\nnow(0.5, 'another')\nwith shown(now):\n"
            "    planner.capture(step, progress=False)"
        )
    )
    terminal.read_until("another")
    terminal.type("go\n" * 20)
    assert terminal.close() == 0
    assert BAR not in terminal.shown


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planner.capture(planner.zoo.load("mlp:layers=3"), progress=False)


@pytest.fixture(scope="module")
def saved(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search that was saved."""
    search = swap.search_swaps(graph, profile.machine(GPU), "60%", time_limit=0.2)
    search.wait(progress=False)
    search.save(path := tmp_path_factory.mktemp("search") / "search.json")
    return path


def calls(graph: Graph, saved: Path) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """Everything that may take long."""
    gpu, cpu, half = profile.machine(GPU), profile.machine("cpu", progress=False), "60%"
    seconds = planner.machine.op_seconds(graph, gpu)
    yield "capture", planner.capture.capture, (planner.zoo.load("mlp"),), {}
    yield "measure_ops", profile.measure_ops, (graph, cpu), {"cache": False}
    yield "prepare", profile.prepare, (graph, cpu), {"remeasure": True}
    yield "plan_swaps", planner.plan_swaps, (graph, gpu, half), {"time_limit": 0.2}
    yield "plan_with_baselines", swap.plan_with_baselines, (graph, gpu, half), {"time_limit": 0.2}
    yield "sweep", swap.sweep, (graph, gpu, [half, "80%"]), {"time_limit_each": 0.2}
    yield "sensitivity", swap.sensitivity, (graph, gpu, half), {"memory": 2**16, "time_limit_each": 0.2}
    budget = planner.memory.step_peak(graph) * 6 // 10
    yield "order_bound", swap.order_bound, (graph, gpu, budget, seconds, range(len(graph.ops))), {}
    plan = planner.plan_swaps(graph, gpu, half, time_limit=0.2, progress=False)
    yield "explain", swap.explain, (plan, graph, gpu), {}
    yield "load_search", swap.load_search, (saved, graph, gpu), {"time_limit": 0}
    yield "wait", swap.search_swaps(graph, gpu, half, time_limit=1).wait, (), {}
    yield "machine", profile.machine, ("cpu",), {}
    yield "schedule and pool", widgets.info.swapadvisor_figure_1.get_schedule_and_pool, (), {}


def test_every_long_call_shows_how_far_it_is_unless_told_otherwise(graph: Graph, saved: Path) -> None:
    for name, call, _, _ in calls(graph, saved):
        assert inspect.signature(call).parameters["progress"].default is True, name
    assert inspect.signature(planner.run.run).parameters["progress"].default is True


def test_a_function_is_called_in_its_place_and_anything_else_is_refused(graph: Graph, saved: Path) -> None:
    for name, call, words, more in calls(graph, saved):
        said: list[tuple[float, str]] = []
        call(*words, **more, progress=lambda share, doing, said=said: said.append((share, doing)))
        if name != "wait":  # it may be over
            assert said, name
        assert all(0 <= share <= 1 and doing for share, doing in said), name
        with pytest.raises(StowageError, match="progress must be True, False or a function of"):
            call(*words, **more, progress="yes")


CELL = """
import time
from pathlib import Path
import torch, planner

class Gated(torch.nn.Linear):
    def forward(self, x):
        print("forward")
        while not Path({go!r}).exists():
            time.sleep(0.01)
        return super().forward(x)

step = planner.TrainStep(lambda: Gated(2, 2), lambda: torch.ones(2, 2), loss=lambda model, x: model(x).sum())
graph = planner.capture(step)
print("done")
"""


def test_a_notebook_has_a_line_that_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL.format(go=str(tmp_path / "go")))])
    lines: list[str] = []

    class Client(NotebookClient):
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            text = msg["content"].get("data", {}).get("text/plain", "")
            if msg["msg_type"] in ("display_data", "update_display_data") and text:
                lines.append(text)
                (tmp_path / "go").touch()
            return super().process_message(msg, cell, cell_index)

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    Client(notebook, timeout=240).execute()
    assert any(BAR in line for line in lines)
    outputs = notebook.cells[0].outputs
    assert "".join(output.get("text", "") for output in outputs) == "forward\ndone\n"
    assert [output.data for output in outputs if output.output_type == "display_data"] == [{}]


def test_an_interrupt_of_the_kernel_ends_the_call_and_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL.format(go=str(tmp_path / "never")))])

    class Client(NotebookClient):
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if msg["msg_type"] == "display_data":
                os.kill(self.km.provisioner.pid, signal.SIGINT)
            return super().process_message(msg, cell, cell_index)

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    Client(notebook, timeout=240, allow_errors=True).execute()
    outputs = notebook.cells[0].outputs
    assert [output.data for output in outputs if output.output_type == "display_data"] == [{}]
    assert [output.ename for output in outputs if output.output_type == "error"] == ["KeyboardInterrupt"]


@pytest.mark.parametrize("layers", [1, 2])
def test_control_c_within_numba_is_one(layers: int) -> None:
    def wrapped(depth: int) -> None:  # as C code that finds an exception set after a call raises its own
        try:
            if depth == 0:
                raise KeyboardInterrupt
            wrapped(depth - 1)
        except BaseException as error:
            raise SystemError("returned a result with an exception set") from error

    with pytest.raises(KeyboardInterrupt), reporting(False):
        wrapped(layers - 1)
    with pytest.raises(SystemError), reporting(False):
        raise SystemError("something else")
