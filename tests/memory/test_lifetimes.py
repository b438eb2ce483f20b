import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import StowageError
from planner.graph import GraphBuilder, Kind, arrays
from planner.memory import lifetimes, reuse_chains
from tests.memory.graphs import random_graph, random_order
from tests.plan import again_by_hand


def chain():
    """x -> a -> b (may overwrite a) -> loss, with a parameter, a batch used once, and a parameter that no op uses."""
    build = GraphBuilder("chain")
    tensors = {}
    for name, size, kind in [
        ("w", 16, Kind.PARAMETER), ("x", 32, Kind.INPUT), ("idle", 8, Kind.PARAMETER), ("y", 4, Kind.INPUT),
        ("a", 64, Kind.ACTIVATION), ("b", 64, Kind.ACTIVATION), ("loss", 4, Kind.OUTPUT),
    ]:  # fmt: skip
        tensors[name] = build.add_tensor(name, build.add_storage(name, size, kind), [size])
    build.add_op("first", "mm", [tensors["x"], tensors["w"]], [tensors["a"]])
    build.add_op("second", "relu", [tensors["a"]], [tensors["b"]], overwrites=[tensors["a"]])
    build.add_op("third", "sum", [tensors["b"], tensors["w"]], [tensors["loss"]])
    graph = build.build([tensors["loss"]])
    return graph, {name: graph.tensors[tensor].storage for name, tensor in tensors.items()}


def spans(life, ids):
    return {name: (int(life.birth[s]), int(life.end[s])) for name, s in ids.items()}


def test_each_kind_lives_as_long_as_it_must():
    graph, ids = chain()
    life = lifetimes(graph)
    assert spans(life, ids) == {
        "w": (0, 3), "idle": (0, 3), "x": (0, 1), "y": (0, 0), "a": (0, 1), "b": (1, 3), "loss": (2, 3),
    }  # fmt: skip
    assert life.reused_buffer[ids["b"]] == ids["a"]
    assert list(life.live_bytes) == [16 + 8 + 32 + 64, 16 + 8 + 64, 16 + 8 + 64 + 4]
    assert life.peak_bytes == 120


def test_a_chain_of_reused_buffers_is_one_box():
    graph, ids = chain()
    chains = reuse_chains(lifetimes(graph))
    assert chains.head[ids["b"]] == ids["a"]
    assert (chains.lower[ids["a"]], chains.upper[ids["a"]]) == (0, 3)
    assert chains.lower[ids["b"]] == chains.upper[ids["b"]]


@pytest.mark.parametrize("reason", ["used later", "output", "input"])
def test_memory_is_not_taken_over_from_what_is_still_needed(reason):
    build = GraphBuilder(reason)
    old = build.add_tensor(
        "old", build.add_storage("old", 8, Kind.INPUT if reason == "input" else Kind.ACTIVATION), [8]
    )
    new = build.add_tensor("new", build.add_storage("new", 8, Kind.ACTIVATION), [8])
    last = build.add_tensor("last", build.add_storage("last", 8, Kind.OUTPUT), [8])
    if reason != "input":
        build.add_op("make", "rand", [], [old])
    build.add_op("take", "relu", [old], [new], overwrites=[old])
    build.add_op("end", "add", [new, old] if reason == "used later" else [new], [last])
    life = lifetimes(build.build([last, old] if reason == "output" else [last]))
    assert (life.reused_buffer == -1).all()


def replay(graph, order):
    """Who is alive in each slot, by looking at every slot for every storage."""
    slots = range(len(order))
    used = [{*graph.reads[op], *graph.writes[op], graph.ops[op].workspace} for op in order]
    touched = {s.id: [i for i in slots if s.id in used[i]] for s in graph.storages}
    alive = []
    for i in slots:
        here = set()
        for s in graph.storages:
            uses = touched[s.id]
            started = s.live_in or (uses and uses[0] <= i)
            needed = s.persistent or s.id in graph.output_storages or (uses and uses[-1] >= i)
            if started and needed:
                here.add(s.id)
        alive.append(here)
    return alive, touched


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_lifetimes_agree_with_looking_at_every_slot(seed, shuffle):
    graph = random_graph(seed)
    order = random_order(graph, shuffle)
    life = lifetimes(arrays(graph), order)
    alive, touched = replay(graph, order)
    created: set[int] = {s.id for s in graph.storages if s.live_in}
    for slot, op in enumerate(order):
        here = {s for s in range(len(graph.storages)) if life.birth[s] <= slot < life.end[s]}
        given_up = {int(life.reused_buffer[s]) for s in here if life.birth[s] == slot and life.reused_buffer[s] >= 0}
        assert here | given_up == alive[slot]
        assert life.live_bytes[slot] == sum(graph.storages[s].bytes for s in here)
        for reused_buffer in given_up:
            new = graph.writes[op][0]
            allowed = {graph.tensors[t].storage for t in graph.ops[op].overwrites}
            assert reused_buffer in allowed
            assert new not in created
            assert touched[reused_buffer][-1] == slot
            assert not graph.storages[reused_buffer].live_in
            assert reused_buffer not in graph.output_storages
            assert graph.storages[reused_buffer].bytes == graph.storages[new].bytes
        created.update(graph.writes[op])
    chains = reuse_chains(life)
    for s in range(len(graph.storages)):
        head = chains.head[s]
        assert head == (s if life.reused_buffer[s] < 0 else chains.head[life.reused_buffer[s]])
    boxed = np.zeros(len(order) + 1, np.int64)
    sizes = np.array([s.bytes for s in graph.storages])
    np.add.at(boxed, chains.lower, sizes)
    np.add.at(boxed, chains.upper, -sizes)
    assert (np.cumsum(boxed)[:-1] == life.live_bytes).all()


def test_an_order_in_which_an_op_runs_again_has_no_lifetimes():
    with pytest.raises(StowageError, match="each op runs once; this one has 7 entries for 5 ops"):
        lifetimes(again_by_hand.step(), again_by_hand.ORDER)
