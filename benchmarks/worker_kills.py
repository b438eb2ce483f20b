"""Whether all ends, and how soon, when a worker is killed or stopped at any moment of a run on several workers.

    python benchmarks/worker_kills.py
    python benchmarks/worker_kills.py gpt --workers 4 --kills 50

Every run has a signal sent to one of its processes, SIGKILL or SIGSTOP by turns, at a moment drawn between the first
process and the end. The exit status is 1 where a run does not end within 10 seconds, where a process is left, or where
the model is neither as it was nor as a whole run leaves it.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time

import torch
from torch import Tensor
from worker_processes import worker_processes

from planner.capture import capture
from planner.partition import PartitionPlan, search_partition
from planner.run import WorkerFailedError, run_workers
from planner.step import Step
from planner.zoo import load

GOAL_SECONDS = 10.0
_STEPS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="gpt:layers=2,hidden=64,sequence=32,optimizer=adam")
    parser.add_argument("--workers", type=int, default=3, help="how many processes (default 3)")
    parser.add_argument("--kills", type=int, default=50, help="how many runs (default 50)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    step = load(args.model)
    partition = search_partition(capture(step), args.workers).wait(progress=False)
    before, spent = {key: value.clone() for key, value in step.state().items()}, whole_run(step, partition)
    after = {key: value.clone() for key, value in step.state().items()}
    draw, faults, ends = random.Random(args.seed), 0, []
    for number in range(args.kills):
        restore(step, before)
        sent = (signal.SIGKILL, signal.SIGSTOP)[number % 2]
        worker, moment = draw.randrange(args.workers), draw.random() * spent
        what, seconds = killed_run(step, partition, worker, moment, sent)
        time.sleep(0.3)
        left, state = worker_processes(), step.state()
        whole = same(state, before) or (what == "finished" and same(state, after))
        wrong = [
            text
            for text, bad in (
                ("late", seconds > GOAL_SECONDS), (f"{len(left)} processes left", left), ("state in between", not whole)
            )
            if bad
        ]  # fmt: skip
        faults += bool(wrong)
        ends.append(seconds)
        print(
            f"{number:3} {sent.name} of worker {worker} after {moment:5.2f} s: {what}, {seconds:5.2f} s later", *wrong
        )
    print(f"{args.kills} runs, {faults} wrong; ended after {max(ends):.1f} s at most")
    sys.exit(1 if faults else 0)


def whole_run(step: Step, partition: PartitionPlan) -> float:
    """Make a whole run; returns the seconds from its first process to its end."""
    began: list[float] = []
    watcher = threading.Thread(target=lambda: began.append(first_process(partition.workers)))
    watcher.start()
    run_workers(step, partition, steps=_STEPS, progress=False).wait()
    watcher.join()
    return time.monotonic() - began[0]


def killed_run(
    step: Step, partition: PartitionPlan, worker: int, moment: float, sent: signal.Signals
) -> tuple[str, float]:
    """A run in which a process gets a signal; returns how it ended, and how long after the signal."""
    when: list[float] = []

    def act() -> None:
        first_process(partition.workers)
        time.sleep(moment)
        if len(found := worker_processes()) > worker:
            os.kill(found[worker], sent)
        when.append(time.monotonic())

    killer = threading.Thread(target=act)
    killer.start()
    try:
        run_workers(step, partition, steps=_STEPS, progress=False).wait()
        what = "finished"
    except WorkerFailedError as error:
        what = str(error).partition(";")[0]
    ended = time.monotonic()
    killer.join()
    return what, max(0.0, ended - when[0])


def first_process(workers: int) -> float:
    """Wait until all processes of workers are there; returns when that was."""
    while len(worker_processes()) < workers:
        time.sleep(0.005)
    return time.monotonic()


def restore(step: Step, state: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for key, value in step.state().items():
            value.copy_(state[key])


def same(state: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return state.keys() == other.keys() and all(torch.equal(value, other[key]) for key, value in state.items())


if __name__ == "__main__":
    main()
