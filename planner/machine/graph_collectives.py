"""Collectives as ops of a worker's graph: which ops they are, and how long they take."""

from __future__ import annotations

import re
from ast import literal_eval
from math import prod
from typing import NamedTuple

from planner.graph import Graph, Op
from planner.machine.collectives import Collective, collective_seconds
from planner.machine.machine_types import Link, Machine

#: The namespace of the operators that communicate.
_NAMESPACE = "stowage."
_KINDS = {
    "all_reduce": Collective.ALL_REDUCE, "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER, "all_to_all": Collective.ALL_TO_ALL,
}  # fmt: skip
#: The arguments of a collective after its tensor and its token: numbers of elements or of workers, then its group.
_ARGUMENTS = re.compile(r"\$\d+, \$\d+, (?:[a-z]+, )?(?P<numbers>.+), (?P<levels>\d+(?:,\d+)*)")


class _Communicated(NamedTuple):
    """What an op communicates: how, the bytes that this worker receives, among how many, and at which levels."""

    kind: Collective
    received: float
    workers: int
    levels: tuple[int, ...]


def is_collective(op: Op) -> bool:
    """Whether an op communicates with other workers."""
    return op.target.startswith(_NAMESPACE)


def collective_op_seconds(graph: Graph, op: Op, machine: Machine) -> float | None:
    """Predicted duration of a collective without its launch; None if the link that it takes is not known.

    Workers of different hosts have different numbers at level 0, the outermost.

    Args:
        graph, op: the collective.
        machine: with the links between its devices.
    """
    found = _communicated(graph, op)
    link: Link | None = machine.peer_link
    if machine.hosts > 1 and 0 in found.levels:
        link = machine.network_link
    return None if link is None else collective_seconds(found.kind, found.received, found.workers, link)


def _communicated(graph: Graph, op: Op) -> _Communicated:
    name = op.target.split(".")[1]
    match = _ARGUMENTS.fullmatch(op.attributes)
    assert match is not None, f"{op.target}({op.attributes})"
    numbers = literal_eval(f"({match['numbers']},)")
    levels = tuple(int(level) for level in match["levels"].split(","))
    given, made = (prod(graph.tensors[tensor].shape) for tensor in (op.inputs[0], op.outputs[0]))
    if name == "all_reduce":
        (workers,) = numbers
        elements = 2 * (workers - 1) / workers * given
    else:
        workers = len(numbers[0])
        elements = {"all_gather": made - given, "reduce_scatter": (workers - 1) * made}.get(name, made)
    itemsize = graph.storages[graph.tensors[op.outputs[0]].storage].bytes / max(made, 1)
    return _Communicated(_KINDS[name], elements * itemsize, workers, levels)
