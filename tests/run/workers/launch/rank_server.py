"""Forks ranks, as a launcher starts them, from a process that has loaded what they need: `python rank_server.py`.

Reads a JSON line per launch from its standard input: which of `SCENARIOS` its ranks go through, with which arguments,
and the environment of each. Answers with a line of their process numbers, and when all have ended with one of what each
has to say.
"""

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import torch

import planner
from planner.capture import capture
from planner.partition import PartitionPlan, coarsen, optimize, worker_graph
from tests.run.workers.launch.scenarios import SCENARIOS, network


def get_ready() -> None:
    """Import, compile and measure once what each rank would otherwise, which takes it longer than all that it does."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a fork would come without the other threads of a pool, and wait for them
    graph = capture(network(), progress=False)
    worker_graph(PartitionPlan.of(optimize(coarsen(graph), 2)), graph, 0)
    run = planner.run(network(), steps=1, progress=False)
    begun = threading.enumerate()
    run.wait()
    # a thread that has ended for Python may still be giving back buffers of MKL, whose lock a fork would keep for good
    while any(not each.is_alive() and Path(f"/proc/self/task/{each.native_id}").exists() for each in begun):
        time.sleep(0.01)
    assert planner.run_workers  # is imported when it is named
    torch.set_num_threads(threads)


def serve() -> None:
    get_ready()
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / str(rank) for rank in range(len(asked["environments"]))]
            numbered = enumerate(zip(files, asked["environments"], strict=True))
            processes = [
                fork(asked["scenario"], number, asked["arguments"], each, file) for number, (file, each) in numbered
            ]
            print(json.dumps(processes), flush=True)
            for _ in processes:
                os.wait()  # whichever ends next, or it would seem to be there still
            print(json.dumps([json.loads(file.read_text()) if file.exists() else None for file in files]), flush=True)


def fork(scenario: str, number: int, arguments: list[object], environment: dict[str, str], file: Path) -> int:
    process = os.fork()
    if process:
        return process
    sys.stdin.close()
    os.environ.update(environment)
    try:
        found = SCENARIOS[scenario](number, *arguments)
    except BaseException as error:
        found = f"{type(error).__name__}: {error}"
    file.write_text(json.dumps(found))
    os._exit(0)


if __name__ == "__main__":
    serve()
