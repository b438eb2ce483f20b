"""Values by which a model's Python code chooses what it does: read for real where they follow from the batch."""

import pytest
import torch
from torch import nn

import planner
from planner import StowageError
from planner.capture import capture
from planner.program.replayed_readings import reading_changed
from planner.step import TrainStep
from tests.capture.interpreter import differences


class Steered(nn.Module):
    """A layer and a rule, which is given the layer's output and the batch."""

    def __init__(self, rule):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.rule = rule
        self.register_buffer("limit", torch.tensor(3))
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, values, mask):
        return self.rule(self, self.layer(values), mask)


def batch(ones=6):
    return {"values": torch.randn(2, 4), "mask": (torch.arange(8) < ones).view(2, 4).long()}


def step_of(rule, given=None):
    torch.manual_seed(0)
    return TrainStep(Steered(rule), given or batch(), loss=lambda model, batch: model(**batch).square().mean())


def branch(model, out, mask):
    return out * 2 if mask.all() else out * mask


RULES = {
    "bool": (branch, [False]),
    "item": (lambda model, out, mask: out * mask.sum().item(), [6]),
    "tolist": (lambda model, out, mask: out * sum(mask.sum(1).tolist()), [4, 2]),
    "a float": (lambda model, out, mask: out / float(mask.float().mean()), [0.75]),
    "equal": (lambda model, out, mask: out * 3 if torch.equal(mask[0], mask[1]) else out, [False]),
    "a view of a view": (lambda model, out, mask: out * int(mask.t()[1:, 1][0]), [1]),
    "a literal": (lambda model, out, mask: out * (torch.tensor([1, 2])[mask[0, :1]]).item(), [2]),
    "in place": (lambda model, out, mask: out * counted(mask), [6, 12]),
    "a buffer": (lambda model, out, mask: out if mask.sum() > model.limit else -out, [True]),
    "how many are chosen": (lambda model, out, mask: out * len(mask.masked_select(mask > 0)), [((6,),)]),
    "how many are not zero": (lambda model, out, mask: out[: mask.sum(1).sub(2).nonzero().shape[0]], [((1, 1),)]),
    "a number of a choice": (lambda model, out, mask: out * mask[mask > 0].sum().item(), [((6,),), 6]),
    "a shape": (lambda model, out, mask: out[:, : mask.sum(1).max().item() - 1], [4]),
}


def counted(mask):
    """Reads a count, adds to it in place, and reads a number that follows from what it was before."""
    count = mask.sum()
    doubled = count * 2
    first = count.item()
    count.add_(100)
    return first + doubled.item()


@pytest.mark.parametrize("name", RULES)
def test_what_follows_from_the_batch_is_read_and_the_step_is_eager_s(name):
    rule, values = RULES[name]
    step = step_of(rule)
    readings = capture(step).program.readings
    assert [value for _, value in readings.values] == values
    assert reading_changed(step.graph.program, step.batch_leaves()) == ""
    assert differences(step) == []


REFUSED = {
    "a parameter": lambda model, out, mask: out if model.layer.weight.sum() > 0 else -out,
    "an activation": lambda model, out, mask: out * out.max().item(),
    "a random draw": lambda model, out, mask: out * torch.rand(3)[0].item(),
    "both": lambda model, out, mask: out if (out.sum() * mask.sum()).isnan() else -out,
}


def test_a_tensor_of_a_shape_that_follows_from_values_is_not_in_a_plan():
    with pytest.raises(StowageError, match=r"aten.masked_select.default .* makes a tensor whose shape follows from"):
        capture(step_of(lambda model, out, mask: out * mask.masked_select(mask > 0).float().sum()))


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_step_changes_or_draws_is_not_read(name):
    with pytest.raises(StowageError, match="depends on the values of tensors"):
        capture(step_of(REFUSED[name]))


def test_a_buffer_that_the_step_writes_is_not_read():
    def rule(model, out, mask):
        early = model.seen.item() == 0
        model.seen.add_(1)
        return out if early else -out

    with pytest.raises(StowageError, match=r"reads buffer seen .* and the step changes it"):
        capture(step_of(rule))


def test_a_batch_without_values_is_not_read():
    with pytest.raises(StowageError, match="depends on the values of tensors"):
        capture(TrainStep(lambda: Steered(branch), batch, loss=lambda model, batch: model(**batch).mean()))


def test_a_reading_says_what_was_read_where_and_what_it_gives_now():
    step = step_of(branch)
    ((what, value),) = capture(step).program.readings.values
    assert value is False
    assert what.startswith("aten.all in the model at test_concrete_values.py:")
    assert reading_changed(step.graph.program, list(batch(8).values())) == f"{what} now gives True"


def test_views_of_a_larger_tensor_and_other_strides_are_read_as_they_are():
    step = step_of(branch)
    program = capture(step).program
    values, mask = batch(6).values()
    within = torch.zeros(3, 4, dtype=torch.int64)
    within[1:] = mask
    assert reading_changed(program, [values, within[1:]]) == ""
    assert reading_changed(program, [values, mask.t().contiguous().t()]) == ""
    assert reading_changed(program, [values, torch.ones(4, 2, dtype=torch.int64).t()]) != ""


def test_a_buffer_that_was_read_is_read_again():
    step = step_of(RULES["a buffer"][0])
    program = capture(step).program
    step.model.limit.fill_(7)
    assert reading_changed(program, step.batch_leaves()).endswith("now gives False")
    step.model.limit.fill_(5)
    assert reading_changed(program, step.batch_leaves()) == ""


def test_a_shape_that_follows_from_the_batch_is_read_again():
    step = step_of(RULES["how many are chosen"][0])
    program = capture(step).program
    assert reading_changed(program, list(batch(6).values())) == ""
    assert reading_changed(program, list(batch(5).values())).endswith("now gives ((5,),)")


def test_the_batch_is_left_alone():
    given = batch()
    before = {key: value.clone() for key, value in given.items()}
    capture(step_of(RULES["in place"][0], given))
    assert all(torch.equal(given[key], before[key]) for key in given)


def test_a_run_follows_what_its_batches_steer():
    step, eager = step_of(branch), step_of(branch)
    batches = [batch(ones) for ones in (8, 8, 3, 8, 5)]
    losses = list(planner.run(step, steps=0).steps(batches))
    assert losses == [eager.eager(one).item() for one in batches]
    assert all(
        torch.equal(one, other) for one, other in zip(step.state().values(), eager.state().values(), strict=True)
    )


def test_a_batch_refilled_between_two_runs_is_read_anew():
    step, eager = step_of(branch), step_of(branch)
    planner.run(step, steps=1).wait()
    step.batch["mask"].fill_(1)
    planner.run(step, steps=1).wait()
    eager.eager()
    eager.batch["mask"].fill_(1)
    eager.eager()
    assert torch.equal(step.model.layer.weight, eager.model.layer.weight)
