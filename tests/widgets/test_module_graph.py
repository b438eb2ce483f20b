"""The folded model: what is folded, opened and linked, and whose bytes are whose."""

from graphlib import TopologicalSorter

import pytest
import torch
from torch import Tensor, nn

from planner.capture import capture
from planner.graph import Phase
from planner.memory import lifetimes
from planner.step import TrainStep
from tests.widgets.steps import MIB, by_hand, real
from widgets.info import Box, ModuleGraph, get_module_graph

RESNET = "wresnet:depth=50,batch=2,image=32"
SPECS = [RESNET, "gpt:optimizer=adam", "rnn:layers=2,hidden=64,steps=8,batch=32", "mlp"]


def parts(info: ModuleGraph, parent: int) -> list[Box]:
    return [box for box in info.boxes if box.parent == parent]


def alone(info: ModuleGraph) -> bool:
    """Whether the whole model is one module."""
    return sum(bool(box.paths) for box in parts(info, -1)) == 1


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("most", [5, 20, 60])
def test_the_boxes_hold_the_peak_of_the_step(spec: str, most: int) -> None:
    graph = real(spec)[1]
    info = get_module_graph(graph, most)
    assert info.peak_bytes == lifetimes(graph).live_bytes.max()
    assert sum(box.total_bytes for box in parts(info, -1)) + info.elsewhere_bytes == info.peak_bytes
    assert info.elsewhere_bytes == 0
    for number, box in enumerate(info.boxes):
        assert box.opened == bool(parts(info, number))
        if box.opened:
            assert sum(part.total_bytes for part in parts(info, number)) <= box.total_bytes


@pytest.mark.parametrize("spec", SPECS)
def test_no_more_boxes_than_asked_for_beyond_the_top_level(spec: str) -> None:
    graph = real(spec)[1]
    for most in (1, 8, 12, 20, 40, 60):
        info = get_module_graph(graph, most)
        closed = sum(not box.opened for box in info.boxes) - 1  # the batch
        assert closed <= max(most, 60 if alone(info) else len(parts(info, -1)) - 1)


class Inside(nn.Module):
    """A module around one other with many different ones inside."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        layers = [layer for _ in range(blocks) for layer in (nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())]
        self.outer = nn.Sequential(nn.Sequential(*layers))

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(x)


def drawn(blocks: int) -> list[Box]:
    step = TrainStep(Inside(blocks), torch.ones(2, 4), loss=lambda model, x: model(x).sum())
    return [box for box in get_module_graph(capture(step), 20).boxes if box.paths and not box.opened]


def test_one_module_around_others_is_opened_as_long_as_it_can_be_read() -> None:
    assert [box.paths for box in drawn(14)] == [(f"outer.0.{layer}",) for layer in range(42)]
    assert [box.paths for box in drawn(40)] == [("outer.0",)]


def test_identical_blocks_are_folded_and_others_are_not() -> None:
    boxes = {box.paths: box for box in get_module_graph(real(RESNET)[1], 20).boxes}
    for stage, blocks in enumerate((3, 4, 6, 3)):
        folded = boxes[tuple(f"stages.{stage}.{block}" for block in range(1, blocks))]
        assert (folded.count, folded.label) == (blocks - 1, f"1 … {blocks - 1}")
        assert boxes[(f"stages.{stage}.0",)].count == 1


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("most", [5, 60])
def test_every_forward_op_is_in_one_closed_box(spec: str, most: int) -> None:
    graph = real(spec)[1]
    info = get_module_graph(graph, most)
    closed = [box for box in info.boxes if not box.opened]
    modules = [path for box in closed for path in dict.fromkeys(box.paths)]
    forward = [op for op in graph.ops if op.phase is Phase.FORWARD]
    own = sum(box.ops for box in closed if not box.paths)
    inside = {op.id for op in forward if any(op.module == path or op.module.startswith(f"{path}.") for path in modules)}
    assert len(inside) + own == len(forward)


def test_edges_of_the_step_by_hand() -> None:
    info = get_module_graph(by_hand())
    assert [box.label for box in info.boxes] == ["a", "b", "loss", "batch"]
    edges = [(info.boxes[edge.source].label, info.boxes[edge.target].label, edge.bytes / MIB) for edge in info.edges]
    assert edges == [("a", "b", 8), ("b", "loss", 3), ("batch", "a", 1)]
    assert [box.total_bytes / MIB for box in info.boxes] == [12, 10, 0, 0]
    assert info.summary == "With nothing swapped the step peaks at 22.0 MiB; of 4 boxes the largest, a, holds 55 %."


@pytest.mark.parametrize("spec", SPECS)
def test_edges_join_closed_boxes_and_every_box_is_reached(spec: str) -> None:
    info = get_module_graph(real(spec)[1], 60)
    for edge in info.edges:
        assert edge.source != edge.target
        assert not info.boxes[edge.source].opened
        assert not info.boxes[edge.target].opened
        assert edge.bytes > 0
    linked = {end for edge in info.edges for end in (edge.source, edge.target)}
    assert linked == {number for number, box in enumerate(info.boxes) if not box.opened}


def test_shortcuts_and_recurrence_are_seen() -> None:
    resnet = get_module_graph(real(RESNET)[1], 60)
    into_add = [edge for edge in resnet.edges if resnet.boxes[edge.target].label == "add"]
    assert into_add
    assert not any(edge.back for edge in resnet.edges)
    rnn = get_module_graph(real(SPECS[2])[1], 60)
    assert any(edge.back for edge in rnn.edges)


def test_an_activation_that_is_called_again_is_drawn_again() -> None:
    info = get_module_graph(real(RESNET)[1], 60)
    opened = next(number for number, box in enumerate(info.boxes) if box.opened and box.kind == "Bottleneck")
    labels = [box.label for box in parts(info, opened)]
    assert labels.count("relu") == 3
    assert labels[-1] == "relu"


@pytest.mark.parametrize("spec", [*SPECS, "nasnet:cells=1,filters=24,image=64"])
def test_without_the_edges_that_go_back_there_is_no_circle(spec: str) -> None:
    info = get_module_graph(real(spec)[1], 60)
    forward = [edge for edge in info.edges if not edge.back]
    TopologicalSorter(
        {box: {edge.source for edge in forward if edge.target == box} for box in range(len(info.boxes))}
    ).prepare()  # raises where there is a circle
    assert len(forward) > len(info.edges) / 2
