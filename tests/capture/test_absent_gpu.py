"""A step captured for a GPU that is not attached: which kernels it has there, and that it is captured again to run."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import dropout, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint
from transformers import BertConfig, BertForMaskedLM

import planner
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph, fingerprint, from_json, to_json
from planner.machine import PRESETS, approximation
from planner.memory import step_peak
from planner.run import run
from planner.step import TrainStep
from tests.run.steps import branches, mlp

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="captures without a GPU where none is attached")

FLASH = "aten._scaled_dot_product_flash_attention"
EFFICIENT = "aten._scaled_dot_product_efficient_attention"
PRODUCTS = "aten._safe_softmax"


class Attended(nn.Module):
    """Attention of given heads, with what is passed to it."""

    def __init__(self, width: int, heads: int, key_heads: int, **options: Any) -> None:
        super().__init__()
        self.width, self.heads, self.key_heads, self.options = width, heads, key_heads, options
        self.queries, self.keys = nn.Linear(24, heads * width), nn.Linear(24, 2 * key_heads * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, _ = x.shape
        query = self.queries(x).view(rows, length, self.heads, self.width).transpose(1, 2)
        key, value = self.keys(x).view(rows, length, 2, self.key_heads, self.width).permute(2, 0, 3, 1, 4)
        options = dict(self.options)
        if options.pop("masked", False):
            options["attn_mask"] = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        return scaled_dot_product_attention(query, key, value, **options)


def attended(
    dtype: torch.dtype | None, width: int = 16, heads: int = 4, key_heads: int = 4, length: int = 12, **options: Any
) -> TrainStep:
    return TrainStep(
        lambda: Attended(width, heads, key_heads, **options), lambda: torch.randn(2, length, 24),
        loss=lambda model, x: model(x).square().mean(), autocast=dtype,
    )  # fmt: skip


def operators(graph: Graph) -> set[str]:
    return {op.target.removesuffix(".default") for op in graph.ops}


HALF = torch.bfloat16


@pytest.mark.parametrize(
    ("dtype", "options", "kernel"),
    [
        (HALF, {}, FLASH),
        (torch.float16, {"is_causal": True, "dropout_p": 0.1}, FLASH),
        (HALF, {"width": 20}, FLASH),  # filled up to 24
        (HALF, {"width": 256}, FLASH),
        (HALF, {"width": 264}, EFFICIENT),
        (HALF, {"key_heads": 2, "enable_gqa": True}, FLASH),
        (HALF, {"masked": True}, EFFICIENT),
        (HALF, {"masked": True, "width": 20}, PRODUCTS),
        (None, {}, EFFICIENT),
        (None, {"dropout_p": 0.1}, EFFICIENT),
        (None, {"masked": True}, EFFICIENT),
        (None, {"width": 20}, EFFICIENT),
        (None, {"width": 18}, PRODUCTS),
        (None, {"key_heads": 2, "enable_gqa": True}, PRODUCTS),
    ],
)
def test_attention_is_what_pytorch_takes_on_a_gpu(dtype: torch.dtype | None, options: Any, kernel: str) -> None:
    graph = capture(attended(dtype, **options), device="cuda", progress=False)
    found = operators(graph) & {FLASH, EFFICIENT, PRODUCTS}
    assert found == {kernel}
    if kernel is not PRODUCTS:
        assert f"{kernel}_backward" in operators(graph)
    # a mask in rows of twelve is filled up to sixteen, and no mask as large as the scores is kept without one
    padded = any(tensor.shape == (12, 16) for tensor in graph.tensors)
    assert padded is (kernel is EFFICIENT and "masked" in options)


@pytest.mark.parametrize(
    ("allowed", "kernel"),
    [(SDPBackend.MATH, PRODUCTS), (SDPBackend.EFFICIENT_ATTENTION, EFFICIENT), (SDPBackend.FLASH_ATTENTION, FLASH)],
)
def test_attention_is_of_the_kernels_that_the_step_allows(allowed: SDPBackend, kernel: str) -> None:
    with sdpa_kernel(allowed):
        assert kernel in operators(capture(attended(HALF), device="cuda", progress=False))


def test_fused_attention_keeps_no_scores() -> None:
    """Its memory grows with the length of a sequence, and not with the square of it."""

    def kept(device: str, length: int) -> int:
        return step_peak(capture(attended(None, length=length, dropout_p=0.1), device=device, progress=False))

    assert kept("cuda", 256) < 2.1 * kept("cuda", 128)
    assert kept("cpu", 256) > 3 * kept("cpu", 128)


def test_what_the_step_computes_of_its_batch_may_be_read() -> None:
    """As models of transformers read whether a mask hides anything."""

    def loss(model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        places = torch.arange(16, device=batch["x"].device)
        hidden = torch.zeros(16, device=batch["x"].device)
        x = model(batch["x"])
        if (places[1:] - places[:-1] == 1).all() and bool(batch["mask"].all()):
            return x.square().mean()
        return (x + hidden).mean()

    step = TrainStep(nn.Linear(16, 16), {"x": torch.randn(4, 16), "mask": torch.ones(4)}, loss=loss)
    graph = capture(step, device="cuda", progress=False)
    assert "aten.pow.Tensor_Scalar" in operators(graph)
    made = [op.attributes for op in graph.ops if "device=" in op.attributes]
    assert all("device=cuda:0" in text for text in made)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("dtype", [HALF, None])
def test_attention_in_a_checkpoint_drops_what_it_dropped_before(dtype: torch.dtype | None, reentrant: bool) -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = checkpoint(model, x.clone().requires_grad_(), use_reentrant=reentrant)
        return found.square().mean()

    step = attended(dtype, dropout_p=0.1)
    step.loss = loss
    graph = capture(step, device="cuda", progress=False)
    first, again = [op for op in graph.ops if op.target.removesuffix(".default") in (FLASH, EFFICIENT)]
    assert (first.draws_as, again.draws_as) == (-1, first.id)


def test_what_differentiates_a_norm_twice_is_refused() -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = model(x.requires_grad_())
        [slope] = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        return slope.square().mean()

    step = TrainStep(lambda: nn.RMSNorm(64), lambda: torch.randn(8, 64), loss=loss)
    with pytest.raises(StowageError, match="capture it for the CPU"):
        capture(step, device="cuda", progress=False)


@pytest.mark.parametrize(
    ("dtype", "options", "kernel", "is_split"),
    [
        (HALF, {}, FLASH, True),
        (None, {"masked": True}, EFFICIENT, True),
        (HALF, {"dropout_p": 0.1}, FLASH, False),  # what it drops depends on where it is in the whole
        (None, {"dropout_p": 0.1}, EFFICIENT, False),
    ],
)
def test_attention_is_split_over_workers_unless_it_drops(
    dtype: torch.dtype | None, options: Any, kernel: str, is_split: bool
) -> None:
    graph = capture(attended(dtype, **options), device="cuda", progress=False)
    parts = planner.search_partition(graph, 2).wait(seconds=20, progress=False)
    found = {parts.ops[op.id][0] is not None for op in graph.ops if op.target.startswith(kernel)}
    assert found == {is_split}
    worker = planner.partition.worker_graph(parts, graph, 1, progress=False)
    for op in worker.ops:
        if op.target == f"{EFFICIENT}.default" and "masked" in options:  # the kernel reads rows that are aligned alone
            *rows, column = worker.tensors[op.inputs[3]].strides
            assert column == 1
            assert all(stride % 8 == 0 for stride in rows)


def test_norms_and_dropout_are_one_kernel() -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return dropout(model(x), 0.1).square().mean()

    step = TrainStep(lambda: nn.RMSNorm(64), lambda: torch.randn(8, 64), loss=loss)
    there = operators(capture(step, device="cuda", progress=False))
    assert {"aten._fused_rms_norm", "aten._fused_rms_norm_backward", "aten.native_dropout"} <= there
    assert operators(capture(step, progress=False)).isdisjoint({"aten._fused_rms_norm", "aten.native_dropout"})
    [norm] = [op for op in capture(step, device="cuda").ops if op.target == "aten._fused_rms_norm_backward.default"]
    assert norm.phase == "backward"
    # of two types of numbers it is made of others, as PyTorch makes it
    step = TrainStep(lambda: nn.RMSNorm(64, dtype=HALF), lambda: torch.randn(8, 64), loss=loss)
    assert "aten._fused_rms_norm" not in operators(capture(step, device="cuda", progress=False))


@pytest.mark.parametrize("make", [lambda: torch.autocast("cuda"), lambda: torch.amp.autocast("cuda", torch.float16)])
def test_the_autocast_of_a_gpu_is_not_switched_off_in_a_step(make: Any) -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with make():
            return model(x).square().mean()

    step = TrainStep(lambda: nn.Linear(16, 16), lambda: torch.randn(8, 16), loss=loss)
    graph = capture(step, device="cuda", progress=False)
    [product] = [op for op in graph.ops if op.target == "aten.addmm.default"]
    assert graph.tensors[product.outputs[0]].dtype == "float16"
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not make()._enabled


def test_a_step_that_asks_for_the_autocast_of_a_gpu_is_captured_once_and_sees_it_only_there() -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = model(x)
        return (y.exp() if torch.is_autocast_enabled("cuda") else y).square().mean()

    step = TrainStep(lambda: nn.Linear(16, 16), lambda: torch.randn(8, 16), loss=loss, autocast=HALF)
    there = capture(step, device="cuda", progress=False)
    assert "aten.exp" in operators(there)
    assert capture(step, device="cuda", progress=False) is there
    assert "aten.exp" not in operators(capture(step, progress=False))
    assert not torch.is_autocast_enabled("cuda")


def older_name() -> torch.dtype:
    return torch.get_autocast_gpu_dtype()


@pytest.mark.parametrize("ask", [older_name, lambda: torch.get_autocast_dtype("cuda")])
def test_a_step_is_told_the_precision_that_autocast_has_there(ask: Callable[[], torch.dtype]) -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return (model.weight.to(ask()) @ x.to(ask()).T).square().mean()

    step = TrainStep(lambda: nn.Linear(16, 16, bias=False), lambda: torch.randn(8, 16), loss=loss, autocast=HALF)
    graph = capture(step, device="cuda", progress=False)
    [product, *_] = [op for op in graph.ops if op.target == "aten.mm.default"]
    assert [graph.tensors[tensor].dtype for tensor in product.inputs] == ["bfloat16", "bfloat16"]


@pytest.mark.parametrize("dtype", [None, HALF])
def test_the_cell_of_an_lstm_is_one_kernel_that_keeps_its_gates(dtype: torch.dtype | None) -> None:
    step = TrainStep(
        lambda: nn.LSTMCell(16, 24), lambda: torch.randn(8, 16), loss=lambda model, x: model(x)[0].square().mean(),
        autocast=dtype,
    )  # fmt: skip
    graph = capture(step, device="cuda", progress=False)
    [cell] = [op for op in graph.ops if op.target == "aten._thnn_fused_lstm_cell.default"]
    assert graph.tensors[cell.outputs[2]].shape == (8, 4 * 24)
    assert "aten._thnn_fused_lstm_cell_backward_impl" in operators(graph)


def test_an_lstm_under_autocast_is_refused_with_what_to_write() -> None:
    def step(layer: type[nn.Module]) -> TrainStep:
        return TrainStep(
            lambda: layer(16, 24), lambda: torch.randn(5, 8, 16), loss=lambda model, x: model(x)[0].square().mean(),
            autocast=HALF,
        )  # fmt: skip

    with pytest.raises(StowageError, match=r"nn\.LSTM under autocast .*: make it of nn\.LSTMCell"):
        capture(step(nn.LSTM), device="cuda", progress=False)
    assert capture(step(nn.GRU), device="cuda", progress=False).ops


@pytest.mark.parametrize(
    "compute", [lambda model, x: model(x) + torch.arange(16, device="cuda"), lambda model, x: model(x.to("cuda"))]
)
def test_what_is_made_on_the_gpu_itself_is_refused_with_what_to_write(compute: Any) -> None:
    step = TrainStep(
        lambda: nn.Linear(16, 16), lambda: torch.randn(8, 16), loss=lambda model, x: compute(model, x).square().mean()
    )
    with pytest.raises(StowageError, match=r"make tensors where the input is, by device=x\.device, and move none"):
        capture(step, device="cuda", progress=False)


def test_a_graph_says_that_it_was_captured_without_a_gpu_also_in_a_file_and_for_a_worker() -> None:
    step = mlp()
    here, there = capture(step), capture(step, device="cuda")
    assert (here.device, here.approximate, there.device, there.approximate) == ("cpu", False, "cuda", True)
    for copy in (from_json(to_json(there)), pickle.loads(pickle.dumps(there)), there.with_workspaces({})):
        assert (copy.device, copy.approximate) == ("cuda", True)
        assert fingerprint(copy) == fingerprint(there)
    assert "approximate" not in to_json(here)
    parts = planner.search_partition(there, 2).wait(seconds=20)
    assert planner.partition.worker_graph(parts, there, 0, progress=False).approximate
    h100 = PRESETS["h100"]
    cpu = replace(h100, devices=(replace(h100.device, kind="cpu"),))
    assert "captured for the CPU" in approximation(here, h100)
    assert "captured without a GPU" in approximation(there, h100)
    assert "captured for a GPU" in approximation(there, cpu)
    assert approximation(here, cpu) == ""


def test_a_plan_for_it_is_valid_and_runs_nowhere_else() -> None:
    step = branches()
    graph = capture(step, device="cuda", progress=False)
    plan = planner.plan_swaps(graph, PRESETS["h100"], "80%", progress=False)
    assert planner.plan.validate(plan, graph) == []
    with pytest.raises(StowageError, match="cannot be run on cuda here, because"):
        run(step, plan, device="cuda")
    with pytest.raises(
        StowageError,
        match=r'with the ops of cuda, and the run is on cpu: plan for planner.capture\(step, device="cpu"\)',
    ):
        run(step, plan, progress=False).wait()


def test_capturing_for_a_gpu_leaves_the_capture_for_the_cpu_as_it_is() -> None:
    step = branches()
    before = capture(step)
    there = capture(step, device="cuda")
    assert capture(step) is before
    assert capture(step, device="cuda") is there
    result = run(step, budget="90%", steps=3, check=True, progress=False).wait()
    assert result.mismatches == ()


def test_a_model_of_transformers_takes_less_than_the_cpu_with_dropout_in_its_attention() -> None:
    def batch() -> dict[str, torch.Tensor]:
        tokens = torch.zeros(2, 256, dtype=torch.int64)
        return {"input_ids": tokens, "labels": tokens.clone()}

    config = BertConfig(vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4)

    def masked() -> dict[str, torch.Tensor]:
        return {**batch(), "attention_mask": torch.ones(2, 256, dtype=torch.int64)}

    step = TrainStep(lambda: BertForMaskedLM(config), batch)
    assert capture(TrainStep(lambda: BertForMaskedLM(config), masked()), device="cuda", progress=False).ops
    here, there = capture(step, progress=False), capture(step, device="cuda", progress=False)
    assert 2 * step_peak(there) < step_peak(here)
