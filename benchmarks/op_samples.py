"""How many of PyTorch's own op samples run by a plan with eager's bits, and what becomes of the others.

Every op of PyTorch's tests is called by a step of its own, for inference and for training, in several layouts and
types. The step is made by eager PyTorch, by hand, and by the first plan there is within what it takes unswapped:
outputs, losses and parameters are to have the same bits, or the capture says in a sentence why it cannot be.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import signal
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
from op_cases import Case, cases, loss, op_db
from torch import Tensor
from torch.utils import _pytree as pytree

from planner import InferenceStep, TrainStep, capture, machine, plan_swaps, run
from planner.errors import StowageError
from planner.plan import SwapPlan
from planner.profile.measure import measure_ops
from planner.step import SGD, Step

STEPS = 2
RATE = 1e-3
_MOST_SECONDS = 120  # for a case; it ends the process
#: The last three must not be.
OUTCOMES = ("equal", "refused", "eager raises", "fails late", "different", "crashed")


@dataclass(frozen=True)
class Outcome:
    """What became of a case, and why."""

    kind: str
    reason: str = ""


def attempt(case: Case) -> Outcome:
    """Make a case's step twice, by eager PyTorch and by a plan."""
    expected, error = None, ""
    try:
        expected = eagerly(case)
    except Exception as raised:
        error = type(raised).__name__
    if expected is None:
        return Outcome("eager raises", error)
    try:
        step = _step(case)
        if step is None:
            return Outcome("eager raises", "no gradient")
        try:
            capture(step)
        except StowageError as refusal:
            return Outcome("refused", str(refusal))
        try:
            found = planned(case, step)
        except StowageError as refusal:
            return Outcome("fails late", str(refusal))
    except Exception as crash:
        line = traceback.extract_tb(crash.__traceback__)[-1]
        return Outcome("crashed", f"{type(crash).__name__} {crash} at {Path(line.filename).name}:{line.lineno}")
    if len(found) != len(expected):
        return Outcome("different", f"{len(found)} tensors for {len(expected)}")
    apart = [
        place
        for place, (ours, theirs) in enumerate(zip(found, expected, strict=True))
        if not (same_bits(ours, theirs) if case.written else ours.shape == theirs.shape)
    ]
    return Outcome("different", f"tensors {apart} of {len(found)}") if apart else Outcome("equal")


def eagerly(case: Case) -> list[Tensor]:
    """Plain PyTorch: outputs, or losses and parameters after the steps."""
    torch.manual_seed(1)
    module, batch = case.make()
    if case.mode != "training":
        with torch.no_grad():
            return _tensors(module.eval()(*batch))
    parameters = list(module.parameters())
    if not parameters:
        raise TypeError("no parameter")
    optimizer, losses = torch.optim.SGD(parameters, lr=RATE, foreach=False), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss(module, batch)
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return [*losses, *(parameter.detach() for parameter in parameters)]


def _step(case: Case) -> Step | None:
    module, batch = case.make()
    if case.mode != "training":
        return InferenceStep(module, batch)
    return TrainStep(module, batch, loss=loss, optimizer=SGD(lr=RATE))


def planned(case: Case, step: Step) -> list[Tensor]:
    """The same by a plan."""
    plan = first_plan(step)
    torch.manual_seed(1)
    result = run(step, plan, steps=STEPS if case.mode == "training" else 1).wait()
    if case.mode != "training":
        return list(result.outputs)
    model = step.materialize().model
    return [*(torch.tensor(value) for value in result.losses), *(one.detach() for one in model.parameters())]


def first_plan(step: Step) -> SwapPlan:
    """A plan within what the step takes unswapped, by costs that are measured and not kept."""
    graph, here = capture(step), machine("cpu")
    costs = measure_ops(graph, here, cache=False)
    ready = graph.with_workspaces({op: int(size) for op, size in enumerate(costs.workspace_bytes) if size})
    whole = "100%" if any(storage.bytes for storage in graph.storages) else 4096
    return plan_swaps(ready, here, whole, seconds=costs.seconds, time_limit=0)


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape, type and bits."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    plain = [tensor.detach().resolve_conj().resolve_neg().contiguous() for tensor in (one, other)]
    # one element is contiguous whatever its strides
    return torch.equal(*(tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8) for tensor in plain))


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def work(names: list[str], share: float, pipe: Connection) -> None:
    """Try ops, one message for each case that begins and one for what became of it."""
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # kernels warn by themselves
    torch.set_num_threads(1)
    for op in (op for op in op_db() if op.full_name in names):
        try:
            for case in cases(op, share):
                pipe.send(("begin", op.full_name, case.name))
                signal.alarm(_MOST_SECONDS)
                pipe.send(("end", op.full_name, case.name, attempt(case)))
        except Exception as error:  # samples that want what this machine has not
            pipe.send(("skip", op.full_name, f"{type(error).__name__} {error}"))
        pipe.send(("done", op.full_name))
    pipe.send(("over", ""))


def sweep(names: list[str], jobs: int, share: float) -> Iterator[tuple[Any, ...]]:
    """The messages of all workers; where an op takes its worker with it, another goes on with the next op."""
    context = multiprocessing.get_context("spawn")
    parts = [names[first::jobs] for first in range(jobs)]
    running: dict[Connection, tuple[Any, list[str], str]] = {}

    def begin(part: list[str]) -> None:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(part, share, theirs), daemon=True)
        process.start()
        theirs.close()
        running[ours] = process, part, ""

    for part in filter(None, parts):
        begin(part)
    while running:
        for pipe in wait(list(running)):
            assert isinstance(pipe, Connection)
            process, part, current = running[pipe]
            try:
                message = pipe.recv()
            except EOFError:
                message = ("died",)
            if message[0] == "begin":
                running[pipe] = process, part, message[2]
            elif message[0] == "done":
                part.remove(message[1])
            elif message[0] in ("over", "died"):
                process.join()
                del running[pipe]
                if message[0] == "died" and part:
                    yield "end", part[0], current, Outcome("crashed", f"the process ended with {process.exitcode}")
                    begin(part[1:])
                continue
            yield message


def reason(outcome: Outcome) -> str:
    """The words of a sentence that do not name op, place or number."""
    text = re.sub(r" \([^()]*(\([^()]*\)[^()]*)*\)", "", outcome.reason)
    text = re.sub(r"(torch\.)?ops\.\S+|(aten|prims|inductor|quantized|torchvision)\.\S+", "OP", text)
    text = re.sub(r"\S+\.py:\d+", "LINE", re.sub(r"\b\d[\d,.]*\b", "N", text))
    return " ".join(text.split()[:16])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", help="only those whose name contains one of these, with commas between them")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of samples")
    parser.add_argument("--out", type=Path, help="a JSON file for what became of every case")
    asked = parser.parse_args()
    wanted = asked.ops.split(",") if asked.ops else [""]
    names = [op.full_name for op in op_db() if any(word in op.full_name for word in wanted)]
    found: dict[str, Outcome] = {}
    told: set[tuple[str, str, str]] = set()
    begun, ops = time.perf_counter(), 0
    for message in sweep(names, asked.jobs, asked.share):
        if message[0] == "end":
            found[message[2]] = message[3]
            once = message[1], message[3].kind, reason(message[3])
            if message[3].kind in OUTCOMES[3:] and once not in told:
                told.add(once)
                print(f"{message[3].kind}: {message[2]}: {message[3].reason}", flush=True)
        elif message[0] == "skip":
            print(f"no samples: {message[1]}: {message[2]}", flush=True)
        elif message[0] == "done":
            ops += 1
            if ops % 25 == 0:
                print(f"{ops} of {len(names)} ops, {len(found)} cases, {time.perf_counter() - begun:.0f} s", flush=True)
    report(found)
    if asked.out:
        rows = {name: [outcome.kind, outcome.reason] for name, outcome in found.items()}
        asked.out.write_text(json.dumps(rows, indent=0))


def report(found: dict[str, Outcome]) -> None:
    """Counts by outcome and mode, then by reason."""
    kinds = Counter((outcome.kind, name.split(" ", 1)[1].split(" #")[0]) for name, outcome in found.items())
    columns = sorted({column for _, column in kinds})
    print(f"\n{'':36}" + "".join(f"{kind:>13}" for kind in OUTCOMES))
    for column in columns:
        print(f"{column:36}" + "".join(f"{kinds[kind, column]:13}" for kind in OUTCOMES))
    totals = Counter(outcome.kind for outcome in found.values())
    print(f"{'all':36}" + "".join(f"{totals[kind]:13}" for kind in OUTCOMES))
    reasons: dict[tuple[str, str], set[str]] = defaultdict(set)
    counts: Counter[tuple[str, str]] = Counter()
    for name, outcome in found.items():
        if outcome.kind != "equal":
            counts[outcome.kind, reason(outcome)] += 1
            reasons[outcome.kind, reason(outcome)].add(name.split()[0])
    for (kind, words), count in counts.most_common():
        names = sorted(reasons[kind, words])
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        print(f"{count:6} {kind:12} {words}\n{'':20}{', '.join(names[:8])}{more}")


if __name__ == "__main__":
    main()
