"""Measured op costs: once per signature, on values that kernels accept, in memory of its own, kept on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from planner import graph as graphs
from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph, GraphBuilder, Kind
from planner.profile import machine, measure_ops
from planner.profile.segments import segments
from planner.profile.signatures import signature
from planner.program import backend_of, writes_directly
from planner.run import CpuDevice, Run, RunResult, run
from planner.step import InferenceStep, TrainStep


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tests run side by side; threads of one that wait for those of another would take most of the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def files(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


class Indirect(nn.Module):
    """Indices that are fetched from a buffer and moved on before they are used."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.Embedding(2, 6)
        self.places = nn.Embedding(10, 6)
        self.register_buffer("kind_of", torch.zeros(1, 50, dtype=torch.int64))
        self.register_buffer("place_of", torch.arange(9).repeat(6)[None])

    def forward(self, x: Tensor) -> Tensor:
        kinds = self.kind_of.gather(1, self.place_of[:, :5])
        places = torch.cat([self.place_of[:, :5], self.place_of[:, 5:10]], 1) + 1
        return (self.kinds(kinds) * x).sum() + self.places(places).sum()


def indirect() -> TrainStep:
    return TrainStep(Indirect(), torch.ones(1, 5, 6), loss=lambda model, x: model(x))


class Indexing(nn.Module):
    """Every way to index that is at hand; an index out of range raises, or worse."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(7, 12)
        self.register_buffer("places", torch.tensor([0, 3, 6]))

    def forward(self, tokens: Tensor, wide: Tensor) -> Tensor:
        x = self.rows(tokens)
        x = x.gather(0, wide[:, None].expand(5, 12)) + x.index_select(0, wide)
        x = x.index_add(0, wide, x).scatter_add(0, wide[:, None].expand(5, 12), x)
        x = x + self.rows.weight[self.places].mean() + x[wide, wide].sum()
        image = x.reshape(1, 1, 5, 12)
        pooled, where = nn.functional.max_pool2d(image, 2, 1, return_indices=True)
        spread = nn.functional.max_unpool2d(pooled.detach(), where, 2, 1)
        return nn.functional.cross_entropy(x, wide) + pooled.sum() + spread.sum() + x.topk(3, 1).values.sum()


def indexing() -> TrainStep:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        value: Tensor = model(*batch)
        return value

    return TrainStep(Indexing(), (torch.randint(0, 7, (5,)), torch.randint(0, 5, (5,))), loss=loss)


class Choosy(nn.Module):
    """Draws by computed probabilities, and shortens rows of a table where they are long: made-up values fit neither."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.rows = nn.Embedding(6, 6, max_norm=0.5)

    def forward(self, x: Tensor) -> Tensor:
        drawn = torch.multinomial(self.linear(x).detach().square() * 0.1 - x.detach(), 3)
        return self.linear(x) + self.rows(drawn).sum(1)


def choosy() -> TrainStep:
    torch.manual_seed(0)
    return TrainStep(Choosy(), -torch.ones(4, 6), loss=lambda model, x: model(x).square().mean())


def asks_for_huge_pages(memory: Tensor) -> bool:
    """Whether the system was asked to back a tensor's memory with huge pages."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, value = line.partition(" ")
        if "-" in name and not name.endswith(":"):
            begin, end = (int(each, 16) for each in name.split("-"))
            inside = begin <= memory.data_ptr() + memory.nbytes // 2 < end
        elif inside and name == "VmFlags:":
            return "hg" in value.split()
    raise AssertionError("the tensor is nowhere")


class SeenMemory(TorchDispatchMode):
    """Keeps whether the memory of what is added to in place asks for huge pages."""

    def __init__(self) -> None:
        super().__init__()
        self.huge: set[bool] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.add_.Tensor:
            self.huge.add(asks_for_huge_pages(result))
        return result


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux says what memory was asked for")
def test_ops_are_measured_in_memory_like_the_one_that_plans_run_in() -> None:
    step = TrainStep(nn.Linear(1024, 1024, bias=False), torch.ones(64, 1024), loss=lambda model, x: model(x).sum())
    graph, here = capture(step), machine("cpu")
    with SeenMemory() as seen:
        measure_ops(graph, here, cache=False)
    device = CpuDevice(16 * 2**20, 0)
    assert seen.huge == {asks_for_huge_pages(device.arena)}
    device.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: zoo.mlp(hidden=32, batch=4, optimizer="adamw"),
        lambda: zoo.wresnet(image=32, batch=2),
        lambda: zoo.rnn(hidden=16, steps=3, batch=2),
        lambda: zoo.gpt(layers=1, hidden=32, heads=2, sequence=8, dropout=0.1, optimizer="adam"),
        lambda: zoo.nasnet(cells=1, filters=4, image=33, batch=2),
        indexing,
        indirect,
        choosy,
        lambda: InferenceStep(nn.Linear(8, 8), torch.zeros(2, 8)),
        lambda: TrainStep(
            nn.Linear(8, 8), torch.zeros(2, 8), loss=lambda m, x: m(x).float().sum(), autocast=torch.bfloat16
        ),
    ],
    ids=["mlp", "wresnet", "rnn", "gpt", "nasnet", "indexing", "indirect", "choosy", "inference", "bfloat16"],
)
def test_every_op_of_a_step_has_a_cost(make: Callable[[], TrainStep]) -> None:
    graph = capture(make())
    costs = measure_ops(graph, machine("cpu"), cache=False)
    assert costs.seconds.shape == costs.workspace_bytes.shape == (len(graph.ops),)
    assert (costs.seconds > 0).all()
    # a call whose results do not land in place at once holds them besides
    for op, call, workspace in zip(graph.ops, graph.program.calls, costs.workspace_bytes, strict=True):
        assert workspace >= 0
        if not writes_directly(backend_of(graph.device), call):
            storages = {graph.tensors[tensor].storage for tensor in op.outputs if tensor in call.results}
            assert workspace >= sum(graph.storages[storage].bytes for storage in storages)


@pytest.mark.parametrize("budget", ["100%", "80%"])
def test_a_step_whose_ops_refuse_made_up_values_runs_like_any_other(budget: str) -> None:
    assert run(choosy(), budget=budget, steps=2, check=True).wait().mismatches == ()


def test_ops_that_do_the_same_share_one_measurement() -> None:
    graph = capture(zoo.rnn(layers=1, hidden=16, steps=6, batch=2))
    costs = measure_ops(graph, machine("cpu"), cache=False)
    by_signature: dict[str, set[float]] = {}
    for op, seconds in zip(graph.ops, costs.seconds, strict=True):
        by_signature.setdefault(signature(graph, op), set()).add(float(seconds))
    assert all(len(seconds) == 1 for seconds in by_signature.values())
    assert len(by_signature) < len(graph.ops) / 2


def addition(*, size: int = 4, strides: tuple[int, int] = (4, 1), attributes: str = "", update: bool = False) -> str:
    builder = GraphBuilder("one addition")
    storage = builder.add_storage("a", 1024, Kind.PARAMETER)
    a = builder.add_tensor("a", storage, (size, size), strides=strides)
    where = storage if update else builder.add_storage("b", 1024, Kind.ACTIVATION)
    b = builder.add_tensor("b", where, (size, size))
    builder.add_op("addition", "aten.add.Tensor", [a], [b], attributes=attributes)
    graph = builder.build()
    return signature(graph, graph.ops[0])


def test_a_signature_tells_shapes_strides_arguments_and_in_place_updates_apart() -> None:
    different = [
        addition(),
        addition(size=3),
        addition(strides=(1, 4)),
        addition(attributes="$0, 2.0"),
        addition(update=True),
    ]
    assert len(set(different)) == len(different)
    assert addition() == addition()


@given(limit=st.integers(1, 400_000))
@settings(max_examples=30, deadline=None)
def test_a_stretch_never_lets_two_living_storages_overlap(limit: int) -> None:
    graph = _step_with_takeovers()
    last: dict[int, int] = {}
    for op in graph.ops:
        for storage in (*graph.reads[op.id], *graph.writes[op.id]):
            last[storage] = op.id
    ops: list[int] = []
    for segment in segments(graph, limit):
        used = {s for op in segment.ops for s in (*graph.reads[op], *graph.writes[op])}
        assert set(segment.offsets) == used
        assert segment.bytes <= limit or len(segment.ops) == 1
        ops += segment.ops
        contents: dict[int, int] = {}  # which storage's value is at each byte of the slab
        for storage in segment.live_in:
            _write(contents, segment.offsets[storage], graph.storages[storage].bytes, storage)
        for op in segment.ops:
            for storage in graph.reads[op]:
                start, size = segment.offsets[storage], graph.storages[storage].bytes
                assert start + size <= segment.bytes
                assert all(contents[byte] == storage for byte in range(start, start + size, 64))
            for storage in graph.writes[op]:
                _write(contents, segment.offsets[storage], graph.storages[storage].bytes, storage)
        for storage in segment.live_in:
            start = segment.offsets[storage]
            whole = all(contents[byte] == storage for byte in range(start, start + graph.storages[storage].bytes, 64))
            assert whole, "what a segment starts from must still be there when it starts again"
    assert ops == [op.id for op in graph.ops]


def _write(contents: dict[int, int], start: int, size: int, storage: int) -> None:
    for byte in range(start, start + size, 64):
        contents[byte] = storage


_GRAPHS: list[Graph] = []


def _step_with_takeovers() -> Graph:
    if not _GRAPHS:
        _GRAPHS.append(capture(zoo.mlp(layers=3, hidden=64, batch=16, optimizer="momentum")))
        assert any(op.overwrites for op in _GRAPHS[0].ops)
    return _GRAPHS[0]


def test_temporary_memory_is_the_most_held_at_once() -> None:
    def call() -> None:
        first = torch.ones(1000)
        second = torch.ones(3000)
        del first, second
        torch.ones(2000)

    scratch_bytes = backend_of("cpu").scratch_bytes
    assert scratch_bytes(call) == 4 * 4000
    out = torch.empty(100)
    assert scratch_bytes(lambda: torch.add(out, 1.0, out=out)) in range(0, 64)


def test_measuring_leaves_the_random_numbers_alone() -> None:
    graph = capture(zoo.gpt(layers=1, hidden=32, heads=2, sequence=8, dropout=0.5))
    torch.manual_seed(3)
    before = torch.get_rng_state()
    measure_ops(graph, machine("cpu"), cache=False)
    assert torch.equal(before, torch.get_rng_state())


def test_what_was_measured_is_kept(cache: Path) -> None:
    graph = capture(zoo.mlp(hidden=32))
    told: list[float] = []
    first = measure_ops(graph, machine("cpu"), progress=lambda share, what: told.append(share))
    assert told
    assert all(0 <= share <= 1 for share in told)
    assert told == sorted(told)
    told.clear()
    second = measure_ops(graph, machine("cpu"), progress=lambda share, what: told.append(share))
    assert not told
    assert np.array_equal(first.seconds, second.seconds)
    assert np.array_equal(first.workspace_bytes, second.workspace_bytes)
    assert len(files(cache)) == 1


def rescale(cache: Path, factor: float) -> dict[str, list[float]]:
    """Change the op times on disk by a factor, as if the computer had been as much slower; returns the new ones."""
    (path,) = files(cache)
    data = json.loads(path.read_text())
    data["costs"] = {key: [seconds * factor, scratch] for key, (seconds, scratch) in data["costs"].items()}
    path.write_text(json.dumps(data))
    costs: dict[str, list[float]] = data["costs"]
    return costs


def test_what_was_measured_while_the_computer_was_busy_is_measured_again_after_a_run(cache: Path) -> None:
    def ran() -> RunResult:  # in so many steps that the middle one is none in which the computer stopped
        return run(zoo.mlp(hidden=32), budget="100%", steps=9, check=False).wait()

    ran()
    busy = rescale(cache, 1000)
    result = ran()
    assert result.measured_busy
    assert json.loads(files(cache)[0].read_text())["costs"] == {}
    again = ran()
    assert again.predicted_step_seconds < result.predicted_step_seconds / 10
    assert json.loads(files(cache)[0].read_text())["costs"].keys() == busy.keys()


def test_what_was_measured_stays_where_a_run_is_slower(cache: Path) -> None:
    step = zoo.mlp(hidden=32)
    run(step, budget="100%", steps=1, check=False).wait()
    quiet = rescale(cache, 1e-3)
    assert not run(zoo.mlp(hidden=32), budget="100%", steps=3, check=False).wait().measured_busy
    assert json.loads(files(cache)[0].read_text())["costs"] == quiet


def test_steps_of_smaller_batches_say_nothing_about_what_was_measured(cache: Path) -> None:
    def ran() -> Run:
        running = run(zoo.mlp(hidden=32, batch=8), budget="100%", steps=0, check=False)
        running.wait()
        return running

    ran()
    busy = rescale(cache, 1000)
    running = ran()
    whole = zoo.mlp(hidden=32, batch=4).materialize().batch
    assert len(list(running.steps([whole] * 3))) == 3
    assert running.result is not None
    assert not running.result.measured_busy
    assert json.loads(files(cache)[0].read_text())["costs"].items() >= busy.items()


def test_a_longer_model_measures_only_what_is_new(cache: Path) -> None:
    measure_ops(capture(zoo.mlp(layers=2, hidden=32)), machine("cpu"))
    kept = json.loads(files(cache)[0].read_text())["costs"]
    measure_ops(capture(zoo.mlp(layers=5, hidden=32)), machine("cpu"))
    now = json.loads(files(cache)[0].read_text())["costs"]
    assert {key: now[key] for key in kept} == kept


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 99}', '{"version": 1, "costs": {"a": [-1, "b"]}}'])
def test_a_damaged_cache_is_measured_anew(cache: Path, damage: str) -> None:
    graph = capture(zoo.mlp(layers=1, hidden=16))
    measure_ops(graph, machine("cpu"))
    (path,) = files(cache)
    path.write_text(damage)
    assert (measure_ops(graph, machine("cpu")).seconds > 0).all()
    assert json.loads(path.read_text())["costs"]


def test_a_cache_that_cannot_be_written_is_said_in_one_sentence(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    graph = capture(zoo.mlp(layers=1, hidden=16))
    with pytest.raises(StowageError, match=r"cannot keep measured op times .* XDG_CACHE_HOME") as caught:
        measure_ops(graph, machine("cpu"))
    assert "\n" not in str(caught.value)
    assert cache.read_text() == "a file where the folder should be"
    assert measure_ops(graph, machine("cpu"), cache=False).seconds.sum() > 0


def test_only_a_captured_graph_can_be_measured_and_only_on_what_is_attached() -> None:
    graph = capture(zoo.mlp(layers=1, hidden=16))
    read = graphs.from_json(graphs.to_json(graph))
    with pytest.raises(StowageError, match="capture its model again"):
        measure_ops(read, machine("cpu"))
    with pytest.raises(StowageError, match="choose machine cpu"):
        measure_ops(graph, machine("v100-16gb"))
