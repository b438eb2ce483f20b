"""The single levers: what each changes, and why a step may not have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn

from planner.errors import StowageError
from planner.graph import Graph
from planner.levers.batch_changes import doubled, halved, in_bfloat16, rows_of
from planner.levers.checkpointed_blocks import checkpoint_blocks
from planner.levers.frozen_layers import freeze_embeddings, freeze_first_half
from planner.levers.lever_rows import Numbers, Unchangeable
from planner.levers.step_recipe import StepRecipe
from planner.step import SGD, Adam, AdamW, TrainStep
from planner.units import several

_BATCH, _MICRO, _OPTIMIZER, _PRECISION = "batch", "micro-batches", "optimizer", "precision"
_CHECKPOINTING, _FROZEN = "checkpointing", "frozen layers"
_RECOMPUTE = 'a plan of the method "recompute" runs ops again without a change of the model, dropout included'
_OPTIMIZERS = {
    "SGD": SGD(lr=1e-2), "SGD with momentum": SGD(lr=1e-2, momentum=0.9), "Adam": Adam(), "AdamW": AdamW(),
}  # fmt: skip


@dataclass(frozen=True)
class Lever:
    """A single change of a step.

    Args:
        name, change, numbers: as in a row.
        family: levers of one family exclude each other.
        apply: changes the recipe; it may raise a `StowageError` that says why it cannot.
        rows: how many times as many rows the batch has.
        otherwise: what to do instead where the step does not allow it; empty for nothing.
    """

    name: str
    change: str
    numbers: Numbers
    family: str
    apply: Callable[[StepRecipe], StepRecipe]
    rows: float = 1.0
    otherwise: str = ""


def batch_rows(recipe: StepRecipe) -> int | None:
    """How many rows the batch of a captured step has along dimension 0; None where its tensors do not agree."""
    form = recipe.given.form
    try:
        return None if form is None else rows_of(form.tensors)
    except StowageError:
        return None


def single_levers(recipe: StepRecipe, graph: Graph) -> Iterator[Lever | Unchangeable]:
    """Every lever of a step, or why it has none.

    Args:
        recipe: of the captured step.
        graph: as captured.
    """
    yield from _batch_levers(recipe)
    if not isinstance(recipe.given, TrainStep):
        for name in (_MICRO, _CHECKPOINTING, _OPTIMIZER, "autocast", _FROZEN):
            yield Unchangeable(name, "the step is inference, which has no backward pass and no such setting")
    else:
        yield from _micro_batch_levers(recipe, graph)
        yield _checkpointing(graph)
        yield from _optimizer_levers(recipe.given)
        yield from _autocast(recipe)
    yield from _low_precision(recipe)
    if isinstance(recipe.given, TrainStep):
        yield _model_lever("embeddings frozen", "embeddings are not trained", _FROZEN, freeze_embeddings)
        first_half = "the first half of the blocks, and what comes before them, is not trained"
        yield _model_lever("first half frozen", first_half, _FROZEN, freeze_first_half)


def _model_lever(name: str, change: str, family: str, on_model: Callable[[nn.Module], None],
                 numbers: Numbers = Numbers.CHANGED) -> Lever:  # fmt: skip
    return Lever(name, change, numbers, family, lambda recipe: recipe.with_model(on_model))


def _batch_levers(recipe: StepRecipe) -> Iterator[Lever | Unchangeable]:
    form = recipe.given.form
    assert form is not None
    try:
        rows = rows_of(form.tensors)
    except StowageError as error:
        yield Unchangeable(_BATCH, f"{error}, so that there is no batch size to change")
        return
    if rows % 2:
        yield Unchangeable("half the batch", f"the batch has {rows} rows along dimension 0, which two does not divide")
    else:
        half = f"{rows // 2} rows of the batch instead of {rows}, along dimension 0"
        yield Lever("half the batch", half, Numbers.CHANGED, _BATCH, lambda recipe: recipe.with_batch(halved), rows=0.5)
    double = f"{2 * rows} rows of the batch instead of {rows}, along dimension 0"
    yield Lever("twice the batch", double, Numbers.CHANGED, _BATCH, lambda recipe: recipe.with_batch(doubled), rows=2.0)


def _micro_batch_levers(recipe: StepRecipe, graph: Graph) -> Iterator[Lever | Unchangeable]:
    rows = batch_rows(recipe)
    for times in (2, 4):
        count = times * recipe.micro_batches
        name = f"{count} micro-batches"
        if rows is None:
            yield Unchangeable(name, "the tensors of the batch do not agree on how many rows it has along dimension 0")
        elif rows % count or rows < count:
            yield Unchangeable(name, f"the batch has {rows} rows along dimension 0, which {count} does not divide")
        else:
            whole = any(op.random or op.first_run_only for op in graph.ops)
            why = "; random numbers and batch statistics are of parts of the batch" if whole else ""
            yield Lever(
                name, f"gradients of {count} parts of {several(rows // count, 'row')} are averaged{why}",
                Numbers.CHANGED if whole else Numbers.ROUNDING, _MICRO,
                lambda recipe, count=count: replace(recipe, micro_batches=count),  # type: ignore[misc]
            )  # fmt: skip


def _checkpointing(graph: Graph) -> Lever:
    twice = any(op.first_run_only for op in graph.ops)
    why = "; running statistics are updated twice" if twice else ""
    lever = _model_lever(
        "checkpointed blocks", f"repeated blocks keep their inputs alone and run again in the backward pass{why}",
        _CHECKPOINTING, checkpoint_blocks, Numbers.CHANGED if twice else Numbers.SAME,
    )  # fmt: skip
    return replace(lever, otherwise=_RECOMPUTE)


def _optimizer_levers(step: TrainStep) -> Iterator[Lever | Unchangeable]:
    for name, spec in _OPTIMIZERS.items():
        if _kind(step.optimizer) != _kind(spec):
            yield Lever(
                name, f"{name} instead of {_kind(step.optimizer)}", Numbers.CHANGED, _OPTIMIZER,
                lambda recipe, spec=spec: replace(recipe, optimizer=spec),  # type: ignore[misc]
            )  # fmt: skip
    yield Unchangeable(
        "optimizer states in bfloat16",
        "torch.optim keeps states in the dtype of the parameters; see parameters in bfloat16, whose states are too",
    )


def _kind(optimizer: object) -> str:
    """The name of an optimizer, as in the list."""
    if isinstance(optimizer, SGD):
        return "SGD with momentum" if optimizer.momentum else "SGD"
    if isinstance(optimizer, torch.optim.SGD):
        return "SGD with momentum" if any(group["momentum"] for group in optimizer.param_groups) else "SGD"
    return type(optimizer).__name__


def _autocast(recipe: StepRecipe) -> Iterator[Lever | Unchangeable]:
    if recipe.autocast is not None:
        yield Unchangeable("autocast", f"the step has it already, with {recipe.autocast}")
        return
    yield Lever(
        "autocast to bfloat16", "forward and loss run under torch.autocast", Numbers.CHANGED, _PRECISION,
        lambda recipe: replace(recipe, autocast=torch.bfloat16),
    )  # fmt: skip


def _low_precision(recipe: StepRecipe) -> Iterator[Lever | Unchangeable]:
    name = "parameters in bfloat16"
    if isinstance(recipe.given, TrainStep) and isinstance(recipe.given.optimizer, torch.optim.Optimizer):
        yield Unchangeable(
            name, "the live optimizer is bound to the parameters as they are; pass planner.Adam, for example, instead"
        )
        return

    def apply(recipe: StepRecipe) -> StepRecipe:
        changed = recipe.with_model(_to_bfloat16)
        form = recipe.given.form
        floating = form is not None and any(facts.dtype.is_floating_point for facts in form.tensors.values())
        return changed.with_batch(in_bfloat16) if floating else changed

    change = (
        "parameters, buffers and the floating-point tensors of the batch are in bfloat16, and so is all made of them"
    )
    yield Lever(name, change, Numbers.CHANGED, _PRECISION, apply)


def _to_bfloat16(model: nn.Module) -> None:
    """Put new tensors in place of parameters and buffers; `nn.Module.to` cannot do it while a step is captured."""
    made: dict[int, torch.Tensor] = {}
    for module in model.modules():
        for name, one in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
            if not one.is_floating_point():
                continue
            if id(one) not in made:
                low = one.detach().to(torch.bfloat16)
                made[id(one)] = nn.Parameter(low, one.requires_grad) if isinstance(one, nn.Parameter) else low
            setattr(module, name, made[id(one)])
