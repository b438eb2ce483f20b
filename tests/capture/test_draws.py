"""A plan repeats draws that follow one another, and those of checkpoints: all else that moves the generator fails."""

import pytest
import torch
from torch import nn
from torch.nn.functional import dropout
from torch.utils.checkpoint import checkpoint

from planner import StowageError
from planner import torch_private as private
from planner.capture import capture
from planner.capture.record.rng_tracker import RngTracker
from planner.program import backend_of
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


def restored_between(first, second):
    """A function that draws twice, from the same state of the generator."""

    def act(x):
        state = torch.get_rng_state()
        x = first(x)
        torch.set_rng_state(state)
        return second(x)

    return act


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_drops_the_same_values_again(reentrant):
    made = step(lambda x: checkpoint(lambda y: dropout(y, 0.5), x, use_reentrant=reentrant))
    draws = [op for op in capture(made).ops if op.random]
    assert [op.draws_as for op in draws] == [-1, draws[0].id]
    assert differences(made) == []


def test_a_checkpoint_that_keeps_no_state_draws_other_numbers():
    def act(x):
        return checkpoint(lambda y: dropout(y, 0.5), x, use_reentrant=False, preserve_rng_state=False)

    made = step(act)
    assert [op.draws_as for op in capture(made).ops if op.random] == [-1, -1]
    assert differences(made) == []


def test_a_state_that_is_restored_by_hand_gives_the_same_numbers_to_the_same_op():
    made = step(restored_between(lambda x: x + torch.randn(3, 4), lambda x: x * torch.randn(3, 4) + torch.rand(3, 1)))
    draws = [op for op in capture(made).ops if op.random]
    assert [op.draws_as for op in draws] == [-1, draws[0].id, -1]
    assert differences(made) == []


@pytest.mark.parametrize(
    "other", [lambda: torch.randn(2, 4), lambda: torch.randn(3, 4, dtype=torch.float64), lambda: torch.rand(3, 4)]
)
def test_another_draw_from_a_state_that_is_restored_is_refused(other):
    """It may leave the generator in another state than the first one did."""
    made = step(restored_between(lambda x: x + torch.randn(3, 4), lambda x: x.sum() * other()))
    with pytest.raises(StowageError, match=r"draws the random numbers of an earlier op again, of .* other arguments"):
        capture(made)


def test_a_state_that_is_restored_at_the_end_would_give_the_next_step_the_same_numbers():
    with pytest.raises(StowageError, match=r"leaves PyTorch's generator in an earlier state"):
        capture(step(restored_between(lambda x: dropout(x, 0.5), torch.tanh)))


def test_a_state_that_no_op_has_drawn_from_is_refused():
    def act(x):
        before = torch.get_rng_state()
        torch.manual_seed(5)
        other = torch.get_rng_state()
        torch.set_rng_state(before)
        x = dropout(x, 0.5)
        torch.set_rng_state(other)
        return dropout(x, 0.5)

    with pytest.raises(StowageError, match="leave the seed alone"):
        capture(step(act))


def test_how_many_numbers_are_drawn_again_must_not_depend_on_values():
    with pytest.raises(StowageError, match=r"poisson.* how many it draws depends on values.* preserve_rng_state=False"):
        capture(step(lambda x: checkpoint(lambda y: y * torch.poisson(y.abs()), x, use_reentrant=False)))


def test_a_draw_again_of_which_nothing_is_left_is_no_op():
    def act(x):
        def inner(y):
            torch.rand(5)
            return dropout(y, 0.5)

        return checkpoint(inner, x, use_reentrant=False)

    assert [op.draws_as >= 0 for op in capture(step(act)).ops if op.random] == [False, False, True]
    assert differences(step(act)) == []


@pytest.mark.parametrize(("device", "restored"), [("cpu", "cpu"), ("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda")])
def test_only_the_state_of_the_generator_that_ops_draw_from_counts(monkeypatch, device, restored):
    monkeypatch.setattr(torch.cuda, "default_generators", (torch.Generator(),))
    tracker, mode = RngTracker(backend_of(device)), private.FakeTensorMode()
    with tracker.following(mode):
        generator = torch.random.default_generator if restored == "cpu" else torch.cuda.default_generators[0]
        state = generator.get_state()
        first = tracker.next(torch.ops.aten.rand.default, ((4,),), {}, "", 7)
        generator.set_state(state)
        second = tracker.next(torch.ops.aten.rand.default, ((4,),), {}, "", 9)
        assert (first, second) == (-1, 7 if device == restored else -1)
        tracker.finish()
        generator.manual_seed(4)
        with pytest.raises(StowageError, match="leave the seed alone"):
            tracker.finish()


def test_a_checkpoint_that_draws_nothing_is_none_the_worse_for_dropout_around_it():
    assert differences(step(lambda x: dropout(checkpoint(torch.tanh, dropout(x, 0.5), use_reentrant=False), 0.2))) == []


def test_seeding_in_the_step_is_refused_and_leaves_the_generator_alone():
    made = step(seeded)
    before = torch.get_rng_state()
    with pytest.raises(StowageError, match="leave the seed alone"):
        capture(made)
    assert torch.equal(before, torch.get_rng_state())


def test_seeding_in_the_step_with_the_seed_that_the_capture_began_with_is_refused():
    torch.manual_seed(3)
    with pytest.raises(StowageError, match="leave the seed alone"):
        capture(step(seeded))


def test_a_generator_of_one_s_own_is_refused():
    own = torch.Generator()
    with pytest.raises(StowageError, match="draws from a generator of its own"):
        capture(step(lambda x: x + torch.randn(4, generator=own)))


def test_a_draw_that_can_be_told_no_generator_is_refused():
    with pytest.raises(StowageError, match=r"randint_like.Tensor in .* knows no generator"):
        capture(step(lambda x: x + torch.randint_like(x, torch.tensor(3))))
