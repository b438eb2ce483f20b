"""What the capture and the calls must know about kernels that PyTorch does not say, so that every bit is eager's."""

import pytest
import torch
from torch import nn

from planner import StowageError, run
from planner.capture import TrainStep, capture
from tests.capture.interpreter import differences


class Transposed(nn.Module):
    def __init__(self, training):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 8), nn.BatchNorm1d(8).train(training)

    def forward(self, x):
        return self.norm(self.linear(x).transpose(1, 2))


class Conjugating(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x):
        z = torch.complex(x * self.weight, x)
        return (z * z.conj()).real


def step(model, *shape, **more):
    return TrainStep(model, torch.randn(*shape), loss=lambda m, x: m(x).float().square().mean(), **more)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
def test_batch_normalisation_of_a_transposed_input_has_the_bits_of_eager(training, autocast):
    torch.manual_seed(0)
    assert run(step(Transposed(training), 4, 6, 8, autocast=autocast), steps=2, check=True).mismatches == ()
    assert differences(step(Transposed(training), 4, 6, 8, autocast=autocast)) == []


def test_a_lazily_conjugated_tensor_is_refused_because_a_layout_does_not_say_it():
    with pytest.raises(StowageError, match=r"aten\._conj\.default in the model takes or makes a lazily conjugated"):
        capture(step(Conjugating(), 3, 4))


def test_a_weight_that_is_replaced_beside_its_original_in_the_same_memory_is_refused():
    with pytest.raises(StowageError, match="weight shares memory with another parameter or buffer before the step"):
        capture(step(nn.utils.spectral_norm(nn.Linear(4, 4)), 3, 4))


def test_a_model_that_cannot_be_copied_for_a_check_says_so():
    with pytest.raises(StowageError, match="cannot be copied"):
        step(nn.utils.weight_norm(nn.Linear(4, 4)), 3, 4).clone()
