"""Figures of a partition against the plan and the step that they draw."""

import json
from functools import cache
from math import prod
from typing import Any

import pytest
import torch

import planner
import widgets
from planner.errors import StowageError
from planner.graph import Graph
from planner.memory import step_peak
from planner.partition import (
    PartitionPlan,
    Split,
    coarsen,
    local_value,
    optimize,
    search_partition,
    worker_memory,
)
from tests.effort import combinations
from widgets.info import get_level_bytes, get_partition_splits, get_tensor_blocks, get_worker_peaks

GPT = "gpt:layers=2,hidden=32,sequence=8"


@cache
def real(workers: int = 8) -> tuple[Graph, PartitionPlan]:
    graph = planner.capture(planner.zoo.load(GPT))
    return graph, search_partition(graph, workers, time_limit=None, evaluations=1).wait(progress=False)


def figures(graph: Graph, plan: PartitionPlan, theme: Any = "light") -> dict[str, Any]:
    return {
        "splits": widgets.partition_splits(graph, plan, theme=theme),
        "levels": widgets.level_bytes(graph, plan, theme=theme),
        "memory": widgets.worker_memory(graph, plan, "40%", theme=theme),
        "blocks": widgets.tensor_blocks(graph, plan, "head.weight", theme=theme),
    }


@pytest.mark.parametrize(("workers", "theme"), combinations([1, 7, 8], ["light", "dark", "auto"]))
def test_every_figure_is_plain_data_with_its_summary(theme: str, workers: int) -> None:
    for name, figure in figures(*real(workers), theme).items():
        data = json.loads(figure.to_json())
        assert data["layout"]["meta"]["summary"].endswith("."), name
        assert "width" not in data["layout"], "a plot takes the width of its notebook"
        assert len(figure.layout.shapes) <= 1, "rectangles are bars, never shapes"


def test_each_row_of_splits_says_how_its_tensors_are_split() -> None:
    graph, plan = real()
    info = get_partition_splits(graph, plan, 100)
    assert info.others == (0, 0)
    for row in info.rows:
        for tensor in row.tensors:
            found = [
                f"dim {state.dimension}" if isinstance(state, Split) else "copies" for state in plan.tensors[tensor]
            ]
            assert row.ways == tuple(found)
    blocks = next(row for row in info.rows if row.name == "blocks.*.expand.weight")
    assert [graph.tensors[tensor].name for tensor in blocks.tensors] == [
        f"blocks.{layer}.expand.weight" for layer in range(2)
    ]
    assert blocks.bytes == 2 * 128 * 32 * 4
    few = get_partition_splits(graph, plan, 5)
    assert len(few.rows) == 5
    assert sum(row.bytes for row in few.rows) + few.others[1] == sum(row.bytes for row in info.rows)
    assert sum(len(row.tensors) for row in few.rows) + few.others[0] == sum(len(row.tensors) for row in info.rows)
    cells = next(trace for trace in widgets.partition_splits(graph, plan, most_rows=5).data if trace.name == "splits")
    assert [*cells.text] == [way for row in few.rows for way in row.ways]


def test_the_bars_of_levels_add_up_to_the_bytes_of_the_plan() -> None:
    graph, plan = real()
    info = get_level_bytes(graph, plan)
    assert info.total == plan.bytes_moved
    (bars,) = widgets.level_bytes(graph, plan).data
    assert [x * 1024 for x in bars.x] == pytest.approx(list(plan.bytes_per_level))


@pytest.mark.parametrize("workers", [7, 8, 64])
def test_every_worker_has_a_bar_of_its_memory(workers: int) -> None:
    graph, plan = real(workers)
    info, memory = get_worker_peaks(graph, plan, "1MiB"), worker_memory(graph, plan)
    assert sorted(worker for row in info.rows for worker in row.workers) == list(range(workers))
    assert (info.limit_bytes, info.single_bytes) == (2**20, step_peak(graph))
    assert len(info.rows) == workers or workers > 16
    for row in info.rows:
        assert row.peak_bytes == max(memory.peak_bytes[worker] for worker in row.workers)
    assert info.most == memory.most


@pytest.mark.parametrize("workers", [1, 6, 8, 64])
@pytest.mark.parametrize("name", ["head.weight", "blocks.0.attention.to_qkv.weight", "norm.bias", "add"])
def test_blocks_tile_the_tensor_and_every_worker_has_its_share(name: str, workers: int) -> None:
    graph, plan = real(workers)
    info = get_tensor_blocks(graph, plan, name)
    area = dict.fromkeys(range(workers), 0)
    tiled = 0
    for block in info.blocks:
        size = (block.rows[1] - block.rows[0]) * (block.columns[1] - block.columns[0])
        tiled += size
        for worker in block.workers:
            area[worker] += size
    assert tiled == prod(info.sizes)
    if info.sizes == info.whole:
        assert max(area.values()) / tiled == pytest.approx(info.share * _hidden_parts(info, graph, plan, name))
    (drawn,) = widgets.tensor_blocks(graph, plan, name).data
    assert len(drawn.x) == len(info.blocks)


def test_blocks_are_what_workers_are_given() -> None:
    graph = real()[0]
    seen = 0
    for mesh in ((2, 4), (2, 2, 2)):
        plan = PartitionPlan.of(optimize(coarsen(graph), mesh))
        for tensor in graph.tensors:
            if tensor.base >= 0 or len(tensor.shape) != 2 or not graph.storages[tensor.storage].live_in:
                continue
            info = get_tensor_blocks(graph, plan, tensor.name)
            if info.sizes != tensor.shape or info.axes != (0, 1):
                continue
            numbers = torch.arange(prod(tensor.shape)).reshape(tensor.shape)
            for worker in range(plan.workers):
                drawn = [numbers[slice(*b.rows), slice(*b.columns)] for b in info.blocks if worker in b.workers]
                given = local_value(numbers, plan, tensor.id, worker)
                assert sorted(torch.cat([each.flatten() for each in drawn]).tolist()) == sorted(
                    given.flatten().tolist()
                )
            seen += len(set(plan.tensors[tensor.id])) > 1
    assert seen > 5


def _hidden_parts(info: Any, graph: Graph, plan: PartitionPlan, name: str) -> float:
    """Into how many parts dimensions are cut that are not drawn."""
    number = next(tensor.id for tensor in graph.tensors if tensor.name == name)
    states = zip(plan.tensors[number], plan.mesh, strict=True)
    return prod(parts for state, parts in states if isinstance(state, Split) and state.dimension not in info.axes)


def test_other_steps_and_tensors_are_refused() -> None:
    graph, plan = real()
    other = planner.capture(planner.zoo.load("mlp"))
    for draw in (widgets.partition_splits, widgets.level_bytes, widgets.worker_memory):
        with pytest.raises(StowageError, match="not one of mlp"):
            draw(other, plan)
    search = search_partition(graph, 2, evaluations=1)
    for draw in (widgets.partition_splits, widgets.level_bytes, widgets.worker_memory):
        with pytest.raises(StowageError, match=r"a PartitionSearch is no partition plan; .* search.wait\(\) returns"):
            draw(graph, search)
    with pytest.raises(StowageError, match="is not a search for swaps"):
        widgets.search_history(graph, search)
    search.wait(progress=False)
    with pytest.raises(StowageError, match="a MemoryPoint is no point of a sweep over budgets"):
        widgets.pareto(graph, search.pareto(progress=False))
    with pytest.raises(StowageError, match=r"no tensor 'head.wieght' \(did you mean head.weight\?\)"):
        widgets.tensor_blocks(graph, plan, "head.wieght")
    with pytest.raises(StowageError, match="most_rows must be 1 or more"):
        widgets.partition_splits(graph, plan, most_rows=0)
    with pytest.raises(StowageError, match="memory limit"):
        widgets.worker_memory(graph, plan, "0%")
    with pytest.raises(StowageError, match='choose "auto", "light" or "dark"'):
        widgets.level_bytes(graph, plan, theme="sepia")
