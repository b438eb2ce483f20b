"""A kernel against the regions that it is said to need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from planner.partition.strategy import Partial, Split, Strategy, chunk, held
from planner.partition.tdl import Digit, Formula, Range, Region, Variable, evaluate, regions
from planner.partition.verify.formulas import check_combined, input_values, stage_values
from planner.partition.verify.trial import Trial
from planner.partition.verify.values import chosen_anew, disturbed, garbage, mask_of

_ATTEMPTS = 8


def check_everything_is_read(trial: Trial) -> None:
    """Every input that a formula reads matters."""
    read = regions(trial.description, trial.description.outputs.values(), {})
    for number, region in enumerate(read):
        if region is not None and number not in trial.call.fixed:
            everything = torch.ones(trial.call.tensors[number].shape, dtype=torch.bool)
            if not moves(trial, number, everything, dict.fromkeys(trial.description.outputs)):
                trial.fail("faces", f"input {number} is said to be read, but changing it changes nothing")


def check_regions(trial: Trial, strategy: Strategy, axis: Variable, count: int) -> None:
    """Replace all that a chunk is said not to need, and disturb the borders of what it is said to need."""
    for worker in range(count):
        limits = {axis: chunk(axis.size, count, worker)}
        for number, formula in trial.description.outputs.items():
            wanted = trial.alter_regions(regions(trial.description, [formula], limits))
            state = strategy.outputs[number]
            expected = trial.expected[number]
            if expected is None:
                continue
            if isinstance(state, Partial):
                if not formula.opaque:
                    _partial_faces(trial, formula, limits, wanted)
                continue
            own = mask_of(None if state is None else held(tuple(expected.shape), state, count, worker), expected.shape)
            for nan in (True, False):
                other = [
                    tensor if place in trial.call.fixed
                    else garbage(tensor, mask_of(region, tensor.shape), trial.generator, nan)
                    for place, (tensor, region) in enumerate(zip(trial.call.tensors, wanted, strict=True))
                ]  # fmt: skip
                found = trial.call.run(other)[number]
                assert found is not None
                trial.same("region", found[own], expected[own], f"output {number} of worker {worker}, garbage around")
            for place, face in _faces(trial, wanted):
                if place in trial.call.fixed:
                    continue
                trial.check(
                    "faces", moves(trial, place, face, {number: own}),
                    f"worker {worker} is said to need {wanted[place]} of input {place}, but its border changes nothing",
                )  # fmt: skip


def check_cut(trial: Trial, strategy: Strategy, count: int) -> None:
    """The kernel on cut inputs."""
    if any(isinstance(state, Split) and state.halo for state in strategy.inputs):
        return
    outputs: list[list[Tensor | None]] = []
    for worker in range(count):
        local = []
        for number, (tensor, state) in enumerate(zip(trial.call.tensors, strategy.inputs, strict=True)):
            own = mask_of(held(tuple(tensor.shape), state, count, worker), tensor.shape)
            shape = list(tensor.shape)
            if isinstance(state, Split):
                shape[state.dimension] = int(own.sum()) * shape[state.dimension] // tensor.numel()
            value = tensor[own].reshape(shape)
            local.append(torch.zeros_like(value) if worker and number in strategy.once else value)
        try:
            outputs.append(trial.call.run(local))
        except RuntimeError as error:
            trial.fail("cut", f"the kernel refuses cut inputs: {str(error).splitlines()[0]}")
            return
    for number, expected in enumerate(trial.expected):
        made = strategy.outputs[number]
        if expected is None or made is None:
            continue
        values = []
        for worker, results in enumerate(outputs):
            own = mask_of(held(tuple(expected.shape), made, count, worker), expected.shape)
            whole = torch.full(expected.shape, torch.nan, dtype=torch.float64)
            found = results[number]
            if found is None or found.numel() != int(own.sum()):
                trial.fail("cut", f"output {number} of worker {worker} has another size")
                return
            whole[own] = found.double().reshape(-1)
            values.append(whole)
        check_combined(trial, "cut", number, made, values)


def check_linear(trial: Trial, strategy: Strategy, count: int) -> None:
    """The kernel on terms of a sum gives terms of the result."""
    terms: list[list[Tensor]] = [list(trial.call.tensors) for _ in range(count)]
    for number, state in enumerate(strategy.inputs):
        tensor = trial.call.tensors[number]
        if isinstance(state, Partial):
            if not tensor.is_floating_point():
                return
            rest = tensor
            for worker in range(1, count):
                noise = torch.randn(tensor.shape, generator=trial.generator, dtype=torch.float64).to(tensor.dtype)
                terms[worker][number] = noise
                rest = rest - noise
            terms[0][number] = rest
    results = [trial.call.run(term) for term in terms]
    for number, made in enumerate(strategy.outputs):
        if isinstance(made, Partial):
            values = [result[number] for result in results]
            check_combined(trial, "linear", number, made, [value.double() for value in values if value is not None])


def _partial_faces(
    trial: Trial, formula: Formula, limits: dict[Variable, Range], wanted: tuple[Region | None, ...]
) -> None:
    def partial(tensors: Sequence[Tensor]) -> Tensor:
        stages = stage_values(trial, tensors, [limits])[0]
        return evaluate(trial.description, formula, input_values(trial, tensors) | stages, limits)

    def moves(place: int, face: Tensor, attempt: int) -> bool:
        base, other = disturbed_inputs(trial, place, face, attempt)
        return not torch.equal(partial(other).nan_to_num(), partial(base).nan_to_num())

    for place, face in _faces(trial, wanted):
        if place in trial.call.fixed:
            continue
        moved = any(moves(place, face, attempt) for attempt in range(_ATTEMPTS))
        trial.check("faces", moved, f"a border of {wanted[place]} of input {place} changes no partial result")


def _faces(trial: Trial, wanted: tuple[Region | None, ...]) -> Iterator[tuple[int, Tensor]]:
    """Per input and dimension that is not needed whole, the first and the last layer of what is needed."""
    for number, region in enumerate(wanted):
        if region is None:
            continue
        for dimension, extent in enumerate(region.extents):
            for place, digit in enumerate(extent):
                if digit.whole:
                    continue
                for start in {digit.start, digit.stop - 1}:
                    layer = (*extent[:place], Digit(digit.size, start, start + 1), *extent[place + 1 :])
                    extents = (*region.extents[:dimension], layer, *region.extents[dimension + 1 :])
                    yield number, mask_of(Region(extents), trial.call.tensors[number].shape)


def moves(trial: Trial, place: int, where: Tensor, looked_at: dict[int, Tensor | None]) -> bool:
    """Whether disturbing some elements of an input changes the kernel's results there."""
    for attempt in range(_ATTEMPTS):
        base, other = disturbed_inputs(trial, place, where, attempt)
        before, results = trial.call.run(base), trial.call.run(other)
        for number, own in looked_at.items():
            found, expected = results[number], before[number]
            if found is not None and expected is not None:
                if own is not None:
                    found, expected = found[own], expected[own]
                if not torch.equal(found.nan_to_num(), expected.nan_to_num()):
                    return True
    return False


def disturbed_inputs(trial: Trial, place: int, where: Tensor, attempt: int) -> tuple[list[Tensor], list[Tensor]]:
    """Values of the inputs, and the same with one of them changed somewhere.

    Whole numbers and truth values choose what is read of the other inputs, so attempts choose differently.
    """
    base = list(trial.call.tensors)
    for number, tensor in enumerate(base):
        if attempt and number not in trial.call.fixed and not tensor.is_floating_point():
            base[number] = chosen_anew(tensor, trial.generator, attempt)
    other = list(base)
    other[place] = disturbed(other[place], where, trial.generator, attempt)
    return base, other
