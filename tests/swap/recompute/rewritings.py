"""Every way to run ops of a very small step again, each written down as a step of its own in which no op runs twice.

An op of the forward pass may run a second time if all it writes is made by it and not returned. Of those that read
what it makes beyond the forward pass, or when they run again, each takes either instance's; so does the second instance
of another op. Where nobody takes the first or the second one's there is nothing to gain, and such ways are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

from planner.graph import Graph, GraphBuilder, Kind, Op, Phase


def rewritings(graph: Graph) -> Iterator[tuple[Graph, list[int]]]:
    """A graph for each way, that in which nothing runs again first, and by its ops the ones of the step."""
    made = {graph.tensors[op.outputs[0]].storage: op.id for op in graph.ops if _may_run_again(graph, op)}
    for count in range(len(made) + 1):
        for again in combinations(sorted(made.values()), count):
            chosen = {graph.ops[op].outputs[0] for op in again}
            readers = [
                (reader, second, tensor)
                for reader in graph.ops
                for second in (False, True)
                if (reader.id in again if second else reader.phase is not Phase.FORWARD)
                for tensor in dict.fromkeys(reader.inputs)
                if tensor in chosen
            ]
            for taken in product((False, True), repeat=len(readers)):
                takes = {key[0].id * 2 + key[1]: set() for key in readers}
                for (reader, second, tensor), takes_second in zip(readers, taken, strict=True):
                    if takes_second:
                        takes[reader.id * 2 + second].add(tensor)
                if set().union(*takes.values()) == chosen:
                    yield _rewritten(graph, again, takes)


def _may_run_again(graph: Graph, op: Op) -> bool:
    storage = graph.tensors[op.outputs[0]].storage
    alone = sum(storage in written for written in graph.writes) == 1 and set(graph.writes[op.id]) == {storage}
    return (
        op.phase is Phase.FORWARD and alone and not graph.storages[storage].live_in
        and storage not in graph.output_storages
    )  # fmt: skip


def _rewritten(graph: Graph, again: tuple[int, ...], takes: dict[int, set[int]]) -> tuple[Graph, list[int]]:
    """Second instances come right after the first ones, so that both see the same values of what they read."""
    b = GraphBuilder("rewritten")
    ops: list[int] = []
    numbers = {s.id: b.add_storage(s.name, s.bytes, s.kind) for s in graph.storages if s.kind is not Kind.WORKSPACE}
    for tensor in graph.tensors:
        b.add_tensor(tensor.name, numbers[tensor.storage], tensor.shape)
    copies: dict[int, int] = {}

    def add(op: Op, second: bool) -> None:
        swapped = takes.get(op.id * 2 + second, set())

        def seen(tensors: tuple[int, ...]) -> list[int]:
            return [copies[tensor] if tensor in swapped else tensor for tensor in tensors]

        outputs = list(op.outputs)
        if second:
            first = graph.tensors[op.outputs[0]]
            storage = graph.storages[first.storage]
            copy = b.add_storage(f"{storage.name}'", storage.bytes, storage.kind)
            outputs = [b.add_tensor(f"{first.name}'", copy, first.shape)]
            copies[op.outputs[0]] = outputs[0]
        b.add_op(
            op.name + "'" * second, op.target, seen(op.inputs), outputs, phase=op.phase, overwrites=seen(op.overwrites)
        )
        ops.append(op.id)

    for op in graph.ops:
        add(op, False)
        if op.id in again:
            add(op, True)
    made = b.build(graph.outputs)
    sizes = {node: graph.workspace_bytes(op) for node, op in enumerate(ops) if graph.ops[op].workspace >= 0}
    return replace(made.with_workspaces(sizes), name=graph.name), ops
