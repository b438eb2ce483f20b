"""Every tensor is stored so that the workers' parts make it up, and all that shares its memory is stored alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from planner.graph import Graph, Tensor
from planner.partition.plan.partition_plan import AxisDivision, Division, PartitionPlan
from planner.partition.plan.validator.layouts import same_split
from planner.partition.strategy import Partial, Replicated, Split, State

#: Outer, size and inner: a part of a range that a level can cut.
_Factor = tuple[int, int, int]
#: Of which range, which factor of it one level cuts, and into how many parts.
_Cut = tuple[str, _Factor, int]


def roots(graph: Graph) -> list[int]:
    """Per tensor, the one that was made, of which it is a view."""
    found: list[int] = []
    for tensor in graph.tensors:
        found.append(tensor.id if tensor.base < 0 else found[tensor.base])
    return found


def check_tensors(plan: PartitionPlan, graph: Graph) -> list[str]:
    """Check how tensors are stored, each by itself and those of one storage together."""
    return [*_parts(plan, graph), *_views(plan, graph), *_versions(plan, graph), *_sums(plan, graph)]


def check_divisions(mesh: Sequence[int], divisions: Sequence[Division]) -> str:
    """What is wrong with the parts of an op's index variables that levels divide; empty if nothing is."""
    cuts: list[_Cut] = []
    for division, workers in zip(divisions, mesh, strict=True):
        if isinstance(division, AxisDivision):
            factor = division.outer, division.size, division.inner
            cuts.append((f"of index {division.axis}", factor, workers))
    return _overlapping(cuts)


def _parts(plan: PartitionPlan, graph: Graph) -> Iterator[str]:
    known: dict[tuple[State | None, ...], str] = {}
    for tensor, states in zip(graph.tensors, plan.tensors, strict=True):
        if states not in known:
            known[states] = _tiled(plan.mesh, states)
        if known[states]:
            yield f"tensor {tensor.name} is not made up by its parts: {known[states]}"


def _tiled(mesh: Sequence[int], states: Sequence[State | None]) -> str:
    cuts: list[_Cut] = []
    for state, workers in zip(states, mesh, strict=True):
        if isinstance(state, Split):
            factor = state.outer, state.size, state.inner
            cuts.append((f"of dimension {state.dimension}", factor, workers))
    return _overlapping(cuts)


def _overlapping(cuts: Sequence[_Cut]) -> str:
    """What is wrong with the factors that levels cut ranges into; empty if nothing is."""
    by_range: dict[str, dict[_Factor, int]] = {}
    for of_range, factor, workers in cuts:
        parts = by_range.setdefault(of_range, {})
        if factor not in parts:
            for other in parts:
                inside, outside = sorted((factor, other), key=lambda each: each[2])
                if outside[2] % (inside[1] * inside[2]):
                    return f"{of_range}, factors of {factor[1]} and {other[1]} indices overlap"
        parts[factor] = parts.get(factor, 1) * workers
        if factor[1] // (parts[factor] // workers) < workers:
            return f"{of_range}, {factor[1]} indices are cut into {parts[factor]} parts, so worker 0 gets nothing"
    return ""


def _views(plan: PartitionPlan, graph: Graph) -> Iterator[str]:
    root_of = roots(graph)
    known: dict[object, str] = {}
    for tensor in graph.tensors:
        if tensor.base < 0:
            continue
        root = graph.tensors[root_of[tensor.id]]
        for level, pair in enumerate(zip(plan.tensors[tensor.id], plan.tensors[root.id], strict=True)):
            key = _layout(tensor), _layout(root), pair
            if key not in known:
                known[key] = _seen(tensor, root, *pair)
            if known[key]:
                yield f"view {tensor.name} at level {level}: {known[key]}, as {root.name} is stored"


def _layout(tensor: Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.strides, tensor.offset, tensor.dtype


def _seen(view: Tensor, root: Tensor, state: State | None, below: State | None) -> str:
    """What is wrong with the state of a view, given that of its root; empty if nothing is."""
    if not isinstance(below, Split):
        return "" if state == below else f"{_words(state)} is not {_words(below)}"
    if state is None:
        return ""
    if not isinstance(state, Split):
        return f"{_words(state)} is not {_words(below)}"
    return "" if same_split(view, state, root, below) else f"{_words(state)} gives workers other elements"


def _versions(plan: PartitionPlan, graph: Graph) -> Iterator[str]:
    """An op that updates in place leaves its storage spread as it was, so that steps can follow each other."""
    first: dict[int, Tensor] = {}
    for tensor in graph.tensors:
        if tensor.base >= 0:
            continue
        before = first.setdefault(tensor.storage, tensor)
        if before is tensor:
            continue
        for level, (old, new) in enumerate(zip(plan.tensors[before.id], plan.tensors[tensor.id], strict=True)):
            alike = old == new and (not isinstance(old, Split) or _layout(before) == _layout(tensor))
            if not alike and isinstance(old, Split) and isinstance(new, Split):
                alike = same_split(tensor, new, before, old)
            if not alike:
                yield (
                    f"storage {graph.storages[tensor.storage].name} at level {level}: {tensor.name} is {_words(new)}, "
                    f"but {before.name}, which is updated in place, is {_words(old)}"
                )


def _sums(plan: PartitionPlan, graph: Graph) -> Iterator[str]:
    """What exists before or after the step is complete."""
    returned = {graph.tensors[tensor].storage for tensor in graph.outputs}
    for tensor in graph.tensors:
        storage = graph.storages[tensor.storage]
        if tensor.base >= 0 or not (storage.live_in or storage.id in returned):
            continue
        for level, state in enumerate(plan.tensors[tensor.id]):
            if isinstance(state, Partial):
                what = "returned by the step" if storage.id in returned else "there before the step"
                yield f"tensor {tensor.name} at level {level} is partial sums, and it is {what}"


def _words(state: State | None) -> str:
    match state:
        case Split():
            return f"split along {state.outer} x {state.size} x {state.inner} of dimension {state.dimension}"
        case Replicated():
            return "whole on every worker"
        case Partial():
            return "partial sums"
    return "in no state of its own"


def parts_of(states: Sequence[State | None], mesh: Sequence[int]) -> int:
    """Into how many parts levels cut a tensor."""
    return prod(workers for state, workers in zip(states, mesh, strict=True) if isinstance(state, Split))
