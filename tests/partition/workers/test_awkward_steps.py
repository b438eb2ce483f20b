"""Steps of tensors that a worker may have nothing of, or only a part: workers compute what one device computes."""

import pytest
import torch
from divided_ops import assert_op_is_computed, division_by, op_cases
from torch import nn
from worker_comparison import assert_computes_the_same

from planner.capture import capture
from planner.partition import coarsen, optimize
from planner.partition.plan import PartitionPlan
from planner.step import SGD, InferenceStep, TrainStep


class OneNumber(nn.Linear):
    """Rows by a number that one worker alone has."""

    def forward(self, x, numbers):
        return (super().forward(x)[numbers[:1], :] * x[:1]).sin().sum()


class Circular(nn.Conv1d):
    """A batch that is written into parts of memory of which nothing was written yet."""

    def forward(self, x):
        return super().forward(x).sin().mean()


class Empty(nn.Linear):
    """Rows beside none, and a slice of none."""

    def forward(self, none, x):
        return torch.cat([super().forward(none), super().forward(x)]).sin().mean() + self.bias[3:3].sum()


STEPS = {
    "a number that one worker has": lambda: (OneNumber(7, 7), (torch.randn(6, 7), torch.tensor([3, 1, 2, 0, 4, 5]))),
    "circular padding": lambda: (
        Circular(4, 6, 3, padding=2, padding_mode="circular"), (torch.randn(6, 4, 7),)
    ),
    "no rows": lambda: (Empty(7, 7), (torch.randn(0, 7), torch.randn(6, 7))),
}  # fmt: skip


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("name", STEPS)
def test_what_the_search_finds(name, workers):
    torch.manual_seed(0)
    model, batch = STEPS[name]()
    step = TrainStep(model, batch, loss=lambda model, batch: model(*batch), optimizer=SGD(lr=0.1))
    graph = capture(step, progress=False)
    assert_computes_the_same(graph, PartitionPlan.of(optimize(coarsen(graph), workers)))


def scaled(x, factors):
    x[2:5, 1:] *= factors[2:5, None]
    return x


def splits(forward, *batch):
    """Every op of an inference step with each of its ways of being split."""

    class Model(nn.Module):
        def forward(self, *tensors):
            return forward(*tensors)

    graph = capture(InferenceStep(Model(), batch), progress=False)
    return [(case, strategy) for case in op_cases(graph) for strategy in case.splittable.strategies]


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: x * torch.arange(6.0),  # counted in whole numbers, and yet fractions
        lambda x: scaled(x.clone(), x.sum(1)),  # linear in what it reads beside
    ],
)
def test_every_split_is_computed(forward):
    found = splits(forward, torch.randn(6, 6))
    assert len({strategy.name for _, strategy in found}) > 1
    for case, strategy in found:
        assert_op_is_computed(case, [division_by(strategy)], (2,))
