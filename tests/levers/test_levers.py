"""What each lever does, against running each changed step: the bytes that it writes, and eager PyTorch's bits."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

import planner
from planner import StowageError
from planner.levers import Numbers
from planner.machine import PRESETS
from tests.effort import EFFORT
from tests.levers.arena_meter import run_measured

H100 = PRESETS["h100"]


def small(memory):
    """An H100 with little memory beside the reserve."""
    reserve = sum(part.bytes for part in planner.fit.reserve_of(H100.device))
    return replace(H100, devices=(replace(H100.device, memory_bytes=memory + reserve),))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3)
        self.blocks = nn.Sequential(*(nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU()) for _ in range(2)))
        self.last = nn.Linear(8, 4)

    def forward(self, x):
        return self.last(self.blocks(self.first(x)).mean((2, 3)))


def mean_square(model, batch):
    return model(batch).square().mean()


def convolutions(model=Convolutions, **settings):
    torch.manual_seed(0)
    return planner.TrainStep(model, torch.randn(8, 3, 10, 10), loss=mean_square, **settings)


STEPS = {
    "convolutions": convolutions,
    "gpt": lambda: planner.zoo.load("gpt:layers=2,hidden=16,heads=2,sequence=8,vocabulary=40,batch=4"),
    "mlp": lambda: planner.zoo.load("mlp:layers=2,hidden=32,batch=64,optimizer=adam"),
}
SHOWN = {
    "convolutions": ["half the batch", "2 micro-batches", "checkpointed blocks", "SGD with momentum"],
    "gpt": ["twice the batch", "4 micro-batches", "checkpointed blocks", "embeddings frozen", "first half frozen"],
    "mlp": ["SGD", "AdamW", "autocast to bfloat16", "parameters in bfloat16"],
}


@cache
def found(name):
    return planner.levers(STEPS[name](), H100, progress=False)


ROWS = [(name, row) for name, rows in SHOWN.items() for row in rows]


@pytest.mark.parametrize(("model", "name"), ROWS)
def test_a_peak_is_to_the_byte_what_the_changed_step_writes_and_its_numbers_are_eagers(model, name):
    row = found(model)[name]
    plan = planner.plan_swaps(row.graph, H100, row.peak_bytes, time_limit=0, progress=False)
    outputs, highest = run_measured(row.step, row.graph, replace(plan, budget_bytes=2 * plan.peak_bytes))
    assert highest == row.peak_bytes
    assert torch.equal(outputs[0], row.step.clone().eager())
