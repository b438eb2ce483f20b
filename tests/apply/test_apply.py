"""A plan in ordinary PyTorch training: eager's bits, and the memory that was said."""

import copy
import re
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import planner
from planner import StowageError
from planner.units import format_bytes
from tests.apply.meter import Meter
from tests.capture.test_transformers import gpt2, llama, text
from tests.effort import EFFORT
from tests.run.recomputing import recomputing_plan, repeatable
from tests.run.steps import convolutions, gpt, normalisations

STEPS = {
    "convolutions": convolutions,
    "gpt": gpt,
    "normalisations": normalisations,
    "gpt2": lambda: planner.TrainStep(gpt2, text, optimizer=planner.AdamW(lr=1e-2)),
    "llama": lambda: planner.TrainStep(llama, text, optimizer=planner.AdamW(lr=1e-2)),
    "wresnet": lambda: planner.zoo.load("wresnet:depth=50,batch=2,image=32"),
}


def planned(step, *, again=False):
    """A plan by hand that swaps as much as possible, and if asked runs every second group of ops again that it can."""
    graph = planner.capture(step, progress=False)
    return recomputing_plan(graph, repeatable(graph)[::2] if again else (), swapped=10**6)


def aside(step):
    """What is on the device whether it is saved or not."""
    model = step.materialize().model
    return [*model.parameters(), *model.buffers(), *step.batch_leaves()]


def differences(step, other):
    state, others = step.state(), other.state()
    assert state.keys() == others.keys()
    return [key for key in state if not torch.equal(state[key], others[key])]


CASES = ["convolutions", "normalisations", "gpt", "gpt2", "llama", *(("wresnet",) if EFFORT > 1 else ())]


@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_those_of_eager_and_the_peak_is_the_one_that_was_said(name):
    step = STEPS[name]()
    applied = planner.apply(planned(step), step, progress=False)
    eager = step.clone()
    torch.manual_seed(0)
    plain = Meter(aside(eager))
    with plain.watching():
        losses = [eager.eager() for _ in range(5)]
    torch.manual_seed(0)
    meter = Meter(aside(step))
    with applied:
        found = [step.eager()]
        with meter.watching():  # from the second step on no host copy is allocated, which would be counted here
            found += [step.eager() for _ in range(4)]
    assert all(map(torch.equal, losses, found))
    assert differences(eager, step) == []
    assert applied.steps == 5
    assert plain.peak == applied.unswapped_bytes
    assert applied.peak_bytes < 0.8 * applied.unswapped_bytes
    assert meter.peak == pytest.approx(applied.peak_bytes, rel=0.05)


@pytest.mark.parametrize("name", ["convolutions", "gpt", "llama"])
def test_what_the_whole_step_takes_is_said_beside_the_budget(name):
    step = STEPS[name]()
    plan = planned(step)
    applied = planner.apply(replace(plan, budget_bytes=plan.peak_bytes), step, progress=False)
    graph = planner.capture(step, progress=False)
    state = sum(storage.bytes for storage in graph.storages if storage.live_in)
    meter = Meter(aside(step), everything=True)
    with applied:
        step.eager()  # which makes the optimizer's state
        with meter.watching():
            step.eager()
    assert state + meter.peak == pytest.approx(applied.step_bytes, rel=0.05)
    within = applied.step_bytes <= plan.peak_bytes
    line = str(applied).splitlines()[1]
    assert line.startswith("whole step: about ")
    assert f"{'within' if within else 'over'} the plan's budget of " in line
    assert applied.budget_bytes == plan.peak_bytes


def dropouts():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Dropout(0.1)) for _ in range(6)))
    return planner.TrainStep(model, torch.randn(512, 64), loss=lambda model, x: model(x).square().mean())


@pytest.mark.parametrize("make", [dropouts, lambda: planner.zoo.load("rnn:layers=1,hidden=64,steps=4")])
def test_what_a_step_takes_beyond_the_whole_of_a_plans_memory_is_said_part_by_part(make):
    step = make()
    graph = planner.capture(step, progress=False)
    plan = planner.plan_swaps(graph, planner.machine("v100-16gb"), "100%", time_limit=0, progress=False)
    assert not plan.swap_ins
    applied = planner.apply(plan, step, progress=False)
    beyond = sum(part.bytes for part in applied.beyond_the_plan)
    assert beyond > 0
    assert applied.step_bytes - beyond <= plan.budget_bytes < applied.step_bytes
    lines = str(applied).splitlines()
    for part in applied.beyond_the_plan:
        assert f"beyond the plan: {part}" in lines
    (advice,) = (line for line in lines if line.startswith("to stay within"))
    less = format_bytes(plan.budget_bytes - (applied.step_bytes - plan.budget_bytes))
    budget = format_bytes(plan.budget_bytes)
    assert advice.startswith(f"to stay within {budget}, try a plan within {less} or less, or use planner.run")


def test_where_no_plan_is_small_enough_for_hooks_the_advice_is_a_run_and_what_stays_is_said():
    model = nn.Sequential(nn.Embedding(4000, 64), *(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(8)))
    step = planner.TrainStep(
        model, torch.zeros(16, 64, dtype=torch.int64), loss=lambda model, x: model(x).square().mean(),
        optimizer=planner.Adam(),
    )  # fmt: skip
    graph, gpu = planner.capture(step, progress=False), planner.machine("v100-16gb")
    with pytest.raises(planner.StowageError, match="allow at least") as refused:
        planner.plan_swaps(graph, gpu, 4096, progress=False)
    (least,) = re.findall(r"allow at least (\d+) bytes", str(refused.value))
    plan = planner.plan_swaps(graph, gpu, int(least), method="swap", time_limit=1, progress=False)
    applied = planner.apply(plan, step, progress=False)
    assert applied.step_bytes > plan.budget_bytes
    assert applied.least_bytes <= int(least)
    kept = [part for part in applied.beyond_the_plan if part.what.startswith("parameters, optimizer state")]
    assert sum(part.bytes for part in kept) > 4000 * 64 * 4
    assert "use planner.run, which keeps to it; hooks cannot do enough of any plan for that" in str(applied)


def test_a_smaller_budget_brings_the_step_within_the_larger_one_and_nothing_is_said_to_be_beyond_it():
    step = dropouts()
    graph = planner.capture(step, progress=False)
    gpu = planner.machine("v100-16gb")
    whole, less = (
        planner.search_swaps(graph, gpu, share, method="calendar", time_limit=None).wait(progress=False)
        for share in ("100%", "80%")
    )
    applied = planner.apply(replace(less, budget_bytes=whole.budget_bytes), step, progress=False)
    assert applied.step_bytes <= whole.budget_bytes < planner.apply(whole, step, progress=False).step_bytes
    assert "within the plan's budget" in str(applied)
    assert "beyond the plan" not in str(applied)
    assert "smaller budget" not in str(applied)


def test_a_plan_that_hooks_follow_nothing_of_says_so_and_what_to_do():
    step = planner.zoo.mlp(layers=3, hidden=64, batch=64)
    graph = planner.capture(step, progress=False)
    plan = recomputing_plan(graph, repeatable(graph)[::2])
    with pytest.warns(UserWarning, match=r'nothing of this plan is followed .* plan with method="swap"') as warned:
        applied = planner.apply(plan, step, progress=False)
    assert warned[0].filename == __file__
    assert applied.expressed == ()
    assert "nothing of this plan is followed: it only recomputes" in str(applied)


class Odd(nn.Module):
    """Views that share a storage, tensors saved more than once, checkpoints, and a write that autograd does not see."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.first(x).chunk(3, 1)
        mixed = q * k + k * v * q
        mixed = checkpoint(lambda y: torch.tanh(self.second(y)), mixed, use_reentrant=False)
        scaled = mixed.exp()
        product = scaled * q
        scaled.data.mul_(0.5)  # the backward pass sees it
        return product.sum(1, keepdim=True) * k.sigmoid()


def odd():
    def loss(model, batch):
        x = batch[0].requires_grad_()
        out = model(x).square().mean()
        (slope,) = torch.autograd.grad(out, x, create_graph=True)
        return out + slope.square().sum()

    return planner.TrainStep(
        Odd, lambda: (torch.randn(8, 16),), loss=loss, optimizer=planner.SGD(lr=1e-3), micro_batches=2
    )


def test_views_doubles_checkpoints_second_derivatives_and_hidden_writes_keep_their_bits():
    step = odd()
    applied = planner.apply(planned(step), step, progress=False)
    eager, offloaded = step.clone(), step.clone()
    losses = [eager.eager() for _ in range(3)]
    with applied:
        assert all(torch.equal(loss, offloaded.eager()) for loss in losses)
    assert differences(eager, offloaded) == []
    assert applied.expressed[0].storages > 3
    assert any("at which autograd calls no hook" in part.what for part in applied.left_out)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_with_dropout_keep_their_bits(reentrant):
    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))

        def block(self, layer, x):
            return nn.functional.dropout(torch.tanh(layer(x)), 0.3) * x.sigmoid()

        def forward(self, x):
            for number, layer in enumerate(self.layers):
                checkpointed = number % 2
                x = checkpoint(self.block, layer, x, use_reentrant=reentrant) if checkpointed else self.block(layer, x)
            return x

    step = planner.TrainStep(
        Dropping, lambda: torch.randn(32, 64), loss=lambda model, x: model(x).square().mean(),
        optimizer=planner.SGD(lr=1e-1),
    )  # fmt: skip
    applied = planner.apply(planned(step), step, progress=False)
    eager, offloaded = step.clone(), step.clone()
    torch.manual_seed(2)
    losses = [eager.eager() for _ in range(3)]
    torch.manual_seed(2)
    with applied:
        assert all(torch.equal(loss, offloaded.eager()) for loss in losses)
    assert differences(eager, offloaded) == []
    assert applied.expressed[0].storages > 3


def test_a_loop_of_ones_own_may_go_back_twice_and_after_the_block():
    step = gpt()
    applied = planner.apply(planned(step), step, progress=False)
    gradients = []
    for block in (nullcontext(), applied):
        live = step.clone().materialize()
        torch.manual_seed(0)
        with block:
            first = step.loss(live.model, live.batch)
            first.backward(retain_graph=True)
            first.backward()
            last = step.loss(live.model, live.batch)
        last.backward()
        gradients.append([parameter.grad for parameter in live.model.parameters()])
    assert all(map(torch.equal, *gradients))


def test_a_step_that_is_broken_off_leaves_the_next_one_as_it_is():
    step = gpt()
    applied = planner.apply(planned(step), step, progress=False)
    eager, offloaded = step.clone(), step.clone()
    torch.manual_seed(0)
    losses = [eager.eager() for _ in range(2)]
    torch.manual_seed(0)

    def fail(*_):
        raise KeyError

    with applied:
        assert torch.equal(offloaded.eager(), losses[0])
        state = torch.get_rng_state()
        hook = list(offloaded.materialize().model.modules())[9].register_forward_hook(fail)
        with pytest.raises(KeyError):
            offloaded.eager()
        hook.remove()
        torch.set_rng_state(state)
        assert torch.equal(offloaded.eager(), losses[1])


def test_what_cannot_be_expressed_is_said_in_words_and_bytes():
    step = planner.zoo.mlp(layers=3, hidden=64, batch=64)
    graph = planner.capture(step, progress=False)
    said = str(planner.apply(recomputing_plan(graph, repeatable(graph)[::2], swapped=8), step, progress=False))
    for part in ("saved tensors offloaded", "recomputation of saved tensors, which stay on", "gradients", "addresses"):
        assert part in said
    plan = planner.plan_swaps(graph, planner.machine("v100-16gb"), "60%", time_limit=0, progress=False)
    assert "swaps of parameters left on the device" in str(planner.apply(plan, step, progress=False))


def test_mistakes_are_refused_in_a_sentence():
    step, other = gpt(), planner.zoo.mlp(layers=2, hidden=32)
    plan = planned(step)
    with pytest.raises(StowageError, match="this plan is not for"):
        planner.apply(plan, other)
    with pytest.raises(StowageError, match="a str is not a plan"):
        planner.apply("plan.json", step)
    with pytest.raises(StowageError, match="got an InferenceStep"):
        planner.apply(plan, planner.InferenceStep(nn.Linear(2, 2), torch.ones(1, 2)))
    applied = planner.apply(plan, step, progress=False)
    with applied, pytest.raises(StowageError, match=r"where a int64 tensor of shape \(4, 16\) is saved"):
        other.eager()
    smaller = planner.TrainStep(step.model, [part[:2] for part in step.batch()], loss=step.loss)
    with (
        planner.apply(plan, step, progress=False),
        pytest.raises(StowageError, match=r"leave the `with` block or .*drop_last=True"),
    ):
        smaller.eager()
    with pytest.raises(StowageError, match=r"context is closed: call planner\.apply again"), applied:
        pass


class Changing(nn.Module):
    """What it computes depends on a number that no capture watches, and on the layout of the batch."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.numbers = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), [0.5] * 20_000

    def forward(self, x):
        factor = self.numbers[15_000]
        x = nn.functional.leaky_relu(self.first(x) * factor, factor)
        return nn.functional.gelu(self.second(x))


def trained_beside_eager(batches):
    """What was applied of a plan that runs ops again, and the parameters after a loop with it and one without."""
    model = Changing()
    step = planner.TrainStep(model, batches[0], loss=lambda model, x: model(x).square().mean())
    applied, found = planner.apply(planned(step, again=True), step, progress=False), []
    for trained, block in ((copy.deepcopy(model), nullcontext()), (model, applied)):
        optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
        with block:
            for number, batch in enumerate(batches):
                trained.numbers[15_000] = 0.25 + number / 8
                trained(batch).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        found.append(list(trained.parameters()))
    return applied, found


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_whatever_changes_between_two_steps_the_numbers_are_those_of_eager(layout):
    torch.manual_seed(0)
    batches = [torch.randn(2, 3, 8, 8).to(memory_format=layout if k > 1 else torch.contiguous_format) for k in range(5)]
    with pytest.warns(UserWarning, match="nothing of this plan is followed"):
        applied, (eagers, ours) = trained_beside_eager(batches)
    assert any("recomputation" in part.what for part in applied.left_out)
    assert all(map(torch.equal, ours, eagers))


def test_a_tensor_that_is_changed_after_it_was_saved_is_refused_as_by_autograd():
    model, batch = nn.Linear(4, 4), torch.ones(2, 4)
    step = planner.TrainStep(model, (batch,), loss=lambda model, batch: model(batch[0]).exp().mean())
    with planner.apply(planned(step), step, progress=False):
        result = model(batch).exp()
        loss = result.mean()
        result.add_(1)
        with pytest.raises(StowageError, match="changed in place after it was saved: change a clone of it"):
            loss.backward()
