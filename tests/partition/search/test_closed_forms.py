"""What partitions move where the best is known in closed form; data parallelism is in `test_optimize`."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from planner.capture import capture
from planner.partition import Replicated, coarsen, optimize, recurse
from planner.step import SGD, TrainStep

TOKENS, WIDTH, HEADS = 8, 128, 8


class Layer(nn.Module):
    """Attention with separate projections, and two matrix products with four times the width in between."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        shape = (*x.shape[:2], HEADS, WIDTH // HEADS)
        parts = (project(x).view(shape).transpose(1, 2) for project in (self.query, self.key, self.value))
        mixed = functional.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(x.shape)
        return self.down(functional.relu(self.up(self.out(mixed))))


def transformer(layers):
    x, y = torch.zeros(1, TOKENS, WIDTH), torch.zeros(1, TOKENS, WIDTH)

    def loss(model, batch):
        return functional.mse_loss(model(batch[0]), batch[1])

    return capture(TrainStep(nn.Sequential(*(Layer() for _ in range(layers))), (x, y), loss=loss, optimizer=SGD(0.1)))


@pytest.mark.parametrize("layers", [1, 2])
def test_wide_transformer_layers_move_what_tensor_parallelism_does(layers):
    """Per layer two all-reduces forward and two backward, each as a reduction to chunks and a gather.

    What is stored between them is split, so that the two products' inputs are gathered once more backward. The query,
    key and value products fetch one copy of their input and add up the gradient of it before it is reduced. The first
    layer needs no gradient of its input.
    """
    graph = transformer(layers)
    coarse = coarsen(graph)
    one = TOKENS * WIDTH * 4
    found = optimize(coarse, 2)
    assert found.cost == pytest.approx((10 * layers - 1) * one, rel=1e-3)
    assert found.gap == 0
    assert recurse(coarse, 2).cost == found.cost
    assert optimize(coarse, 4).cost <= 3 * (10 * layers - 1) * one * 1.001
    weights = [t for t in graph.tensors if t.base < 0 and t.name.endswith("weight")]
    assert not any(isinstance(state, Replicated) for t in weights for state in found.tensor_states(t.id))
