"""Data parallelism: the batch is split, and every worker has all parameters."""

from __future__ import annotations

from planner.errors import StowageError
from planner.graph import Graph, Kind
from planner.partition.coarse import CoarseGraph, MergedOp, Variant
from planner.partition.search import Partitioning, Pin, prime_factors, recurse
from planner.partition.strategy import Split

#: A way of splitting a group: the group and the label.
_Cut = tuple[int, int]


def data_parallel(coarse: CoarseGraph, workers: int) -> Partitioning:
    """Split the batch, and whatever has a row for each sample of it; keep everything else whole on every worker.

    Parameters, their gradients and the optimizer's state are replicated, and gradients are all-reduced. The batch is
    the dimension that all inputs have; if there are several, the one with which the fewest bytes move.

    Args:
        coarse: the coarse graph.
        workers: how many there are.

    Raises:
        StowageError: the inputs have no dimension in common that is large enough, or there are no such workers.
    """
    found = []
    for size in _common_sizes(coarse.graph):
        cuts = _reached(coarse, _input_cuts(coarse, size))
        if size >= workers and cuts:
            found.append(_split_by(coarse, cuts, workers))
    if not found:
        raise StowageError(f"the inputs of {coarse.graph.name} have no batch of at least {workers} to split")
    return min(found, key=lambda one: one.bytes_moved)


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


def _split_by(coarse: CoarseGraph, cuts: set[_Cut], workers: int) -> Partitioning:
    """Split groups with a row for each sample by samples and leave all others whole, and split ops likewise."""
    levels = len(prime_factors(workers))
    pins: dict[int, tuple[Pin, ...]] = {}
    for number, group in enumerate(coarse.groups):
        labels = [label for label, size in group.sizes.items() if (number, label) in cuts and size >= workers]
        kept = any(coarse.graph.storages[coarse.graph.tensors[member].storage].persistent for member in group.members)
        sizes = coarse.label_bytes[number]
        best: Pin = "replicated" if kept or group.whole or not labels else max(labels, key=lambda label: sizes[label])
        pins[number] = (best,) * levels

    def divides_samples(merged: MergedOp, variant: Variant) -> bool:
        slots = (*merged.inputs, *merged.outputs)
        split = [place for place, slot in enumerate(slots) if isinstance(pins[slot.group][0], int)]
        return any(slots[place].state(pins[slots[place].group][0]) == variant.states[place] for place in split)

    return recurse(coarse, workers, pins=pins, allowed_variant=divides_samples)
