"""A formula against its kernel, whole and in shards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.partition.strategy import Partial, Replicated, Split, Strategy, Unread, chunk, held, needs
from planner.partition.tdl import Formula, Operand, Range, Reduction, Variable, evaluate, regions
from planner.partition.verify.trial import Trial
from planner.partition.verify.values import garbage, mask_of


def check_formula(trial: Trial) -> None:
    """Compare the formulas of all outputs with the kernel, also for negated and for large values."""
    variants = [trial.call.tensors]
    for factor in (-1, 100):
        variants.append([t * factor if t.is_floating_point() else t for t in trial.call.tensors])
    for tensors in variants:
        expected = trial.call.run(tensors)
        stages = stage_values(trial, tensors, [{}])
        for number, formula in trial.description.outputs.items():
            if not formula.opaque:
                found = evaluate(trial.description, formula, input_values(trial, tensors) | stages[0])
                trial.same("formula", found, expected[number], f"output {number}")


def check_states(trial: Trial, strategy: Strategy, count: int) -> None:
    """Compare how a strategy says that inputs are spread with the regions that its workers need."""
    used = regions(trial.description, trial.description.outputs.values(), {})  # the whole op may not read everything
    for worker in range(count):
        wanted = trial.alter_regions(needs(trial.description, strategy, count, worker))
        for number, (state, region) in enumerate(zip(strategy.inputs, wanted, strict=True)):
            shape = trial.call.tensors[number].shape
            if isinstance(state, Unread):
                right = region is None
            elif isinstance(state, Replicated):
                right = True
            elif isinstance(state, Split) and not state.halo:
                try:
                    has = mask_of(held(tuple(shape), state, count, worker), shape) & mask_of(used[number], shape)
                except StowageError as error:
                    trial.fail("states", f"input {number}: {error}")
                    continue
                right = torch.equal(mask_of(region, shape), has)
            else:
                right = isinstance(state, Split)
            trial.check("states", right, f"input {number} is {state}, but worker {worker} needs {region}")


def check_shards(trial: Trial, strategy: Strategy, count: int) -> None:
    """Evaluate the formulas in shards, without what a worker does not have, and compare what they combine to."""
    ranges = _worker_ranges(strategy, count)
    local = _local_inputs(trial, strategy, count)
    stages = stage_values(trial, trial.call.tensors, ranges, strategy, local)
    for number, formula in trial.description.outputs.items():
        if formula.opaque:
            continue
        values = [
            evaluate(trial.description, formula, input_values(trial, local[worker]) | stages[worker], ranges[worker])
            for worker in range(count)
        ]
        check_combined(trial, "shards", number, strategy.outputs[number], values)
        for stage in strategy.stages:
            trial.check(
                "shards", stage.elements == prod(_stage(trial, stage.name).shape), f"{stage.name} is not as large"
            )


def check_combined(trial: Trial, check: str, number: int, state: object, values: list[Tensor]) -> None:
    """Whether the workers' values of an output, combined as its state says, are the kernel's."""
    expected = trial.expected[number]
    if expected is None:
        return
    if isinstance(state, Split):
        whole = torch.full(expected.shape, torch.nan, dtype=torch.float64)
        try:
            for worker, value in enumerate(values):
                own = mask_of(held(tuple(expected.shape), state, len(values), worker), expected.shape)
                whole = torch.where(own, value, whole)
        except StowageError as error:
            trial.fail(check, f"output {number}: {error}")
            return
        trial.same(check, whole, expected, f"output {number}, put together")
    elif isinstance(state, Partial):
        trial.same(check, combine(state.reduction, values), expected, f"output {number}, reduced")
    else:
        for worker, value in enumerate(values):
            trial.same(check, value, expected, f"output {number} of worker {worker}")


def stage_values(
    trial: Trial, tensors: Sequence[Tensor], ranges: Sequence[dict[Variable, Range]], reduced: Strategy | None = None,
    per_worker: Sequence[Sequence[Tensor]] | None = None,
) -> list[dict[Operand, Tensor]]:  # fmt: skip
    """Per worker the values of all stages, combined where the strategy says so."""
    found: list[dict[Operand, Tensor]] = [{} for _ in ranges]
    local = per_worker or [tensors] * len(ranges)
    combined = {stage.name: stage.reduction for stage in reduced.stages} if reduced else {}
    if not all(formula.opaque is False for formula in trial.description.stages):
        return found
    for formula in trial.description.stages:
        assert formula.operand is not None
        values = [
            evaluate(
                trial.description,
                formula,
                input_values(trial, local[worker]) | found[worker],
                limits,
            )
            for worker, limits in enumerate(ranges)
        ]
        if formula.target in combined:
            values = [combine(combined[formula.target], values)] * len(values)
        for stages, value in zip(found, values, strict=True):
            stages[formula.operand] = value
    return found


def input_values(trial: Trial, tensors: Sequence[Tensor]) -> dict[Operand, Tensor]:
    """Tensors by the inputs that formulas read."""
    return dict(zip(trial.description.inputs, tensors, strict=True))


def _local_inputs(trial: Trial, strategy: Strategy, count: int) -> list[list[Tensor]]:
    """Per worker the inputs, with NaN where it has nothing and 0 where another one has to be the only one."""
    found = []
    for worker in range(count):
        wanted = trial.alter_regions(needs(trial.description, strategy, count, worker))
        local = []
        for number, (tensor, region) in enumerate(zip(trial.call.tensors, wanted, strict=True)):
            kept = mask_of(region, tensor.shape)
            value = garbage(tensor, kept, trial.generator, True)
            local.append(torch.zeros_like(value) if worker and number in strategy.once else value)
        found.append(local)
    return found


def _worker_ranges(strategy: Strategy, count: int) -> list[dict[Variable, Range]]:
    assert strategy.axis is not None
    return [{strategy.axis: chunk(strategy.axis.size, count, worker)} for worker in range(count)]


def _stage(trial: Trial, name: str) -> Formula:
    return next(stage for stage in trial.description.stages if stage.target == name)


def combine(reduction: Reduction, values: Iterable[Tensor]) -> Tensor:
    """Reduce workers' partial results."""
    stacked = torch.stack(list(values))
    if reduction is Reduction.SUM:
        return stacked.sum(0)
    if reduction is Reduction.PROD:
        return stacked.prod(0)
    return stacked.amax(0) if reduction is Reduction.MAX else stacked.amin(0)
