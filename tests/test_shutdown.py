"""A program ends when its main thread does, whatever still goes on: soon, without noise and without an abort."""

import subprocess
import sys

import pytest

from tests import preloaded

BEGIN = """
import faulthandler, sys, threading, time
faulthandler.dump_traceback_later(200, exit=True)  # says where it hangs, if it does
import planner, widgets
from planner import zoo

step = zoo.load("gpt:layers=2,hidden=64,sequence=32")
"""
#: What is going on at the end, and how far it is.
CASES = {
    "a capture that has just begun": "bench = widgets.Workbench(step, budget='60%'); time.sleep(0.05)",
    "a model's code, in the callbacks of its weak references": """
import torch, weakref
class Forgetful(torch.nn.Linear):
    def forward(self, x):
        while True:
            kept = set()
            watched = weakref.ref(kept, lambda _: [None for _ in range(10**5)])
            begun.set()
            del kept
begun = threading.Event()
loss = lambda model, batch: model(batch).sum()
step = planner.TrainStep(Forgetful(2, 2), torch.ones(2, 2), loss=loss, optimizer=planner.SGD(lr=0.1))
bench = widgets.Workbench(step, budget='60%')
begun.wait()
""",
    "a sweep, a search, a run of a bench and one of its own": """
steps = [zoo.load("gpt:layers=2,hidden=64,sequence=32") for _ in range(3)]
swept, searched, ran = (widgets.Workbench(one, budget=budget) for one, budget in zip(steps, ("50%", "60%", "200%")))
swept.plan; swept.session.request({"do": "ready"})
searched.plan; searched.start_search(None); searched.search
ran.plan; ran.start_run(10**6)
run = planner.run(step, steps=10**6)
while not run.step_seconds:
    assert run.progress.state == "running", run.error
    time.sleep(0.01)
""",
}


def ended(code: str, *, imports: bool = False) -> tuple[int, str]:
    """The exit status of a program, and what it had to say at its end.

    Args:
        code: of the program.
        imports: whether it ends while PyTorch is imported, rather than with everything imported.
    """
    words = "-c", BEGIN + code
    command = [sys.executable, *words] if imports else preloaded.command(*words)
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr


@pytest.mark.parametrize("case", CASES)
def test_what_goes_on_ends_with_the_program(case: str) -> None:
    assert ended(CASES[case], imports=case == "a capture that has just begun") == (0, "")


def test_what_another_thread_of_the_program_waits_for_goes_on_until_that_ends() -> None:
    code = """
run = planner.run(step, steps=3)
def wait():
    threading.main_thread().join()
    print(len(run.wait().losses), file=sys.stderr)
while run.plan is None: time.sleep(0.01)
threading.Thread(target=wait).start()
"""
    assert ended(code) == (0, "3\n")
