"""Architectures of `transformers`, trained by a plan and in eager PyTorch, and what a capture leaves behind.

    python benchmarks/architectures.py [--only NAME ...] [--steps 5] [--jobs 1]

Each is trained on `BatchEncoding` batches that are refilled in place, once in a hand-written loop and once by
`planner.run`; losses, parameters, buffers and optimizer state are compared bit for bit. The module dictionaries, hook
tables and caches of the live model are compared before a capture and after it.
"""

from __future__ import annotations

import argparse
import copy
import functools
import gc
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter
from typing import Any, NamedTuple

import torch
from architecture_models import ARCHITECTURES, Batch, cases
from rich.console import Console
from rich.table import Table
from transformers import BatchEncoding, logging

import planner
from planner.errors import StowageError


class Row(NamedTuple):
    """One case and how it went."""

    name: str
    mask: str
    outcome: str
    what: str
    left: str
    readings: int
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", choices=ARCHITECTURES)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    shown = Table(title=f"{arguments.steps} steps by a plan beside eager PyTorch")
    for column in Row._fields:
        shown.add_column(column, overflow="fold")
    console = Console(width=200)
    rows = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for row in pool.map(functools.partial(tried, steps=arguments.steps), list(cases(arguments.only))):
            console.print(" ".join(str(value) for value in row), highlight=False)
            shown.add_row(*(f"{value:.1f}" if isinstance(value, float) else str(value) for value in row))
            rows.append(row)
    console.print(shown)
    counts = Counter(row.outcome for row in rows)
    console.print(f"{len({row.name for row in rows})} architectures, {len(rows)} loops: {dict(counts)}")
    console.print(f"{sum(row.left != '' for row in rows)} captures left something behind")


def tried(case: tuple[str, str], steps: int) -> Row:
    """How one case goes."""
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    name, mask = case
    architecture = ARCHITECTURES[name]
    begun = perf_counter()
    torch.manual_seed(1)
    batches = [architecture.batch(number, mask) for number in range(steps)]
    model = architecture.build()
    eager = copy.deepcopy(model)

    def loss(model: torch.nn.Module, batch: Any) -> torch.Tensor:
        return model(**batch, **architecture.asks).loss

    outcome, what, left, readings = "equal", "", "", 0
    try:
        expected = in_eager(eager, loss, architecture.optimizer(eager.parameters(), lr=1e-2), batches)
    except Exception as error:
        return Row(name, mask, "does not run", f"{type(error).__name__}: {error}", "", 0, perf_counter() - begun)
    try:
        optimizer = architecture.optimizer(model.parameters(), lr=1e-2)
        encoding = BatchEncoding({key: value.clone() for key, value in batches[0].items()})
        step = planner.TrainStep(model, encoding, loss=loss, optimizer=optimizer)
        before = described(model)
        graph = planner.capture(step)
        readings = len(graph.program.readings.values)
        left = "; ".join([*difference(before, described(model)), *remains()])
        torch.manual_seed(2)
        run = planner.run(step, steps=0, check=False)
        losses = list(run.steps(refilled(encoding, batches)))
        what = "; ".join(differences(expected, results(model, optimizer, losses)))
        outcome = "different" if what else "equal"
    except StowageError as error:
        outcome, what = "refused", str(error)
    except Exception as error:
        outcome, what = "crashed", f"{type(error).__name__}: {error}"
    return Row(name, mask, outcome, what, left, readings, perf_counter() - begun)


def refilled(encoding: BatchEncoding, batches: list[Batch]) -> Iterator[Any]:
    for batch in batches:
        for key, value in batch.items():
            encoding[key].copy_(value)
        yield encoding


def in_eager(model: torch.nn.Module, loss: Any, optimizer: torch.optim.Optimizer, batches: list[Batch]) -> Any:
    losses = []
    encoding = BatchEncoding({key: value.clone() for key, value in batches[0].items()})
    torch.manual_seed(2)
    for group in optimizer.param_groups:
        group["foreach"] = False
    for batch in refilled(encoding, batches):
        optimizer.zero_grad()
        found = loss(model, batch)
        found.backward()
        optimizer.step()
        losses.append(found.item())
    return results(model, optimizer, losses)


def results(model: torch.nn.Module, optimizer: torch.optim.Optimizer, losses: list[float]) -> dict[str, torch.Tensor]:
    """All that training leaves, by name."""
    found = {f"loss {number}": torch.tensor(value, dtype=torch.float64) for number, value in enumerate(losses)}
    found.update(dict(model.named_parameters()))
    found.update(dict(model.named_buffers()))
    for number, state in optimizer.state_dict()["state"].items():
        found.update({f"optimizer {number} {key}": value for key, value in state.items() if torch.is_tensor(value)})
    found["generator"] = torch.get_rng_state()
    return found


def differences(expected: dict[str, torch.Tensor], found: dict[str, torch.Tensor]) -> Iterator[str]:
    for name in [*expected, *(set(found) - set(expected))]:
        if name not in found or name not in expected:
            yield f"{name} is {'missing' if name in expected else 'new'}"
        elif not same_bits(expected[name], found[name]):
            gap = (expected[name].double() - found[name].double()).abs().max() if expected[name].numel() else 0
            yield f"{name} differs by {float(gap):.1e}"
            return  # all after the first follows from it


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(
        one.detach().contiguous().view(-1).view(torch.uint8), other.detach().contiguous().view(-1).view(torch.uint8)
    )


def described(model: torch.nn.Module) -> dict[str, object]:
    """The identity of everything that the modules of a model hold, deep, by where it is."""
    found: dict[str, object] = {}
    seen: set[int] = set()

    def describe(where: str, value: Any) -> None:
        found[where] = (type(value).__name__, id(value))
        if isinstance(value, int | float | str | bool | type(None)):
            found[where] = value
        elif isinstance(value, torch.Tensor):
            found[where] = (id(value), value._version, value.data_ptr())
        elif id(value) not in seen:
            seen.add(id(value))
            if isinstance(value, dict):
                found[where] = (id(value), len(value))
                for key, item in value.items():
                    describe(f"{where}[{key}]", item)
            elif isinstance(value, list | tuple | set):
                found[where] = (id(value), len(value))
                for place, item in enumerate(value):
                    describe(f"{where}[{place}]", item)
            elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
                describe(f"{where}.", vars(value))

    for path, module in model.named_modules():
        describe(path or "model", vars(module))
    return found


def difference(before: dict[str, object], after: dict[str, object]) -> Iterator[str]:
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if changed:
        yield f"{len(changed)} changed: {', '.join(changed[:3])}"


def remains() -> Iterator[str]:
    """Fake tensors that are alive after a capture, and where."""
    gc.collect()
    fakes = [each for each in gc.get_objects() if type(each) is torch._subclasses.FakeTensor]
    if fakes:
        holders = Counter(type(holder).__name__ for holder in gc.get_referrers(*fakes) if holder is not fakes)
        yield f"{len(fakes)} fake tensors alive, held by {dict(holders)}"


if __name__ == "__main__":
    main()
