"""What a loss returns beside its value comes back for each step, as it was then and with eager PyTorch's bits."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import planner
from planner.apply import apply
from planner.capture import capture
from planner.errors import StowageError
from planner.fit import fit
from planner.graph import Kind
from planner.levers import levers
from planner.memory import lifetimes
from planner.partition import search_partition
from planner.program import Outputs
from planner.run import run, run_workers, same_bits
from planner.step import Adam, TrainStep

CLASSES = 5


def small() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, CLASSES))
    return model, (torch.randn(16, 12), torch.randint(0, CLASSES, (16,)))


class Scores(NamedTuple):
    logits: Tensor
    right: Tensor


def with_scores(model: nn.Module, batch: Any) -> tuple[Tensor, dict[str, Any]]:
    logits = model(batch[0])
    right = (logits.argmax(1) == batch[1]).sum()
    return cross_entropy(logits, batch[1]), {"scores": Scores(logits, right), "first": [logits[0], logits]}


def by_hand(steps: int, micro_batches: int = 1) -> list[list[Any]]:
    """The extras of each micro-batch of each step, of an ordinary loop in PyTorch."""
    model, batch = small()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=False)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        parts = zip(*(tensor.chunk(micro_batches) for tensor in batch), strict=True)
        made = [with_scores(model, part) for part in parts]
        for loss, _ in made:
            (loss / micro_batches).backward()
        optimizer.step()
        found.append([extras for _, extras in made])
    return found


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    def tensors(extras: dict[str, Any]) -> list[Tensor]:
        return [*extras["scores"], *extras["first"]]

    assert isinstance(one["scores"], Scores)
    return list(one) == list(other) and all(map(same_bits, tensors(one), tensors(other)))


@pytest.mark.parametrize("check", [True, False])
def test_extras_of_every_step_come_back_in_their_structure_and_to_the_bit(check: bool) -> None:
    model, batch = small()
    result = run(TrainStep(model, batch, loss=with_scores, optimizer=Adam(lr=1e-2)), steps=4, check=check).wait()
    assert all(equal(ours, *theirs) for ours, theirs in zip(result.extras, by_hand(4), strict=True))
    assert result.mismatches == ()
    assert not any(tensor.requires_grad for tensor in result.extras[0]["scores"])


def test_in_a_loop_over_batches_the_extras_of_a_step_are_there_with_its_loss() -> None:
    model, batch = small()
    running = run(TrainStep(model, batch, loss=with_scores, optimizer=Adam(lr=1e-2)), budget="95%", steps=0)
    assert running.extras == ()
    for number, (loss, expected) in enumerate(zip(running.steps([batch] * 3), by_hand(3), strict=False), 1):
        assert isinstance(loss, float)
        assert len(running.extras) == number
        assert equal(running.extras[-1], *expected)


def test_with_micro_batches_there_are_extras_of_each() -> None:
    model, batch = small()
    step = TrainStep(model, batch, loss=with_scores, optimizer=Adam(lr=1e-2), micro_batches=2)
    result = run(step, steps=2, check=True).wait()
    assert result.mismatches == ()
    for ours, theirs in zip(result.extras, by_hand(2, micro_batches=2), strict=True):
        assert isinstance(ours, tuple)
        assert all(map(equal, ours, theirs))


def test_extras_that_are_memory_of_the_model_or_the_batch_are_values_of_their_step() -> None:
    model, batch = small()
    table = torch.arange(3.0)

    def loss(model: Any, batch: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        value = model(batch[0]).square().mean()
        return value, (model[0].weight[:2].t(), model[1].running_mean, batch[0][1:], table, torch.tensor(0.5))

    step = TrainStep(model, batch, loss=loss, optimizer=Adam(lr=1e-2))
    copy = step.clone()
    running, kept = run(step, steps=0), []
    batches = [(torch.randn(16, 12), batch[1]) for _ in range(3)]
    for given, _ in zip(batches, running.steps(batches), strict=True):
        weight = copy.state()["model/0.weight"][:2].t().clone()  # before the optimizer
        copy.eager(given)
        expected = weight, copy.state()["model/1.running_mean"].clone(), given[0][1:], table, torch.tensor(0.5)
        kept.append((running.extras[-1], expected))
    for ours, theirs in kept:
        assert all(map(same_bits, ours, theirs))
    assert not same_bits(kept[0][0][0], kept[1][0][0])


def test_extras_are_outputs_of_the_graph_that_stay_to_its_end() -> None:
    model, batch = small()
    graph = capture(TrainStep(model, batch, loss=with_scores))
    held = {graph.tensors[tensor].storage for tensor in graph.outputs}
    assert {graph.storages[storage].kind for storage in held} == {Kind.OUTPUT}
    assert sum(graph.storages[storage].bytes for storage in held) >= 16 * CLASSES * 4
    assert all(lifetimes(graph).end[storage] == len(graph.ops) for storage in held)


class Meddler(TrainStep):
    """Eager PyTorch that makes another number."""

    def compute(self, batch: Any = None) -> Outputs:
        made = super().compute(batch)
        return Outputs([*made[:-1], made[-1] + 1], made.form)


def test_a_difference_in_extras_alone_is_found() -> None:
    model, batch = small()
    step = TrainStep(model, batch, loss=with_scores)
    capture(step)
    step.__class__ = Meddler
    assert run(step, steps=1, check=True).wait().mismatches == ("step 0: extras['first'][1]",)
    with pytest.raises(StowageError, match=r"first of them extras\['first'\]\[1\]"):
        run(step, steps=1).wait()


def test_extras_that_would_fill_memory_are_forgotten_but_for_those_of_the_last_steps() -> None:
    layer = nn.Linear(4, 1)

    def loss(model: nn.Module, batch: Tensor) -> tuple[Tensor, Tensor]:
        return model(batch).sum(), batch.sum() * torch.ones(90 * 2**18)

    result = run(TrainStep(layer, torch.ones(2, 4), loss=loss), steps=4, check=False).wait()
    assert [extra is None for extra in result.extras] == [True, True, False, False]


def changing(_model: nn.Module, _batch: Any) -> Tensor:
    return COUNTS.add_(1)


COUNTS = torch.zeros(3)


@pytest.mark.parametrize(
    ("extras", "said"),
    [
        (lambda _, batch: {"rows": len(batch[0])}, r"returns extras\['rows'\] as an int.*return a tensor"),
        (lambda *_: ("text",), r"returns extras\[0\] as a str"),
        (lambda *_: None, r"returns extras as None"),
        (changing, r"returns extras, which the step changes before it ends: .*\.clone\(\)"),
    ],
)
def test_extras_that_a_plan_could_not_return_are_refused(extras: Any, said: str) -> None:
    model, batch = small()
    with pytest.raises(StowageError, match=said):
        capture(TrainStep(model, batch, loss=lambda model, given: (model(given[0]).sum(), extras(model, given))))


def test_more_than_a_pair_and_extras_of_some_micro_batches_alone_are_refused() -> None:
    model, batch = small()
    with pytest.raises(StowageError, match="returns 3 values: return the loss, or a pair"):
        capture(TrainStep(model, batch, loss=lambda model, given: (model(given[0]).sum(), given[0], given[1])))

    def sometimes(model: nn.Module, batch: Any) -> Any:
        value = model(batch["x"]).sum()
        return (value, value) if batch["first"][0] else value

    form = {"x": batch[0], "first": [True] * 8 + [False] * 8}
    with pytest.raises(StowageError, match="for some micro-batches alone"):
        capture(TrainStep(model, form, loss=sometimes, micro_batches=2))


def test_extras_that_a_later_micro_batch_changes_are_refused() -> None:
    model, batch = small()
    last: list[Tensor] = []

    def loss(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        out = model(batch[0])
        if last:
            last.pop().zero_()
            return out.sum(), out
        last.append(out.detach() * 1)
        return out.sum(), last[0]

    with pytest.raises(StowageError, match=r"returns extras\[0\], which the step changes before it ends"):
        capture(TrainStep(model, batch, loss=loss, micro_batches=2))


def test_workers_refuse_extras_and_say_so() -> None:
    model, batch = small()
    step = TrainStep(model, batch, loss=with_scores)
    parts = search_partition(capture(step), workers=2, evaluations=1).wait()
    with pytest.raises(StowageError, match="workers return the loss alone"):
        run_workers(step, parts, steps=1).wait()


def test_levers_sizes_and_hooks_take_such_a_loss() -> None:
    model, batch = small()

    def make(rows: int) -> TrainStep:
        return TrainStep(model, tuple(tensor[:rows] for tensor in batch), loss=with_scores)

    gpu = planner.machine("h100")
    assert len(levers(make(16), gpu).rows) > 2
    assert fit(make, gpu, over={"rows": range(4, 17, 4)}).at_all.value == 16
    step = make(16)
    plan = planner.plan_swaps(capture(step), gpu, "100%", time_limit=0)
    with apply(plan, step):
        step.eager()


@pytest.mark.parametrize("check", [True, "first", False])
def test_a_learning_rate_that_the_loss_reads_follows_its_schedule_whatever_is_checked(check: Any) -> None:
    model, batch = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, foreach=False)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)

    def loss(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        return model(batch[0]).square().mean(), torch.tensor(optimizer.param_groups[0]["lr"])

    step = TrainStep(model, batch, loss=loss, optimizer=optimizer, scheduler=scheduler)
    running = run(step, steps=4, check=check)
    assert [float(rate) for rate in running.wait().extras] == [0.5, 0.5, 0.5, 0.25]
    assert len(list(running.steps([batch] * 3))) == 3
    assert [float(rate) for rate in running.extras[4:]] == [0.25, 0.25, 0.125]
    assert running.wait().mismatches == ()


class Scored:
    """A container of a user's own, registered as those of transformers are: without names of its parts."""

    def __init__(self, logits: Tensor, right: Tensor, task: object = None) -> None:
        self.logits, self.right, self.task = logits, right, task


torch.utils._pytree.register_pytree_node(
    Scored, lambda one: ([one.logits, one.right], one.task), lambda parts, task: Scored(*parts, task)
)


def test_a_plain_value_of_the_batch_in_a_container_of_extras_is_that_of_each_step() -> None:
    model, batch = small()

    def loss(model: nn.Module, given: Any) -> tuple[Tensor, Scored]:
        out = model(given["x"])
        return out.sum(), Scored(out, out.sum(), given["task"])

    tasks = [1, 1, 2, 1]
    running = run(TrainStep(model, {"x": batch[0], "task": 1}, loss=loss), steps=0)
    list(running.steps([{"x": batch[0], "task": task} for task in tasks]))
    assert [extras.task for extras in running.extras] == tasks


def test_a_registered_container_without_names_of_its_parts_comes_back_as_one() -> None:
    model, batch = small()

    def loss(model: nn.Module, batch: Any) -> tuple[Tensor, Scored]:
        value, extras = with_scores(model, batch)
        return value, Scored(*extras["scores"])

    (ours,) = run(TrainStep(model, batch, loss=loss), steps=1, check=True).wait().extras
    ((theirs,),) = by_hand(1)
    assert isinstance(ours, Scored)
    assert same_bits(ours.logits, theirs["scores"].logits)
    assert same_bits(ours.right, theirs["scores"].right)
