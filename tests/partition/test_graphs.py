"""Descriptions of the ops of captured steps, read from the graph alone."""

import pytest
import torch

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import from_json, to_json
from planner.partition import Split, coverage, splittable_ops
from planner.partition.attributes import read_arguments
from planner.partition.tdl import Operand
from planner.program import ScalarRef, TensorRef
from planner.step import AdamW, TrainStep
from planner.zoo import load
from tests.capture.test_transformers import CASES

MODELS = ("mlp:optimizer=adamw", "wresnet:depth=50,batch=2,image=32", "rnn:steps=2", "gpt:layers=1,optimizer=adam")


@pytest.fixture(scope="module")
def graphs():
    return {model: capture(load(model)) for model in MODELS}


def test_arguments_are_read_back_from_their_text(graphs):
    for graph in graphs.values():
        for op, call in zip(graph.ops, graph.program.calls, strict=True):
            inputs = [Operand(f"input {place}", ()) for place in range(len(op.inputs))]
            outputs = [Operand(f"output {place}", ()) for place in range(len(op.outputs))]
            tensors = dict(zip(op.outputs, outputs, strict=True)) | dict(zip(op.inputs, inputs, strict=True))
            args, kwargs = read_arguments(op.attributes, inputs, outputs)
            assert args == [plain(value, tensors) for value in call.args], op
            assert kwargs == {name: plain(value, tensors) for name, value in call.kwargs.items()}, op


def plain(value, tensors):
    """An argument as text keeps it."""
    if isinstance(value, TensorRef):
        return tensors[value.tensor]
    if isinstance(value, ScalarRef):
        return value.name.rpartition("/")[2]
    if isinstance(value, tuple | list):
        return [plain(item, tensors) for item in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def test_the_zoo_is_covered(graphs):
    for graph in graphs.values():
        found = coverage(graph)
        assert found.percent("whole") == (0, 0)
        assert sum(found.percent(kind)[0] for kind in ("described", "opaque", "whole")) == pytest.approx(100)
        assert {entry.target.split(".")[1] for entry in found.operators if entry.kind == "opaque"} <= {
            "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward",
        }  # fmt: skip


def test_models_of_transformers_are_covered():
    ops = size = whole = whole_size = 0
    for name in ("llama", "t5", "mixtral"):
        graph = capture(TrainStep(*CASES[name], optimizer=AdamW(1e-3)))
        for op, splittable in zip(graph.ops, splittable_ops(graph), strict=True):
            ops, size = ops + 1, size + op.bytes
            if not splittable.described:
                whole, whole_size = whole + 1, whole_size + op.bytes
    assert whole / ops < 0.02
    assert whole_size / size < 0.01


def test_states_are_parallel_to_the_tensors_of_an_op(graphs):
    for graph in graphs.values():
        for op, splittable in zip(graph.ops, splittable_ops(graph), strict=True):
            for strategy in splittable.strategies:
                states = [*strategy.inputs, *splittable.output_states(strategy)]
                tensors = [*op.inputs, *op.outputs]
                for state, tensor in zip(states, tensors, strict=True):
                    if isinstance(state, Split):
                        size = graph.tensors[tensor].shape[state.dimension]
                        assert state.outer * state.size * state.inner == size


def test_a_graph_from_a_file_has_the_same_strategies(graphs):
    graph = graphs["gpt:layers=1,optimizer=adam"]
    again = splittable_ops(from_json(to_json(graph)))
    for ours, theirs in zip(splittable_ops(graph), again, strict=True):
        assert [(s.name, s.inputs, s.outputs) for s in ours.strategies] == [
            (s.name, s.inputs, s.outputs) for s in theirs.strategies
        ]


def test_random_numbers_are_drawn_by_every_worker_alike():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
    step = TrainStep(model, torch.ones(2, 4), loss=lambda model, batch: model(batch).sum())
    graph = capture(step)
    (drawn,) = [s for op, s in zip(graph.ops, splittable_ops(graph), strict=True) if op.random]
    assert not drawn.described
    assert drawn.strategies == ()


@pytest.mark.parametrize("text", ["$0, [1, 2", "$0, 1]", "alpha=1, $0", "$3"])
def test_arguments_that_cannot_be_read_are_refused(text):
    with pytest.raises(StowageError):
        read_arguments(text, [Operand("input 0", ())], [])
