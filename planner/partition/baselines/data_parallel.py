"""Data parallelism: the batch is split, and every worker has all parameters."""

from __future__ import annotations

from planner.errors import StowageError
from planner.graph import Graph, Kind
from planner.machine import prime_factors
from planner.partition.baselines.pinned import pinned
from planner.partition.coarse import CoarseGraph, MergedOp, Variant
from planner.partition.search import Partitioning
from planner.partition.strategy import Split

#: A way of splitting a group: the group and the label.
_Cut = tuple[int, int]


def data_parallel(coarse: CoarseGraph, workers: int) -> Partitioning:
    """Split the batch, and whatever has a row for each sample of it; keep everything else whole on every worker.

    Parameters, their gradients and the optimizer's state are replicated, and gradients are all-reduced. The batch is
    the dimension that all inputs have; if there are several, the one that moves the least bytes.

    Args:
        coarse: the coarse graph.
        workers: how many there are.

    Raises:
        StowageError: the inputs have no dimension in common that is large enough, or there are no such workers.
    """
    found = [
        _along(coarse, workers, labels)
        for size in _common_sizes(coarse.graph) if size >= workers
        for labels in [_labels(coarse, _reached(coarse, _input_cuts(coarse, size)), workers)]
        if any(label is not None for label in labels.values())
    ]  # fmt: skip
    if not found:
        raise StowageError(f"the inputs of {coarse.graph.name} have no batch of at least {workers} to split")
    return min(found, key=lambda partitioning: partitioning.bytes_moved)


def _along(coarse: CoarseGraph, workers: int, labels: dict[int, int | None]) -> Partitioning:
    """Split what has a label, and make ops divide it."""

    def divides_samples(merged: MergedOp, variant: Variant) -> bool:
        if variant.strategy is not None and variant.strategy.axis is None:
            return True  # gradients are added up before they are reduced
        slots = (*merged.inputs, *merged.outputs)
        return any(
            slot.state(labels[slot.group]) == state
            for slot, state in zip(slots, variant.states, strict=True) if labels[slot.group] is not None
        )  # fmt: skip

    return pinned(coarse, prime_factors(workers), labels, divides_samples)


def _inputs(graph: Graph) -> list[int]:
    """The tensors of the batch: what enters the step and is not kept from one to the next."""
    return [
        tensor.id for tensor in graph.tensors
        if tensor.base < 0 and tensor.shape and graph.storages[tensor.storage].kind is Kind.INPUT
    ]  # fmt: skip


def _common_sizes(graph: Graph) -> list[int]:
    """Sizes that a dimension of every input has, in the order of the first input's dimensions."""
    shapes = [graph.tensors[tensor].shape for tensor in _inputs(graph)]
    return list(dict.fromkeys(size for size in shapes[0] if all(size in shape for shape in shapes))) if shapes else []


def _input_cuts(coarse: CoarseGraph, size: int) -> set[_Cut]:
    """Where the first dimension of such a size is in every input."""
    found = set()
    for tensor in _inputs(coarse.graph):
        dimension = coarse.graph.tensors[tensor].shape.index(size)
        for label, split in coarse.labels[tensor]:
            if split.dimension == dimension and split.outer == 1:
                found.add((coarse.group_of[tensor], label))
                break
    return found


def _reached(coarse: CoarseGraph, cuts: set[_Cut]) -> set[_Cut]:
    """The splits that follow from some through ops that divide what they read and what they make along one axis."""
    around = [_linked(merged) for merged in coarse.merged]
    touching: dict[_Cut, list[frozenset[_Cut]]] = {}
    for links in around:
        for link in links:
            for cut in link:
                touching.setdefault(cut, []).append(link)
    reached, waiting = set(cuts), list(cuts)
    while waiting:
        for link in touching.get(waiting.pop(), ()):
            waiting += link - reached
            reached |= link
    return reached


def _linked(merged: MergedOp) -> set[frozenset[_Cut]]:
    found = set()
    for variant in merged.variants:
        link = set()
        for slot, state in zip((*merged.inputs, *merged.outputs), variant.states, strict=True):
            if isinstance(state, Split) and not state.halo and (label := slot.label(state)) is not None:
                link.add((slot.group, label))
        found.add(frozenset(link))
    return found


def _labels(coarse: CoarseGraph, cuts: set[_Cut], workers: int) -> dict[int, int | None]:
    """Groups with a row for each sample by the label of the samples; None for all others, which are whole."""
    found: dict[int, int | None] = {}
    for number, group in enumerate(coarse.groups):
        labels = [label for label, size in group.sizes.items() if (number, label) in cuts and size >= workers]
        kept = any(coarse.graph.storages[coarse.graph.tensors[member].storage].persistent for member in group.members)
        sizes = coarse.label_bytes[number]
        whole = kept or group.whole or not labels
        found[number] = None if whole else max(labels, key=lambda label: sizes[label])
    return found
