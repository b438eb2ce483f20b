"""What a model is divided into for the list of what holds memory, at its own peak and with few storages present."""

from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph, Kind, Op, Storage, Tensor, storage_lines
from planner.units import bytes_label
from tests.widgets.steps import by_hand
from widgets import figures
from widgets.info import GROUP_OF, Group, get_peak_holders
from widgets.info.holder_parts import GroupBy, get_holder_parts
from widgets.info.holders import get_holders
from widgets.info.residency_spans import captured_stays

MODELS = (
    "gpt:layers=12,hidden=64,sequence=64", "wresnet:depth=50,batch=4,image=64", "inception:batch=2,image=75",
    "rnn:layers=2,hidden=64,steps=8,batch=32",
)  # fmt: skip


@cache
def step(spec: str) -> Graph:
    return capture(zoo.load(spec), progress=False)


def at_peak(graph: Graph) -> list[int]:
    stays = captured_stays(graph)
    return sorted({int(stays.storage[stay]) for stay in stays.present(stays.fullest)})


@pytest.mark.parametrize("spec", MODELS)
def test_every_storage_is_in_exactly_one_part_and_a_part_is_of_one_group(spec: str) -> None:
    graph = step(spec)
    parts = get_holder_parts(graph, at_peak(graph))
    assert Counter(storage for part in parts for storage in part.storages) == Counter(range(len(graph.storages)))
    kinds = {"activations": {"activation", "output"}, "parameters": {"parameter", "buffer"}}
    for part in parts:
        found = {graph.storages[storage].kind.value for storage in part.storages}
        assert found <= kinds.get(part.group.value, {part.group.value.replace(" ", "_").removesuffix("s")})


@pytest.mark.parametrize("by", ["module", "line", "kind"])
@pytest.mark.parametrize("spec", MODELS)
def test_no_part_holds_more_than_a_quarter_of_the_peak_but_a_single_tensor(spec: str, by: GroupBy) -> None:
    graph = step(spec)
    stays = captured_stays(graph)
    rows = get_holders(graph, stays, stays.fullest, by)
    peak = sum(graph.storages[storage].bytes for storage in at_peak(graph))
    assert sum(row.bytes for row in rows) == peak
    parts = [part for row in rows for part in row.parts or (row,)]
    assert [part for part in parts if part.bytes > 0.25 * peak and part.storages > 1] == []
    assert len({(row.name, row.group) for row in rows}) == len(rows)
    assert len(parts) >= 4


def test_by_line_there_is_a_row_for_each_line_and_below_one_with_more_than_a_quarter_are_its_parts() -> None:
    graph = step(MODELS[0])
    lines, held = storage_lines(graph), Counter[str]()
    for storage in at_peak(graph):
        held[lines[storage]] += graph.storages[storage].bytes
    info = get_peak_holders(graph, by="line")
    assert {row.name: row.bytes for row in info.holders} == held
    unfolded = [row for row in info.holders if row.parts]
    assert unfolded == [row for row in info.holders if 4 * row.bytes > info.peak_bytes and row.storages > 1] != []
    assert all(sum(part.bytes for part in row.parts) == row.bytes for row in unfolded)
    line, size = held.most_common(1)[0]
    assert info.summary.startswith(f"{len(held)} lines hold the peak of ")
    assert f"; {line} holds most, {bytes_label(size)} or " in info.summary
    labels = [note.text for note in figures.holders(graph, by="line").layout.annotations]
    assert sum(line in label for label in labels) == 2  # in the title, and once in the rows


@pytest.mark.parametrize("spec", MODELS)
def test_by_line_a_part_is_of_one_line_and_by_kind_a_small_kind_is_one_part(spec: str) -> None:
    graph = step(spec)
    present = at_peak(graph)
    lines = storage_lines(graph)
    for part in get_holder_parts(graph, present, "line"):
        assert {lines[storage] for storage in part.storages} == {part.line}
        assert part.name.startswith(part.line)
    held = Counter[Group]()
    for storage in present:
        held[GROUP_OF[graph.storages[storage].kind]] += graph.storages[storage].bytes
    parts = Counter(part.group for part in get_holder_parts(graph, present, "kind"))
    small = {group for group, size in held.items() if 4 * size <= held.total()}
    assert small
    assert {parts[group] for group in small} == {1}


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.sampled_from(["module", "line", "kind"]))
def test_any_sizes_unfold_down_to_single_tensors(sizes: list[int], by: GroupBy) -> None:
    graph = chain(sizes)
    rows = get_holder_parts(graph, range(len(sizes)), by)
    held = [[sizes[storage] for storage in part.storages] for part in rows]
    assert sum(map(sum, held)) == sum(sizes)
    assert [part for part in held if 4 * sum(part) > sum(sizes) and len(part) > 1] == []


def chain(sizes: list[int]) -> Graph:
    """Storages of these sizes of one kind, module and line."""
    tensors = [Tensor(k, f"t{k}", k, (size,), (1,), 0, "uint8") for k, size in enumerate(sizes)]
    ops = [Op(k, f"op{k}", "aten.relu.default", (), (k,), source="model.py:1") for k in range(len(sizes))]
    storages = [Storage(k, f"t{k}", size, Kind.ACTIVATION) for k, size in enumerate(sizes)]
    return Graph("chain", tuple(ops), tuple(tensors), tuple(storages))


def test_a_figure_has_a_row_for_each_of_the_largest_and_refuses_another_grouping() -> None:
    graph = step(MODELS[0])
    drawn = figures.holders(graph, by="line")
    assert drawn.layout.meta["summary"] == get_peak_holders(graph, by="line").summary
    first = get_peak_holders(graph, by="line").holders[0]
    assert list(drawn.data[0].x)[: 1 + len(first.parts)] == [first.bytes, *(part.bytes for part in first.parts)]
    with pytest.raises(StowageError, match='by must be "module", "line" or "kind", got \'layer\''):
        figures.holders(graph, by="layer")  # type: ignore[arg-type]


def test_layers_that_are_alike_are_one_part_of_each_place_in_them() -> None:
    graph = step(MODELS[0])
    names = {part.name for part in get_holder_parts(graph, at_peak(graph)) if part.group is Group.ACTIVATION}
    assert {"blocks.0 … 11.attention", "blocks.0 … 11/gelu", "top level"} <= names


def test_tensors_of_one_name_are_a_range_of_what_tells_them_apart() -> None:
    graph = step("mlp:layers=6,optimizer=adam")
    names = [part.name for part in get_holder_parts(graph, [storage.id for storage in graph.storages])]
    assert "layers.0 … 5.weight/exp_avg" in names


def test_a_moment_with_nothing_or_with_one_tensor_is_divided_too() -> None:
    graph = by_hand()
    for present in ([], [0]):
        parts = get_holder_parts(graph, present)
        assert sorted(storage for part in parts for storage in part.storages) == list(range(len(graph.storages)))
