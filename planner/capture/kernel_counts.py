"""Comparison of a captured graph with the kernels that eager PyTorch runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from planner import torch_private as private
from planner.errors import StowageError
from planner.graph import Graph
from planner.program import ALLOCATIONS, Program
from planner.step import Step

# Ops that eager does not run: the second half of a decomposed op, and copies that keep buffers and literals in place.
_OURS = ("convolution_backward.weight", "copy.back", "clone.literal")
# Reads of constants and of an optimizer's step counters, which a graph holds as values.
_READS = frozenset({"lift_fresh", "_local_scalar_dense"})


def compare_with_eager(step: Step, graph: Graph) -> list[str]:
    """List the differences between the kernels of one eager step and those of the graph, one sentence each.

    Kernels are counted by name, in place or not. The step runs on a copy of the live model, so the model must fit
    into memory twice; the model, the batch and the random generator are left unchanged.

    Args:
        step: the captured step.
        graph: the graph that `capture` returned for it.

    Raises:
        StowageError: the graph has no program.
    """
    if not isinstance(graph.program, Program):
        raise StowageError("this graph was read from a file and has no program: capture the step to compare it")
    copy = step.clone()
    eager = _Counter()
    with torch.random.fork_rng(), eager:
        copy.eager()
    in_graph = Counter(graph.program.unused)
    for op, call in zip(graph.ops, graph.program.calls, strict=True):
        ours = op.name.rpartition("/")[2].startswith(_OURS)
        in_graph[private.kernel_name(call.target)] += not ours
    return [
        f"eager makes {eager.seen[name]} calls of {name} in a step and the graph {in_graph[name]}"
        for name in sorted({*eager.seen, *in_graph})
        if eager.seen[name] != in_graph[name]
    ]


class _Counter(private.TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the kernels that run, except views and allocations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        aside = private.operator_name(func) in ALLOCATIONS | _READS
        if not aside and (private.mutated_arguments(func, args) or set(_storages(result)) - set(_storages(args))):
            self.seen[private.kernel_name(func)] += 1
        return result


def _storages(tree: Any) -> Iterator[int]:
    for leaf in private.pytree.tree_leaves(tree):
        if isinstance(leaf, torch.Tensor):
            yield private.storage_identity(leaf.untyped_storage())
