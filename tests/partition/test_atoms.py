"""Views rename the atoms of what they view; a split of a view is a split of the tensor that was made."""

import pytest
import torch

from planner.capture import capture
from planner.partition import Replicated, Split, atoms, chunk, splittable_ops
from planner.partition.strategy import held
from planner.partition.verify.values import mask_of
from planner.step import AdamW, TrainStep
from planner.zoo import load
from tests.capture.test_transformers import llama, text


def found_in(graph):
    return graph, atoms(graph, splittable_ops(graph))


@pytest.fixture(scope="module")
def recurrent():
    return found_in(capture(load("brnn:steps=2,hidden=24,batch=4")))


@pytest.fixture(scope="module")
def transformer():
    return found_in(capture(load("gpt:layers=1,hidden=32,sequence=8")))


@pytest.fixture(scope="module")
def grouped():
    return found_in(capture(TrainStep(llama, text, optimizer=AdamW(1e-3))))


def sizes(pair, name, dimension):
    graph, found = pair
    tensor = next(tensor for tensor in graph.tensors if tensor.name == name and tensor.base < 0)
    return [split.size for split in found.splits(tensor.id, dimension)]


def test_the_rows_of_a_recurrent_weight_are_gates_and_channels(recurrent):
    graph, _ = recurrent
    name = next(tensor.name for tensor in graph.tensors if tensor.name.endswith("from_input.weight"))
    rows = next(tensor.shape[0] for tensor in graph.tensors if tensor.name == name)
    assert sizes(recurrent, name, 0) == [4, rows // 4]


def test_the_rows_of_an_attention_weight_are_kinds_heads_and_channels(transformer):
    assert sizes(transformer, "blocks.0.attention.to_qkv.weight", 0) == [3, 4, 8]
    assert sizes(transformer, "blocks.0.attention.to_qkv.bias", 0) == [3, 4, 8]
    assert sizes(transformer, "blocks.0.attention.to_out.weight", 1) == [4, 8]


def test_query_heads_that_share_keys_are_a_factor_of_their_own(grouped):
    layer = "model.layers.0.self_attn"
    assert sizes(grouped, f"{layer}.q_proj.weight", 0)[:2] == [2, 2]  # 2 heads of keys, each for 2 of queries
    assert sizes(grouped, f"{layer}.k_proj.weight", 0)[0] == 2


def elements(tensor, storage_elements):
    """Where each element of a tensor is in its storage."""
    return torch.arange(storage_elements).as_strided(tensor.shape, tensor.strides, tensor.offset)


@pytest.mark.parametrize("model", ["recurrent", "transformer", "grouped"])
def test_a_chunk_of_a_view_is_in_the_same_worker_s_chunk_of_what_it_views(model, request):
    graph, found = request.getfixturevalue(model)
    compared = 0
    for tensor in graph.tensors:
        root = graph.tensors[found.tensors[tensor.id].root]
        if tensor.base < 0 or root.storage != tensor.storage or 0 in tensor.shape:
            continue
        size = graph.storages[tensor.storage].bytes // getattr(torch, tensor.dtype).itemsize
        ours, theirs = elements(tensor, size), elements(root, size)
        for dimension in range(len(tensor.shape)):
            for split in found.splits(tensor.id, dimension):
                below = found.to_root(tensor.id, split)
                if not isinstance(below, Split):
                    continue
                for worker in range(workers := min(split.size, 3)):
                    mine = ours[mask_of(held(tensor.shape, split, workers, worker), tensor.shape)]
                    there = theirs[mask_of(held(root.shape, below, workers, worker), root.shape)]
                    assert torch.isin(mine, there).all(), (tensor, split, below)
                    if ours.numel() == theirs.numel():
                        assert mine.numel() == there.numel(), (tensor, split, below)
                    compared += 1
    assert compared > 50


def test_atoms_make_up_their_dimension(transformer):
    graph, found = transformer
    for tensor in graph.tensors:
        for dimension, size in enumerate(tensor.shape):
            inner = 1
            for split in reversed(found.splits(tensor.id, dimension)):
                assert (split.inner, split.outer * split.size * split.inner) == (inner, size)
                inner *= split.size
                assert chunk(split.size, split.size, 0) == (0, 1)


def test_what_a_view_repeats_everyone_needs(transformer):
    graph, found = transformer
    repeated = [tensor for tensor in graph.tensors if tensor.view == "aten.expand.default" and 0 in tensor.strides]
    for tensor in repeated:
        dimension = tensor.strides.index(0)
        split = Split(dimension, 1, tensor.shape[dimension], 1)
        assert found.to_root(tensor.id, split) == Replicated()
