"""Steps that workers make in tests, and how their state is compared."""

import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from planner.capture import capture
from planner.partition import PartitionPlan, coarsen, optimize
from planner.step import SGD, TrainStep


def scaled_cross_entropy(model, batch):
    images, labels, *scale = batch
    return math.prod(scale, start=nn.functional.cross_entropy(model(images), labels))


def classifier(optimizer=None, dropout=0.0, rows=12, dtype=torch.float64, **settings):
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Linear(12, 40), nn.ReLU(), nn.Dropout(dropout), nn.Linear(40, 24), nn.LayerNorm(24), nn.Linear(24, 6)
    )
    batch = torch.randn(rows, 12, dtype=dtype), torch.randint(6, (rows,))
    return TrainStep(
        layers.to(dtype), batch, loss=scaled_cross_entropy, optimizer=optimizer or SGD(lr=0.1, momentum=0.9), **settings
    )


def loader(count=4):
    torch.manual_seed(5)
    data = [(torch.randn(12, dtype=torch.float64), torch.randint(6, ())) for _ in range(count * 12)]
    return DataLoader(data, batch_size=12, shuffle=True)


def partition(step, workers):
    return PartitionPlan.of(optimize(coarsen(capture(step, progress=False)), workers))


def state_of(step):
    return {key: value.detach().clone() for key, value in step.state().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def assert_close(step, eager):
    """Two steps have the same state but for rounding, and have made as many steps."""
    expected = eager.state()
    assert step.state().keys() == expected.keys()
    for key, value in step.state().items():
        torch.testing.assert_close(value, expected[key], rtol=1e-9, atol=1e-11)
    assert step.materialize().steps == eager.materialize().steps


def until(condition):
    """Wait for something; returns whether it has come about, soon enough for a test to see it."""
    for _ in range(4000):
        if condition():
            return True
        time.sleep(0.005)
    return False
