"""What is communicated around every op: inputs that are fetched, stages that are combined, outputs that are stored."""

from __future__ import annotations

from dataclasses import dataclass

from planner.graph import Graph, Phase
from planner.partition.coarse import content_of
from planner.partition.search import Partitioning, want_key
from planner.partition.step_time.conversions import Transfer, conversion, fetched_bytes, spread_bytes, stage_transfer


@dataclass(frozen=True, slots=True)
class OpTransfers:
    """What is communicated for one op.

    Args:
        fetches: per input that is not in place, its root tensor, what tells it apart from other fetches of the step
            (an equal key is the same fetch), and the transfer.
        stages: what workers combine while the op runs.
        stores: per output that has to be moved, the tensor and the transfer.
    """

    fetches: tuple[tuple[int, object, Transfer], ...] = ()
    stages: Transfer = ()
    stores: tuple[tuple[int, Transfer], ...] = ()


def transfers(found: Partitioning) -> tuple[OpTransfers, ...]:
    """What is communicated for every op.

    Ops of a phase that read the same contents in the same way share a fetch.

    Args:
        found: a partition.
    """
    graph = found.coarse.graph
    roots = root_tensors(graph)
    result = [OpTransfers()] * len(graph.ops)
    for number, merged in enumerate(found.coarse.merged):
        chosen = tuple(level.variants[number] for level in found.levels)
        mesh = tuple(level.workers for level in found.levels)
        stages = stage_transfer(merged, chosen, mesh)
        slots = (*merged.inputs, *merged.outputs)
        haves = [tuple(slot.state(level.labels[slot.group]) for level in found.levels) for slot in slots]
        wants = [tuple(variant.states[place] for variant in chosen) for place in range(len(slots))]
        fetched, stored = [], []
        for place, slot in enumerate(slots):
            have, want = haves[place], wants[place]
            if place < len(merged.inputs):
                units = [fetched_bytes(merged, chosen, mesh, level, place, have[level]) for level in range(len(mesh))]
                fetched.append(conversion(units, have, want, mesh))
            else:
                units = [spread_bytes(slot, *each) for each in zip(want, have, mesh, strict=True)]
                stored.append(conversion(units, want, have, mesh))
        keys = [tuple(want_key(merged, each, place) for each in chosen) for place in range(len(merged.inputs))]
        for op in merged.ops:
            inputs, outputs = graph.ops[op].inputs, graph.ops[op].outputs
            phase: Phase = graph.ops[op].phase
            result[op] = OpTransfers(
                tuple(
                    (roots[tensor], (phase, content_of(graph, roots, tensor), key), transfer)
                    for tensor, transfer, key in zip(inputs, fetched, keys, strict=True) if transfer
                ),
                stages,
                tuple((tensor, transfer) for tensor, transfer in zip(outputs, stored, strict=True) if transfer),
            )  # fmt: skip
    return tuple(result)


def root_tensors(graph: Graph) -> list[int]:
    """Per tensor, the one that was made, of which it is a view, or itself."""
    roots = [tensor.id for tensor in graph.tensors]
    for tensor in graph.tensors:
        if tensor.base >= 0:
            roots[tensor.id] = roots[tensor.base]
    return roots
