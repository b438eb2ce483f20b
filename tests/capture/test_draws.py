"""A plan repeats draws that follow one another, and nothing else: whoever moves the generator is told so."""

import pytest
import torch
from torch import nn
from torch.nn.functional import dropout
from torch.utils.checkpoint import checkpoint

from planner import StowageError
from planner.capture import capture
from planner.step import TrainStep
from tests.capture.interpreter import differences


class Acting(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.linear, self.act = nn.Linear(4, 4), act

    def forward(self, x):
        return self.act(self.linear(x))


def step(act):
    return TrainStep(Acting(act), torch.randn(3, 4), loss=lambda model, x: model(x).square().mean())


def seeded(x):
    torch.manual_seed(3)
    return dropout(x, 0.5)


@pytest.mark.parametrize("reentrant", [False, True])
def test_dropping_the_same_values_again_in_a_checkpoint_is_refused(reentrant):
    with pytest.raises(StowageError, match=r"draws the random numbers of an earlier op again, .* set dropout to 0"):
        capture(step(lambda x: checkpoint(lambda y: dropout(y, 0.5), x, use_reentrant=reentrant)))


def test_a_checkpoint_that_draws_nothing_is_none_the_worse_for_dropout_around_it():
    assert differences(step(lambda x: dropout(checkpoint(torch.tanh, dropout(x, 0.5), use_reentrant=False), 0.2))) == []


def test_seeding_in_the_step_is_refused_and_leaves_the_generator_alone():
    made = step(seeded)
    before = torch.get_rng_state()
    with pytest.raises(StowageError, match="leave the seed alone"):
        capture(made)
    assert torch.equal(before, torch.get_rng_state())


def test_a_generator_of_one_s_own_is_refused():
    own = torch.Generator()
    with pytest.raises(StowageError, match="draws from a generator of its own"):
        capture(step(lambda x: x + torch.randn(4, generator=own)))


def test_a_draw_that_can_be_told_no_generator_is_refused():
    with pytest.raises(StowageError, match=r"randint_like.Tensor in .* knows no generator"):
        capture(step(lambda x: x + torch.randint_like(x, torch.tensor(3))))
