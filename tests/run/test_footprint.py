"""What has no room in memory is refused before anything is made, in a sentence that says what takes how much."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch
from torch import nn

from planner.capture import capture
from planner.plan import SwapPlan
from planner.profile import machine
from planner.run import TooLargeError, run
from planner.run.prepare.available_memory import free_bytes
from planner.step import SGD, TrainStep
from planner.swap import plan_swaps

MIB = 2**20


def wide(share: float) -> TrainStep:
    """A step whose parameters take that share of the free memory; nothing is made yet."""
    width = int((share * free_bytes() / 4 / 4) ** 0.5)
    model = lambda: nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(4)))  # noqa: E731
    loss = lambda model, x: model(x).square().mean()  # noqa: E731
    return TrainStep(model, lambda: torch.ones(1, width), loss=loss, optimizer=SGD(0.1))


def deep(share: float) -> TrainStep:
    """One whose activations do, kept for its backward pass."""
    rows = int(share * free_bytes() / 4 / 64 / 8)
    model = lambda: nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.Tanh())))  # noqa: E731
    loss = lambda model, x: model(x).square().mean()  # noqa: E731
    return TrainStep(model, lambda: torch.ones(rows, 64), loss=loss, optimizer=SGD(0.1))


def planned(step: TrainStep, budget: str) -> SwapPlan:
    return plan_swaps(capture(step), machine("h100"), budget, time_limit=0)


@pytest.mark.parametrize(
    ("make", "budget", "blamed"),
    [
        pytest.param(lambda: wide(1.2), "100%", "for the model, its optimizer", id="the model"),
        pytest.param(lambda: deep(1.2), "100%", "for the plan's device memory", id="the plan's device memory"),
        pytest.param(lambda: deep(1.2), "40%", "for its host memory", id="the plan's host memory"),
    ],
)
def test_a_plan_that_has_no_room_is_refused(make: Callable[[], TrainStep], budget: str, blamed: str) -> None:
    step = make()
    plan = planned(step, budget)
    before = psutil.Process().memory_info().rss
    with pytest.raises(TooLargeError, match=r"takes .* GiB of memory, .* more than is free") as told:
        run(step, plan, steps=1).wait()
    assert blamed in str(told.value)
    assert step.live is None
    assert psutil.Process().memory_info().rss < before + 200 * MIB


def test_what_is_yet_to_be_planned_is_refused_before_ops_are_measured() -> None:
    step = wide(0.7)
    capture(step)
    with pytest.raises(TooLargeError, match="for the state of the steps"):
        run(step, budget="100%", steps=1).wait()
    assert step.live is None


def test_eager_pytorch_beside_every_step_is_refused_where_the_run_alone_has_room() -> None:
    step = deep(0.4)
    with pytest.raises(TooLargeError, match=r"for eager PyTorch beside it; pass check=False"):
        run(step, planned(step, "50%"), steps=1, check=True).wait()
    assert step.live is None


def test_a_model_that_is_there_already_is_not_counted_twice() -> None:
    step = TrainStep(nn.Linear(8, 8), torch.ones(2, 8), loss=lambda m, x: m(x).mean(), optimizer=SGD(0.1))
    assert run(step, budget="100%", steps=1, check=True).wait().compared


VERSIONS = {
    "version 2": ("0::/{own}", "", "memory.max", "memory.current", "inactive_file"),
    "version 1": (
        "3:cpu:/elsewhere\n5:memory:/{own}", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("limited", ["its own group", "the group around it", "the root that a container sees"])
def test_the_limit_of_a_group_of_processes_counts(version: str, limited: str, tmp_path: Path) -> None:
    named, folder, limit, used, dropped = VERSIONS[version]
    own = tmp_path / "own"
    own.write_text(named.format(own="slice/inner") + "\n")
    inner = tmp_path / folder / "slice" / "inner"
    inner.mkdir(parents=True)
    group = {"its own group": inner, "the group around it": inner.parent}.get(limited, inner.parent.parent)
    (group / limit).write_text(f"{100 * MIB}\n")
    (group / used).write_text(f"{80 * MIB}\n")
    (group / "memory.stat").write_text(f"anon {50 * MIB}\n{dropped} {30 * MIB}\n")
    assert free_bytes(tmp_path, own) == 50 * MIB


def test_a_group_without_a_limit_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("0::/\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(tmp_path, tmp_path / "own") > 100 * MIB
