"""What follows from a graph: dependencies, workspaces, bytes, arrays, and whether it is sound."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.graph import Graph, GraphBuilder, Kind, Op, Phase, arrays, check
from tests.graph.graphs import graphs


def touched(graph, op):
    return set(graph.reads[op]), set(graph.writes[op])


@given(graphs())
def test_two_ops_are_ordered_exactly_if_one_writes_what_the_other_touches(graph):
    """The order over all earlier ops, as it follows from the dependencies, is the one that conflicts demand."""
    before = []
    for op, direct in enumerate(graph.dependencies):
        assert list(direct) == sorted(set(direct))
        assert all(earlier < op for earlier in direct)
        before.append(set(direct).union(*(before[earlier] for earlier in direct)) if direct else set())
    wanted = []
    for op in range(len(graph.ops)):
        reads, writes = touched(graph, op)
        conflicts = set()
        for earlier in range(op):
            read, written = touched(graph, earlier)
            if written & (reads | writes) or read & writes:
                conflicts.add(earlier)
        wanted.append(conflicts.union(*(wanted[earlier] for earlier in conflicts)) if conflicts else set())
    assert before == wanted


@given(graphs())
def test_random_sound_graphs_are_sound(graph):
    assert check(graph) == []


@given(graphs(), st.dictionaries(st.integers(0, 11), st.integers(-1, 50)))
def test_replacing_workspaces_keeps_everything_else(graph, needed):
    again = graph.with_workspaces(needed)
    others = [s for s in graph.storages if s.kind is not Kind.WORKSPACE]
    assert list(again.storages[: len(others)]) == others
    assert [again.workspace_bytes(op.id) for op in again.ops] == [max(needed.get(op.id, 0), 0) for op in again.ops]
    assert [replace(op, workspace=-1) for op in again.ops] == [replace(op, workspace=-1) for op in graph.ops]
    assert check(again) == []


@given(graphs())
def test_arrays_say_what_the_graph_says(graph):
    flat = arrays(graph)
    assert (flat.op_count, flat.storage_count) == (len(graph.ops), len(graph.storages))

    def rows(csr):
        return [tuple(csr.items[start:stop].tolist()) for start, stop in pairwise(csr.start)]

    assert rows(flat.reads) == list(graph.reads)
    assert rows(flat.predecessors) == list(graph.dependencies)
    assert [set(row) for row in rows(flat.successors)] == [
        {later for later, before in enumerate(graph.dependencies) if op in before} for op in range(len(graph.ops))
    ]
    for op, writes in zip(graph.ops, rows(flat.writes), strict=True):
        assert writes == (*graph.writes[op.id], *([op.workspace] if op.workspace >= 0 else []))
    made: set[int] = {s.id for s in graph.storages if s.live_in}
    updated = set()
    for op in graph.ops:
        for storage in graph.writes[op.id]:
            (updated if storage in made else made).add(storage)
    assert set(np.flatnonzero(flat.updated)) == updated
    assert flat.bytes.tolist() == [s.bytes for s in graph.storages]
    assert flat.live_in.tolist() == [s.live_in for s in graph.storages]


def test_bytes_are_counted_by_kind():
    build = GraphBuilder("x")
    build.add_storage("a", 3, Kind.PARAMETER)
    build.add_storage("b", 4, Kind.BUFFER)
    build.add_storage("c", 5, Kind.PARAMETER)
    graph = build.build()
    assert graph.bytes_of([Kind.PARAMETER]) == 8
    assert graph.bytes_of([Kind.PARAMETER, Kind.BUFFER, Kind.PARAMETER]) == 12


def small() -> Graph:
    """One held weight, one op that makes y from it."""
    build = GraphBuilder("small")
    w = build.add_tensor("w", build.add_storage("w", 8, Kind.PARAMETER), [2])
    y = build.add_tensor("y", build.add_storage("y", 8, Kind.OUTPUT), [2])
    build.add_op("relu", "aten.relu.default", [w], [y])
    return build.build([y]).with_workspaces({0: 4})


def with_op(graph: Graph, **changes) -> Graph:
    return replace(graph, ops=(replace(graph.ops[0], **changes),))


def with_tensor(graph: Graph, place: int, **changes) -> Graph:
    tensors = list(graph.tensors)
    tensors[place] = replace(tensors[place], **changes)
    return replace(graph, tensors=tuple(tensors))


def with_storage(graph: Graph, place: int, **changes) -> Graph:
    storages = list(graph.storages)
    storages[place] = replace(storages[place], **changes)
    return replace(graph, storages=tuple(storages))


UNSOUND = {
    "an id out of place": (lambda g: with_op(g, id=3), "op 0 has id 3"),
    "no such storage": (lambda g: with_tensor(g, 1, storage=9), "tensor y is in storage 9, which does not exist"),
    "no such base": (lambda g: with_tensor(g, 1, base=7), "tensor y is a view of tensor 7, which does not exist"),
    "a view of itself": (
        lambda g: with_tensor(g, 1, base=1),
        "tensor y is a view of tensor 1, which does not come bef",
    ),
    "no such input": (lambda g: with_op(g, inputs=(5,)), "op relu names a tensor that does not exist"),
    "no such workspace": (lambda g: with_op(g, workspace=9), "op relu names workspace 9, which does not exist"),
    "no such output": (lambda g: replace(g, outputs=(8,)), "the step returns a tensor that does not exist"),
    "negative bytes": (lambda g: with_storage(g, 1, bytes=-1), "storage y has -1 bytes"),
    "strides missing": (lambda g: with_tensor(g, 1, strides=()), "tensor y has 1 sizes and 0 strides"),
    "negative offset": (lambda g: with_tensor(g, 1, offset=-4), "tensor y has a negative size, stride or offset"),
    "a view elsewhere": (lambda g: with_tensor(g, 1, base=0), "tensor y is in another storage than the tensor it is"),
    "read too early": (lambda g: with_op(g, inputs=(1,)), "op relu reads y before it is made"),
    "never made": (lambda g: with_op(g, outputs=(0,)), "the step returns y, which is never made"),
    "overwrites a stranger": (lambda g: with_op(g, overwrites=(1,)), "op relu overwrites a tensor that is not among"),
    "for its first run a stranger": (
        lambda g: with_op(g, first_run_only=(0,)),
        "op relu has w for its first run alone, an",
    ),
    "for its first run nothing": (
        lambda g: with_op(g, first_run_only=(7,)),
        "op relu names a storage for its first run",
    ),
    "draws as a later op": (lambda g: with_op(g, random=True, draws_as=0), "op relu draws the numbers of op 0, which"),
    "draws as an op that draws nothing": (
        lambda g: replace(g, ops=(g.ops[0], Op(1, "more", "aten.rand.default", (), (1,), random=True, draws_as=0))),
        "op more draws the numbers of relu, and one of them draws none of its own",
    ),
    "workspace of no op": (lambda g: with_op(g, workspace=-1), "storage relu/workspace and the op whose workspace it"),
    "workspace of a kind": (lambda g: with_storage(g, 2, kind=Kind.ACTIVATION), "storage relu/workspace and the op"),
    "a result in a workspace": (lambda g: with_tensor(g, 1, storage=2), "op relu writes a result into a workspace"),
    "one name twice": (
        lambda g: replace(g, ops=(g.ops[0], Op(1, "relu", "aten.relu.default", (0,), (1,)))),
        "op name relu is used more than once",
    ),
    "one workspace twice": (
        lambda g: replace(g, ops=(g.ops[0], Op(1, "more", "aten.relu.default", (0,), (1,), workspace=2))),
        "workspace relu/workspace has 2 ops",
    ),
}


@pytest.mark.parametrize(("spoil", "sentence"), UNSOUND.values(), ids=UNSOUND)
def test_a_contradiction_is_named(spoil, sentence):
    assert check(small()) == []
    assert any(problem.startswith(sentence) for problem in check(spoil(small())))


def test_an_op_that_runs_again_leaves_alone_what_is_for_its_first_run():
    build = GraphBuilder("again")
    count = build.add_tensor("count", build.add_storage("count", 8, Kind.BUFFER), [2])
    made = build.add_tensor("made", build.add_storage("made", 8, Kind.OUTPUT), [2])
    more = build.add_tensor("count'", 0, [2])
    build.add_op("norm", "native_batch_norm", [count], [made, more], first_run_only=[0])
    build.add_op("sum", "add", [count, made], [made])
    graph = build.build([made])
    assert check(graph) == []
    assert (graph.reads, graph.writes) == (((0,), (0, 1)), ((1, 0), (1,)))
    assert (graph.reads_again, graph.writes_again) == (((), (0, 1)), ((1,), (1,)))


def test_a_graph_shows_itself_in_one_line():
    build = GraphBuilder("tiny")
    size = build.add_storage("x", 8, Kind.INPUT)
    given = build.add_tensor("x", size, [2])
    for phase in (Phase.FORWARD, Phase.FORWARD, Phase.BACKWARD):
        made = build.add_tensor("y", build.add_storage("y", 8, Kind.ACTIVATION), [2])
        build.add_op("relu", "aten.relu.default", [given], [made], attributes="$0", phase=phase)
    assert repr(build.build()) == "<Graph of tiny: 3 ops (2 forward, 1 backward), 4 tensors>"
