"""Whether all ends, and how soon, when a worker is killed or stopped at any moment of a run on several workers.

    python benchmarks/worker_kills.py
    python benchmarks/worker_kills.py gpt --workers 4 --kills 50

Every run writes a checkpoint after each step and has a signal sent to one of its processes, SIGKILL or SIGSTOP by
turns, at a moment drawn between the first process and the end. The exit status is 1 where a run does not end within 10
seconds, where a process is left, where the model is neither as it was nor as a whole run leaves it, or where what is on
the disk cannot be loaded, is not the state of a finished step to the bit, or is of another step than the error says.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from worker_processes import worker_processes

from planner.capture import capture
from planner.errors import StowageError
from planner.partition import PartitionPlan, search_partition
from planner.run import WorkerFailedError, load_checkpoint, run_workers
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
    states = states_after_each_step(step, partition)
    draw, faults, ends, found = random.Random(args.seed), 0, list[float](), Counter[int]()
    with TemporaryDirectory() as folder:
        restore(step, states[0])
        spent = whole_run(step, partition, Path(folder) / "whole")
        for number in range(args.kills):
            restore(step, states[0])
            checkpoint = Path(folder) / str(number)
            sent = (signal.SIGKILL, signal.SIGSTOP)[number % 2]
            worker, moment = draw.randrange(args.workers), draw.random() * spent
            what, seconds = killed_run(step, partition, worker, moment, sent, checkpoint)
            time.sleep(0.3)
            left, state = worker_processes(), step.state()
            whole = same(state, states[0]) or (what == "finished" and same(state, states[-1]))
            saved, fault = on_disk(step, states, checkpoint, what)
            found[saved] += 1
            wrong = [
                text
                for text, bad in (
                    ("late", seconds > GOAL_SECONDS), (f"{len(left)} processes left", left),
                    ("state in between", not whole), (fault, fault),
                )
                if bad
            ]  # fmt: skip
            faults += bool(wrong)
            ends.append(seconds)
            print(
                f"{number:3} {sent.name} of worker {worker} after {moment:5.2f} s: {what.partition(';')[0]}, "
                f"{seconds:5.2f} s later, step {saved} on the disk", *wrong, flush=True,
            )  # fmt: skip
    print(f"steps on the disk: {dict(sorted(found.items()))}")
    print(f"{args.kills} runs, {faults} wrong; ended after {max(ends):.1f} s at most")
    sys.exit(1 if faults else 0)


def states_after_each_step(step: Step, partition: PartitionPlan) -> list[dict[str, Tensor]]:
    """The state before the first step and after each, if none is interrupted."""
    states = [{key: value.clone() for key, value in step.state().items()}]
    run = run_workers(step, partition, steps=0, progress=False)
    for _ in run.steps([step.materialize().batch] * _STEPS):
        states.append({key: value.clone() for key, value in step.state().items()})
    run.close()
    return states


def whole_run(step: Step, partition: PartitionPlan, checkpoint: Path) -> float:
    """Make a whole run; returns the seconds from its first process to its end."""
    began: list[float] = []
    watcher = threading.Thread(target=lambda: began.append(first_process(partition.workers)))
    watcher.start()
    run_workers(
        step, partition, steps=_STEPS, checkpoint=checkpoint, checkpoint_every=1, progress=False
    ).wait()  # fmt: skip
    watcher.join()
    return time.monotonic() - began[0]


def on_disk(step: Step, states: list[dict[str, Tensor]], checkpoint: Path, what: str) -> tuple[int, str]:
    """The step whose state a checkpoint has, 0 for no checkpoint, and what is wrong with that."""
    said = int(match[1]) if (match := re.search(r"the state after step (\d+) is in", what)) else 0
    if not (checkpoint / ".metadata").exists():
        return 0, "no checkpoint" if said or what == "finished" else ""
    try:
        saved = load_checkpoint(step, checkpoint)
    except StowageError as error:
        return 0, str(error)
    if not same(step.state(), states[saved]):
        return saved, "another state on the disk"
    return saved, "another step on the disk than said" if what != "finished" and saved != said else ""


def killed_run(
    step: Step, partition: PartitionPlan, worker: int, moment: float, sent: signal.Signals, checkpoint: Path
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
        run_workers(
            step, partition, steps=_STEPS, checkpoint=checkpoint, checkpoint_every=1, progress=False
        ).wait()  # fmt: skip
        what = "finished"
    except WorkerFailedError as error:
        what = str(error)
    ended = time.monotonic()
    killer.join()
    return what, max(0.0, ended - when[0])


def first_process(workers: int) -> float:
    """Wait until all processes of workers are there; returns when that was."""
    while len(worker_processes()) < workers:
        time.sleep(0.005)
    return time.monotonic()


def restore(step: Step, state: dict[str, Tensor]) -> None:
    step.materialize().steps = 0
    with torch.no_grad():
        for key, value in step.state().items():
            value.copy_(state[key])


def same(state: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return state.keys() == other.keys() and all(torch.equal(value, other[key]) for key, value in state.items())


if __name__ == "__main__":
    main()
